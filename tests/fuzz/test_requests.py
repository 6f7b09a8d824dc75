"""Random requests by three kinds of clients: each is answered, none breaks the server. A failure prints seed and request."""

import time
from random import Random

import pytest

from tests.fuzz.asks import ask
from tests.fuzz.conftest import Victim, sound

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("who", ["admin", "keeper", "anonymous"])
def test_every_request_is_answered(who: str, victim: Victim, budget: float, seed: int) -> None:
    random = Random(f"{seed} {who}")
    deadline = time.monotonic() + budget * (2 if who == "admin" else 0.5)
    while time.monotonic() < deadline:
        with victim.line(who) as line:
            for _ in range(50):
                asked = ask(random)
                data = asked.written(*victim.headers[who])
                line.send(data)
                try:
                    reply = line.reply(to=asked.method)
                    assert reply is not None, "the connection was closed without an answer"
                    assert sound(reply, data), reply
                    if who == "anonymous":
                        assert reply.code != 201
                except AssertionError as failure:
                    raise AssertionError(f"seed {seed}: {failure}\n{asked}") from None
                if line.ended:
                    break


@pytest.mark.parametrize("who", ["admin", "keeper"])
def test_pipelined_requests_are_answered_in_order(who: str, victim: Victim, seed: int) -> None:
    random = Random(f"{seed} pipeline")
    for _ in range(10):
        numbers = [random.randrange(10**9) for _ in range(60)]
        with victim.line(who) as line:
            gets = [b"/api/v1/namespaces/default/configmaps/none-%d" % number for number in numbers]
            line.send(b"".join(_get(path, victim.headers[who]) for path in gets))
            for number in numbers:
                reply = line.reply()
                assert reply is not None
                assert reply.code == 404
                assert b"none-%d" % number in reply.body


def _get(path: bytes, headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: x\r\n%b\r\n" % (path, b"".join(b"%b: %b\r\n" % header for header in headers))
