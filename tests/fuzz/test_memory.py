"""What clients bring and leave is forgotten: memory does not grow with the number of connections, writes or slow watchers."""

import pytest

from tests.e2e.raw import Raw
from tests.fuzz.conftest import Victim
from tests.fuzz.wire import written

pytestmark = pytest.mark.slow

MAPS = "/api/v1/namespaces/default/configmaps"
LARGE = {"metadata": {"name": "large"}, "data": {"text": "x" * 400_000}}
BOUND = 100 * 2**20


def test_large_bodies_go_with_their_connections(victim: Victim) -> None:
    admin = Raw(victim.server, admin=True)
    admin("POST", MAPS, LARGE)
    before = victim.memory()
    for number in range(200):
        assert (
            admin("PUT", f"{MAPS}/large", {**LARGE, "immutable": None, "binaryData": {"n": f"{number:04}"}}).code == 200
        )
    assert victim.memory() - before < BOUND


def test_watchers_that_do_not_read_hold_nothing_up(victim: Victim) -> None:
    admin = Raw(victim.server, admin=True)
    before = victim.memory()
    lines = [victim.line("admin") for _ in range(20)]
    try:
        for line in lines:
            line.send(written("GET", MAPS.encode() + b"?watch=true", victim.headers["admin"], None))
        for number in range(200):
            changed = {**LARGE, "metadata": {"name": "large"}, "binaryData": {"n": f"{number:04}"}}
            assert admin("PUT", f"{MAPS}/large", changed).code == 200
        assert victim.memory() - before < BOUND
    finally:
        for line in lines:
            line.__exit__(None, None, None)


def test_many_short_connections_leave_nothing(victim: Victim) -> None:
    def visit() -> None:
        for _ in range(300):
            with victim.line() as line:
                line.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 30_000 + b"\r\n\r\n")
                assert line.reply() is not None

    visit()
    before = victim.memory()
    visit()
    assert victim.memory() - before < 8 * 2**20
