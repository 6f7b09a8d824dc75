"""The same operator in its homes: beside the embedded server, alone against any server, and on a cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl, newest
from trimtab.model import yaml
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import ApiServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

pytestmark = pytest.mark.slow

TRIMTAB = str(Path(sys.executable).with_name("trimtab"))
EXAMPLES = Path(__file__).parents[2] / "examples" / "operator"
LIGHTHOUSES = EXAMPLES / "lighthouses.py"
ACCOUNT = "system:serviceaccount:trimtab-system:lighthouses"


def wait_for_logbook(kubectl: Kubectl) -> None:
    kubectl("wait", "--for=create", "configmap/roter-sand-logbook", "--timeout=30s")
    kubectl("wait", "--for=jsonpath={.data.light}=red", "configmap/roter-sand-logbook", "--timeout=30s")


def lighthouse(name: str = "roter-sand", light: str = "red") -> str:
    document = {
        "apiVersion": "coast.example.com/v1",
        "kind": "Lighthouse",
        "metadata": {"name": name},
        "spec": {"light": light, "range": 24},
    }
    return json.dumps(document)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrimtabServer]:
    """`trimtab up` with the operator beside it."""
    with TrimtabServer(tmp_path_factory.mktemp("home"), flags=("--operator", str(LIGHTHOUSES))) as server:
        until_working(server)
        yield server


def until_working(server: TrimtabServer, times: int = 1) -> None:
    server.wait_until(lambda: server.log().count("controller works") >= times, within=30)


@pytest.fixture
def kubectl(home: TrimtabServer, namespace: str, tmp_path: Path) -> Kubectl:
    bound = Kubectl(newest(), home, namespace, tmp_path)
    bound("create", "namespace", namespace)
    return bound


def test_the_operator_runs_beside_the_server(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(EXAMPLES / "lighthouses.yaml"))
    kubectl("wait", "lighthouse", "--all", "--for=condition=Ready", "--timeout=30s")
    wait_for_logbook(kubectl)


def test_the_server_asks_its_admission_functions(kubectl: Kubectl) -> None:
    refused = kubectl.run("apply", "-f", "-", stdin=lighthouse(light="black"))
    assert refused.code == 1
    assert 'spec.light: Invalid value: "black": a light that nobody sees' in refused.err


def test_the_operator_has_the_rights_that_install_prints_and_no_more(kubectl: Kubectl) -> None:
    printed = [d for d in installed(LIGHTHOUSES) if d["kind"] in ("ClusterRole", "Role")]
    for wanted in printed:
        name, namespace = wanted["metadata"]["name"], wanted["metadata"].get("namespace", "default")
        got = kubectl.json("get", wanted["kind"], name, "-n", namespace)
        assert got["rules"] == wanted["rules"]
    assert kubectl.run("auth", "can-i", "create", "configmaps", "--as", ACCOUNT).out.strip() == "yes"
    for verb, kind in (("get", "secrets"), ("delete", "lighthouses.coast.example.com"), ("create", "pods")):
        assert kubectl.run("auth", "can-i", verb, kind, "--as", ACCOUNT).out.strip() == "no"


def test_the_operator_acts_as_its_account(kubectl: Kubectl) -> None:
    """Without its rights it can do nothing, though it came by the owner's socket."""
    binding = kubectl.json("get", "clusterrolebinding", "trimtab:lighthouses")
    binding["metadata"] = {"name": "trimtab:lighthouses"}
    kubectl("delete", "clusterrolebinding", "trimtab:lighthouses")
    try:
        kubectl("apply", "-f", "-", stdin=lighthouse())
        assert kubectl.run("wait", "--for=create", "configmap/roter-sand-logbook", "--timeout=1s").code == 1
    finally:
        kubectl("create", "-f", "-", stdin=json.dumps(binding))
    wait_for_logbook(kubectl)


