"""The discovery example works as it is: a fleet, one `kubectl apply` of the folder, and Targets of all four protocols."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.kubectl import newest, programs
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import ApiServer
from trimtab.testing.processes import Process

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "discovery"
PROGRAM = str(Path(sys.executable).with_name("trimtab"))
NAMES = {"leaf1", "spine2", "access3", "edge4", "spine5", "core6", "tor7"}
PROTOCOLS = {"gnmi", "netconf", "ssh", "snmp"}

Shell = Callable[..., subprocess.CompletedProcess[str]]


def fleet(folder: Path, *words: str) -> Process:
    """The lab's devices, when they listen."""
    log = folder / "fleet.log"
    log.unlink(missing_ok=True)
    process = Process([sys.executable, "-m", "trimtab.lab.fleet", *words], log=log)
    try:
        process.wait_until(lambda: "Ctrl-C ends it" in log.read_text(), within=30)
    except BaseException:
        process.stop()
        raise
    return process


class Home(NamedTuple):
    """Where the controllers run. Blobs are beside the kubeconfig."""

    kubeconfig: Path
    log: Callable[[], str]
    collects: bool = True
    """Whether something removes what a deleted owner had: a cluster's controller manager, which the test's has not."""


@pytest.fixture(scope="module", params=["embedded", pytest.param("kubernetes", marks=pytest.mark.cluster)])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The two homes of discovery, in turn, each with the devices beside it."""
    folder = tmp_path_factory.mktemp("discovery")
    with fleet(folder):
        if request.param == "embedded":
            yield from embedded(folder)
        else:
            yield from on_cluster(folder, request.getfixturevalue("real_cluster"))


def embedded(folder: Path) -> Iterator[Home]:
    with TrimtabServer(folder, flags=("--systems", "discovery")) as server:
        server.wait_until(lambda: "controller works" in server.log(), within=30)
        yield Home(server.kubeconfig, server.log)


def on_cluster(folder: Path, cluster: ApiServer) -> Iterator[Home]:
    """With the rights that `install` prints, and no more. Nobody runs its Deployment here, so nobody serves its webhook."""
    kubeconfig, log = folder / "kubeconfig", folder / "log"
    kubeconfig.write_bytes(cluster.kubeconfig.read_bytes())
    prepare = (
        "trimtab install --systems discovery --blobs postgresql://db.example.com/trimtab"
        " | kubectl apply --server-side -f -; kubectl delete validatingwebhookconfiguration trimtab-discovery"
        "; kubectl wait --for=condition=Established crd/targets.discovery.trimtab.dev --timeout=30s"
    )
    ran(kubeconfig, prepare)
    command = [PROGRAM, "controllers", "--systems", "discovery", "--kubeconfig", str(kubeconfig)]
    command += ["--data-dir", str(folder / "data"), "--blobs", str(folder / "blobs"), "--no-leader-election"]
    with Process(command, log=log) as process:
        process.wait_until(lambda: "controller works" in process.tail(), within=30)
        yield Home(kubeconfig, lambda: log.read_text(errors="replace"), collects=False)
        ran(kubeconfig, "kubectl delete -R -f examples/discovery/ --timeout=30s")


def ran(kubeconfig: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A script, as the page's reader runs it, in the checkout."""
    path = f"{programs()[newest()].parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"PATH": path, "HOME": str(kubeconfig.parent), "KUBECONFIG": str(kubeconfig)}
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=90)


@pytest.fixture(scope="module")
def shell(home: Home) -> Shell:
    def run(script: str, *, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = ran(home.kubeconfig, script)
        assert done.returncode == code, f"{script}\n{done.stdout}{done.stderr}\n{home.log()[-4000:]}"
        return done

    return run


@pytest.fixture(scope="module")
def discovered(shell: Shell) -> str:
    """What the commands of the page print, up to the table of Targets."""
    page = (EXAMPLE / "README.md").read_text()
    (commands,) = re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return shell(commands.replace("export KUBECONFIG=.trimtab/kubeconfig\n", "")).stdout


def targets(shell: Shell) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell("kubectl get targets -o json").stdout)["items"]
    return found


def test_targets_of_all_four_protocols_become_ready(discovered: str, shell: Shell) -> None:
    found = targets(shell)
    assert {target["status"]["discoveryInfo"]["protocol"] for target in found} == PROTOCOLS
    assert {target["status"]["phase"] for target in found} == {"Ready"}
    assert {target["metadata"]["name"] for target in found} == NAMES
    assert all(name in discovered for name in NAMES)


def test_every_target_knows_its_vendor_and_is_labelled_by_the_template(discovered: str, shell: Shell) -> None:
    for target in targets(shell):
        assert target["spec"]["provider"] != "unknown", target["metadata"]["name"]
        assert target["metadata"]["labels"]["site"] == "lab"
        assert target["metadata"]["labels"]["vendor"] == target["spec"]["provider"]


def test_a_device_with_two_addresses_is_one_target(discovered: str, shell: Shell) -> None:
    said = shell("kubectl get target leaf1 -o jsonpath='{.status.addresses}'").stdout
    assert json.loads(said) == ["127.10.0.1", "127.10.0.101"]


def test_why_says_what_came_of_an_address(discovered: str, shell: Shell) -> None:
    assert "lab" in shell("trimtab discovery why 127.10.0.1").stdout
    refused = shell("trimtab discovery why 127.10.0.8").stdout.lower()
    assert "password" in refused or "credential" in refused or "login" in refused
    assert shell("trimtab discovery why 127.10.0.42").stdout


def test_why_has_exit_code_1_for_an_address_of_no_rule(discovered: str, shell: Shell) -> None:
    assert "no rule" in shell("trimtab discovery why 127.99.0.1", code=1).stderr


def test_a_run_is_followed_to_its_end(discovered: str, shell: Shell) -> None:
    said = shell("trimtab discovery run lab").stdout
    assert "Succeeded" in said
    assert re.search(r"^identified +\d+$", said, re.MULTILINE)


def test_a_dry_run_shows_what_answers_and_writes_nothing(discovered: str, shell: Shell) -> None:
    before = [target["metadata"]["resourceVersion"] for target in targets(shell)]
    said = shell("trimtab discovery run lab --dry-run").stdout
    assert re.search(r"^127\.10\.0\.1 +gnmi tcp/57400$", said, re.MULTILINE)
    assert "nothing was written" in said
    assert [target["metadata"]["resourceVersion"] for target in targets(shell)] == before


def test_the_plan_is_shown_before_anything_is_sent(discovered: str, shell: Shell) -> None:
    said = shell("trimtab discovery plan lab").stdout
    assert re.search(r"^addresses +199$", said, re.MULTILINE)
    assert "within the period, 15s" in said


def test_no_secret_is_logged(discovered: str, home: Home) -> None:
    assert "lab-only" not in home.log()


def test_deleting_the_rule_removes_its_targets(discovered: str, shell: Shell, home: Home) -> None:
    owners = [target["metadata"]["ownerReferences"] for target in targets(shell)]
    assert all((owner["kind"], owner["controller"]) == ("DiscoveryRule", True) for (owner,) in owners)
    shell("kubectl delete discoveryrule lab --timeout=30s")
    if home.collects:
        shell("kubectl wait --for=delete target --all --timeout=30s")
        assert not targets(shell)
