"""A real kopf operator as a process: it converges, ends what it began, and outlives a restart of the server."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import establish_beacons
from tests.e2e.kubectl import Kubectl, newest
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

OPERATOR = Path(__file__).with_name("keeper.py")


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    """A server of its own on a port that it keeps, and the operator on it."""
    (port,) = free_ports(1)
    with TrimtabServer(tmp_path, flags=("--port", str(port))) as server:
        establish_beacons(server, tmp_path)
        kubectl = Kubectl(newest(), server, "default", tmp_path)
        with run_operator(kubectl, tmp_path):
            yield kubectl


def test_an_operator_brings_an_object_from_creation_to_deletion(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "beacons.yaml")
    eventually(lambda: kubectl("get", "configmap", "north", "-o", "jsonpath={.data.color}") == "red")
    eventually(lambda: kubectl("get", "beacon", "north", "-o", "jsonpath={.status.replicas}") == "3")
    eventually(lambda: "the light is red" in kubectl("events", "--for", "beacon/north"))
    assert "kopf" in kubectl("get", "beacon", "north", "-o", "jsonpath={.metadata.finalizers}")

    kubectl("patch", "beacon", "north", "--type=merge", "-p", '{"spec":{"color":"green"}}')
    eventually(lambda: kubectl("get", "configmap", "north", "-o", "jsonpath={.data.color}") == "green")

    kubectl("delete", "beacon", "north", "--timeout=20s")
    kubectl("get", "configmap", "north-was-here")
    kubectl("wait", "--for=delete", "configmap/north", "--timeout=20s")


def test_an_operator_goes_on_after_the_server_was_killed(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("apply", "-f", "beacons.yaml")
    eventually(lambda: kubectl("get", "configmap", "south", "-o", "jsonpath={.data.color}") == "white")
    assert isinstance(kubectl.server, TrimtabServer)
    port = kubectl.server.url.rpartition(":")[2]
    kubectl.server.kill()
    with TrimtabServer(tmp_path, flags=("--port", port)):
        kubectl("patch", "beacon", "south", "--type=merge", "-p", '{"spec":{"color":"red"}}')
        eventually(lambda: kubectl("get", "configmap", "south", "-o", "jsonpath={.data.color}") == "red")
        # kopf's timer and its farewell write the same object, and whoever is late may wait for a change that nobody makes
        eventually(lambda: kubectl("get", "beacon", "north", "-o", "jsonpath={.status.replicas}") == "3")
        kubectl("delete", "beacon", "north", "--timeout=20s")
        kubectl("get", "configmap", "north-was-here")


def run_operator(kubectl: Kubectl, folder: Path) -> Process:
    command = [
        str(Path(sys.executable).with_name("kopf")),
        "run",
        "--standalone",
        "--namespace",
        "default",
        str(OPERATOR),
    ]
    env = kubectl.env({"KUBECONFIG": str(kubectl.server.kubeconfig)})
    process = Process(command, log=folder / "operator.log", env=env)
    process.wait_until(lambda: "Activity 'connect' succeeded" in process.tail(), within=120)
    return process


def eventually(holds: Callable[[], bool], within: float = 90) -> None:
    """Asks until it holds; a command that fails counts as no. kopf waits longer and longer for a server that is away."""
    deadline = time.monotonic() + within
    while True:
        try:
            if holds():
                return
            problem = "it never became true"
        except AssertionError as failed:
            problem = str(failed)
        assert time.monotonic() < deadline, problem
        time.sleep(0.1)
