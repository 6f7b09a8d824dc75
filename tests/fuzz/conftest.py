"""A server for hostile input, and what must be true of it during and after: no failure, no hang, no growth, a clean log."""

import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.e2e.conftest import establish_beacons
from tests.e2e.kubectl import Kubectl, newest
from tests.e2e.raw import Raw
from tests.fuzz.wire import Line, Reply
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.peer import read_access
from trimtab.testing.usage import resident_bytes

GROWTH = 150 * 2**20  # bytes of memory that a server may gain under attack, at most


class Victim(NamedTuple):
    """A server with three ways in: as an administrator, with two kinds of one namespace, with nothing."""

    server: TrimtabServer
    address: tuple[str, int]
    contexts: dict[str, ssl.SSLContext]
    headers: dict[str, tuple[tuple[bytes, bytes], ...]]
    log: Path

    def line(self, who: str = "anonymous") -> Line:
        return Line(self.address, self.contexts[who])

    def memory(self) -> int:
        return resident_bytes(self.server.pids.values())


@pytest.fixture(scope="session")
def budget() -> float:
    """Seconds for each of the random tests."""
    return float(os.environ.get("TRIMTAB_FUZZ_SECONDS", "7"))


@pytest.fixture(scope="session")
def seed() -> int:
    return int(os.environ.get("TRIMTAB_FUZZ_SEED") or int.from_bytes(os.urandom(4), "big"))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("victim")
    with TrimtabServer(folder) as server:
        establish_beacons(server, folder)
        kubectl = Kubectl(
            newest(), server, "kube-public", folder
        )  # requests are for `default`: the account outlives them
        kubectl("create", "serviceaccount", "keeper")
        kubectl("create", "clusterrole", "keeper", "--verb=*", "--resource=configmaps,beacons.ground.example.com")
        binding = ("--clusterrole=keeper", "--serviceaccount=kube-public:keeper")
        kubectl("create", "rolebinding", "keeper", *binding, "--namespace=default")
        keeper = (b"Authorization", b"Bearer " + kubectl("create", "token", "keeper").encode())
        access = read_access(server.kubeconfig)
        token = ((b"Authorization", b"Bearer " + access.token.encode()),) if access.token else ()
        unknown = ssl.create_default_context(cafile=access.ca)
        url = urlsplit(server.url)
        assert url.hostname is not None
        assert url.port is not None
        yield Victim(
            server,
            (url.hostname, url.port),
            {"admin": access.tls(), "keeper": unknown, "anonymous": unknown},
            {"admin": token, "keeper": (keeper,), "anonymous": ()},
            folder / "trimtab.log",
        )


@pytest.fixture
def victim(running: Victim) -> Iterator[Victim]:
    """The server before a test; after it, the server must be as well as before."""
    before, read = running.memory(), running.log.stat().st_size
    yield running
    grown = running.memory() - before
    said = running.log.read_bytes()[read:].decode(errors="replace")
    assert "Traceback" not in said
    assert '"level": "error"' not in said
    assert grown < GROWTH, f"memory grew by {grown >> 20} MiB"
    admin = Raw(running.server, admin=True)
    assert admin("GET", "/readyz").body == b"ok"
    assert (
        admin("POST", "/api/v1/namespaces/kube-system/configmaps", {"metadata": {"generateName": "after-"}}).code == 201
    )


def sound(reply: Reply, request: bytes) -> bool:
    """Whether an answer is one that a request may get, however odd it was.

    Kubernetes has 500s of its own, which we imitate: for patches that it cannot explain, without a reason; for
    impersonation of nobody.
    """
    if reply.code == 500:
        return b'"InternalError"' not in reply.body or b"impersonate-" in request.lower()
    return 200 <= reply.code < 500 or reply.code in (503, 504, 505)