def test_controllers_that_die_are_started_again(tmp_path: Path, namespace: str) -> None:
    with TrimtabServer(tmp_path, flags=("--operator", str(LIGHTHOUSES))) as server:
        until_working(server)
        (child,) = children(server.pids["server"])
        os.kill(child, signal.SIGKILL)
        until_working(server, times=2)
        kubectl = Kubectl(newest(), server, "default", tmp_path)
        kubectl("apply", "-f", "-", stdin=lighthouse())
        wait_for_logbook(kubectl)
        assert "the controllers ended" in server.log()
        assert children(server.pids["server"]) != [child]


def test_controllers_end_with_the_server_however_it_ends(tmp_path: Path) -> None:
    server = TrimtabServer(tmp_path, flags=("--operator", str(LIGHTHOUSES)))
    until_working(server)
    (child,) = children(server.pids["server"])
    descriptor = os.pidfd_open(child)
    server.kill()
    wait_for_end(descriptor)


def test_ctrl_c_ends_both_in_order(tmp_path: Path) -> None:
    server = TrimtabServer(tmp_path, flags=("--operator", str(LIGHTHOUSES)))
    until_working(server)
    (child,) = children(server.pids["server"])
    descriptor = os.pidfd_open(child)
    server.stop()
    wait_for_end(descriptor)
    assert "Traceback" not in server.log()
    assert "the controllers ended" not in server.log(), "they were told to"


@pytest.mark.parametrize("param", ["trimtab", pytest.param("kubernetes", marks=pytest.mark.cluster)])
def test_an_operator_runs_alone_against_any_server(
    param: str, request: pytest.FixtureRequest, namespace: str, tmp_path: Path
) -> None:
    server: ApiServer = request.getfixturevalue("trimtab_server" if param == "trimtab" else "real_cluster")
    kubectl = Kubectl(newest(), server, namespace, tmp_path)
    kubectl("create", "namespace", namespace)
    command = [TRIMTAB, "run", str(LIGHTHOUSES), "--kubeconfig", str(server.kubeconfig), "--data-dir", str(tmp_path)]
    with Process(command, log=tmp_path / "log") as process:
        process.wait_until(lambda: "controller works" in process.tail(), within=30)
        kubectl("apply", "-f", "-", stdin=lighthouse())
        wait_for_logbook(kubectl)


