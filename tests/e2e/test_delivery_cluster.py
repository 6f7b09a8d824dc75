"""What the example has for a cluster is taken by a real API server, and the controllers make their objects of it there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import newest, programs
from trimtab.testing.peer import ApiServer
from trimtab.testing.processes import Process

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).with_name("trimtab"))
PREPARE = """
kubectl apply --server-side -f examples/delivery/cluster/istio-crds.yaml
trimtab install --systems delivery | kubectl apply --server-side -f -
kubectl delete validatingwebhookconfiguration trimtab-delivery
kubectl wait --for=condition=Established crd/canarydeployments.delivery.trimtab.dev crd/virtualservices.networking.istio.io \\
  --timeout=30s
kubectl apply -f examples/delivery/cluster/shop.yaml -f examples/delivery/cluster/templates.yaml
"""
"""As the page has it. Nobody runs the Deployment of the controllers here, so nobody serves their webhook."""


@pytest.fixture(scope="module")
def kubeconfig(real_cluster: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With the controllers beside it, which have the rights that `install` prints, and no more."""
    folder = tmp_path_factory.mktemp("delivery")
    copied = folder / "kubeconfig"
    copied.write_bytes(real_cluster.kubeconfig.read_bytes())
    ran(copied, PREPARE)
    command = [PROGRAM, "controllers", "--systems", "delivery", "--kubeconfig", str(copied), "--no-leader-election"]
    with Process([*command, "--data-dir", str(folder / "data")], log=folder / "log") as process:
        process.wait_until(lambda: "controller works" in process.tail(), within=30)
        yield copied
        ran(copied, "kubectl -n shop delete canary --all --timeout=60s; kubectl delete namespace shop --wait=false")


def ran(kubeconfig: Path, script: str) -> str:
    path = f"{programs()[newest()].parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"PATH": path, "HOME": str(kubeconfig.parent), "KUBECONFIG": str(kubeconfig)}
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_routes_of_the_example_are_made_with_what_its_author_wrote(kubeconfig: Path) -> None:
    ran(kubeconfig, "kubectl -n shop wait virtualservice/shop --for=create --timeout=60s")
    spec = json.loads(ran(kubeconfig, "kubectl -n shop get virtualservice shop -o json"))["spec"]
    assert spec["hosts"] == ["shop.example.com", "shop"]
    (route,) = spec["http"]
    assert route["retries"]["attempts"] == 2
    assert [(each["destination"]["host"], each["weight"]) for each in route["route"]] == [
        ("shop", 100),
        ("shop-canary", 0),
    ]


def test_the_example_is_valid_there_and_waits_for_its_pods(kubeconfig: Path) -> None:
    ran(kubeconfig, "kubectl -n shop wait canary/shop --for=condition=Valid --timeout=60s")
    status = json.loads(ran(kubeconfig, "kubectl -n shop get canary shop -o json"))["status"]
    assert status["phase"] == "Initializing"  # nobody runs pods here