@pytest.mark.cluster
def test_a_cluster_takes_what_install_prints_and_one_of_two_replicas_acts(
    real_cluster: ApiServer, namespace: str, tmp_path: Path
) -> None:
    kubectl = Kubectl(newest(), real_cluster, namespace, tmp_path)
    kubectl("create", "namespace", namespace)
    documents = installed(LIGHTHOUSES)
    webhooks = [d for d in documents if "Webhook" in d["kind"]]
    assert webhooks, "they are checked below, and not put in force: no pod serves them here"
    installer = Kubectl(newest(), real_cluster, "trimtab-system", tmp_path)
    installer("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=as_list(webhooks))
    installer("apply", "--server-side", "-f", "-", stdin=as_list([d for d in documents if d not in webhooks]))
    kubectl("wait", "--for=condition=Established", "crd/lighthouses.coast.example.com", "--timeout=30s")

    def replica(number: int) -> Process:
        command = [TRIMTAB, "controllers", "--kubeconfig", str(real_cluster.kubeconfig), "--systems", "none"]
        command += ["--operator", str(LIGHTHOUSES), "--data-dir", str(tmp_path / str(number)), "--health-port", "0"]
        return Process(command, log=tmp_path / f"log{number}")

    with replica(1) as first:
        first.wait_until(lambda: "controller works" in first.tail(), within=30)
        with replica(2) as second:
            second.wait_until(lambda: "controllers start" in second.tail(), within=30)
            kubectl("apply", "-f", "-", stdin=lighthouse())
            wait_for_logbook(kubectl)
            assert "controller works" not in second.tail(), "it stands by"
            first.stop()
            second.wait_until(lambda: "controller works" in second.tail(), within=30)
            kubectl("delete", "configmap", "roter-sand-logbook")
            kubectl("wait", "--for=create", "configmap/roter-sand-logbook", "--timeout=30s")


def test_install_prints_all_that_a_cluster_needs() -> None:
    documents = installed(LIGHTHOUSES)
    kinds = [document["kind"] for document in documents]
    assert kinds[:2] == ["Namespace", "CustomResourceDefinition"]
    assert {"ServiceAccount", "ClusterRole", "Role", "Service", "PodDisruptionBudget", "Deployment"} < set(kinds)
    assert "ValidatingWebhookConfiguration" in kinds
    (deployment,) = (d for d in documents if d["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "lighthouses"
    assert pod["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_like_this", "ModuleNotFoundError"),
        ("def (:", ":1: SyntaxError"),
        ("x = 1", "defines no controller"),
        (
            "from trimtab.runtime import Controller\nclass C(Controller):\n  async def reconcile(self, r): ...",
            "no kind",
        ),
    ],
)
@pytest.mark.parametrize("command", ["run", "up"])
def test_an_operator_that_cannot_be_loaded_is_refused_in_one_line(
    command: str, text: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    words = ["run", str(path)] if command == "run" else ["up", "--port", "0", "--operator", str(path)]
    done = subprocess.run([TRIMTAB, *words, "--data-dir", str(tmp_path)], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(path) in done.stderr


STUBBORN = """
import asyncio, time
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime import Controller

class Stubborn(Controller[ConfigMap]):
    async def reconcile(self, request):
        self.log.info("reconciling")
        {body}
"""


@pytest.mark.parametrize(
    "body",
    ["time.sleep(60)", "await asyncio.shield(asyncio.sleep(60))"],
    ids=["blocks the loop", "does not end"],
)
def test_a_second_ctrl_c_ends_what_will_not_end(body: str, trimtab_server: TrimtabServer, tmp_path: Path) -> None:
    path = tmp_path / "stubborn.py"
    path.write_text(STUBBORN.format(body=body))
    command = [TRIMTAB, "run", str(path), "--kubeconfig", str(trimtab_server.kubeconfig), "--data-dir", str(tmp_path)]
    with Process(command, log=tmp_path / "log") as process:
        process.wait_until(lambda: "reconciling" in process.tail(), within=30)
        descriptor = os.pidfd_open(process.pid)
        os.kill(process.pid, signal.SIGINT)
        process.wait_until(lambda: "again to end at once" in process.tail(), within=30)
        os.kill(process.pid, signal.SIGINT)
        wait_for_end(descriptor)
        assert "Traceback" not in process.tail(100)


def test_a_server_that_is_not_there_is_told_in_one_line(trimtab_server: TrimtabServer, tmp_path: Path) -> None:
    (nobody,) = free_ports(1)
    away = tmp_path / "kubeconfig"
    away.write_text(trimtab_server.kubeconfig.read_text().replace(trimtab_server.url, f"https://127.0.0.1:{nobody}"))
    command = [TRIMTAB, "run", str(LIGHTHOUSES), "--kubeconfig", str(away), "--data-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "does not answer: Connection refused" in done.stderr


def test_a_system_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = subprocess.run([TRIMTAB, "controllers", "--systems", "nothing"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert 'there is no system "nothing"' in done.stderr


def installed(path: Path) -> list[dict]:  # type: ignore[type-arg]
    command = [TRIMTAB, "install", "--systems", "none", "--operator", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(yaml.load_all(done.stdout))


def as_list(documents: list[dict]) -> str:  # type: ignore[type-arg]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_end(descriptor: int) -> None:
    """A process descriptor becomes readable when its process has ended."""

    async def wait() -> None:
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, ended.set)
        async with asyncio.timeout(20):
            await ended.wait()
        asyncio.get_running_loop().remove_reader(descriptor)

    asyncio.run(wait())
    os.close(descriptor)
