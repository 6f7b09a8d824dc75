"""Bytes that are no proper HTTP, or no TLS: refused with a 4xx or a closed connection, soon, and nothing comes of them."""

import socket
import ssl
import time
from collections.abc import Iterator
from random import Random

import pytest

from tests.e2e.raw import Raw
from tests.fuzz.asks import ask
from tests.fuzz.conftest import Victim, sound
from tests.fuzz.documents import scrambled
from tests.fuzz.wire import Line

pytestmark = pytest.mark.slow

HEAD = b"Host: x\r\n"
MAPS = b"/api/v1/namespaces/default/configmaps"
REFUSED = {
    "version 9.9": b"GET /healthz HTTP/9.9\r\n" + HEAD + b"\r\n",
    "http 2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no method": b" /healthz HTTP/1.1\r\n" + HEAD + b"\r\n",
    "space in path": b"GET /a b HTTP/1.1\r\n" + HEAD + b"\r\n",
    "NUL in path": b"GET /\0 HTTP/1.1\r\n" + HEAD + b"\r\n",
    "NUL in header": b"GET /healthz HTTP/1.1\r\nhost: x\r\nX: \0\r\n\r\n",
    "space before colon": b"POST /healthz HTTP/1.1\r\nhost: x\r\nContent-Length : 5\r\n\r\nhello",
    "folded header": b"POST /healthz HTTP/1.1\r\nhost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "header without colon": b"GET /healthz HTTP/1.1\r\nhost: x\r\nnothing\r\n\r\n",
    "empty header name": b"GET /healthz HTTP/1.1\r\nhost: x\r\n: x\r\n\r\n",
    "bare line feeds and returns": b"GET /healthz HTTP/1.1\rHost: x\r\r",
    "binary": bytes(range(256)) * 4,
    "TLS in TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
    "negative length": b"POST /healthz HTTP/1.1\r\nhost: x\r\nContent-Length: -1\r\n\r\n",
    "length with a sign": b"POST /healthz HTTP/1.1\r\nhost: x\r\nContent-Length: +5\r\n\r\nhello",
    "length in hex": b"POST /healthz HTTP/1.1\r\nhost: x\r\nContent-Length: 0x5\r\n\r\nhello",
    "huge length": b"POST /healthz HTTP/1.1\r\nhost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    "two lengths": b"POST /healthz HTTP/1.1\r\nhost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "two lengths in one": b"POST /healthz HTTP/1.1\r\nhost: x\r\nContent-Length: 5, 5\r\n\r\nhello",
    "length and chunks": b"POST /healthz HTTP/1.1\r\nhost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": b"POST /healthz HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "unknown encoding": b"POST /healthz HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked, then another": b"POST /healthz HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "bad chunk size": b"POST /healthz HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    "huge chunk size": b"POST /healthz HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    "chunk longer than said": b"POST /healthz HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
    "long path": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    "long header": b"GET /healthz HTTP/1.1\r\nhost: x\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    "many headers": b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
    + b"".join(b"X-%d: 1\r\n" % n for n in range(5000))
    + b"\r\n",
    "the same header many times": b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + b"X: 1\r\n" * 50_000 + b"\r\n",
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_no_proper_request_is_refused(why: str, victim: Victim) -> None:
    with victim.line() as line:
        line.send(REFUSED[why])
        line.finish()
        reply = line.reply()
        assert reply is None or reply.code in (400, 413, 414, 431, 501, 505), reply
        assert line.ends()


@pytest.mark.parametrize("smuggled", ["length first", "chunks first", "obfuscated"])
def test_a_second_request_cannot_hide_in_the_body_of_the_first(smuggled: str, victim: Victim) -> None:
    """Whatever a proxy in front makes of it, the inner request must not be answered."""
    inner = b"DELETE /api/v1/namespaces/default HTTP/1.1\r\nHost: x\r\n\r\n"
    heads = {
        "length first": b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % (len(inner) + 5),
        "chunks first": b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n" % (len(inner) + 5),
        "obfuscated": b"Content-Length: 5\r\nTransfer-Encoding: xchunked\r\nTransfer-Encoding: chunked\r\n",
    }
    with victim.line("admin") as line:
        credentials = b"".join(b"%b: %b\r\n" % header for header in victim.headers["admin"])
        line.send(b"POST /healthz HTTP/1.1\r\nHost: x\r\n" + credentials + heads[smuggled] + b"\r\n0\r\n\r\n" + inner)
        line.finish()
        first = line.reply()
        assert first is None or first.code >= 400
        assert line.reply() is None
    assert Raw(victim.server, admin=True)("GET", "/api/v1/namespaces/default").code == 200


def test_requests_cut_off_anywhere_leave_nothing_behind(victim: Victim, seed: int) -> None:
    credentials = b"".join(b"%b: %b\r\n" % header for header in victim.headers["admin"])
    body = b'{"metadata":{"name":"cut-off"}}'
    head = b"POST " + MAPS + b" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + credentials
    whole = [
        head + b"Content-Length: %d\r\n\r\n" % len(body) + body,
        head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
    ]
    random = Random(f"{seed} cut")
    for request in whole:
        for end in [*random.sample(range(1, len(request)), 25), len(request) - 1, len(request) - 2]:
            with victim.line("admin") as line:
                line.send(request[:end])
                line.finish()
                assert line.ends()
    assert Raw(victim.server, admin=True)("GET", f"{MAPS.decode()}/cut-off").code == 404


def test_scrambled_requests_are_answered_or_end(victim: Victim, budget: float, seed: int) -> None:
    random = Random(f"{seed} scrambled")
    deadline = time.monotonic() + budget
    while time.monotonic() < deadline:
        who = random.choice(["admin", "keeper", "anonymous"])
        data = scrambled(random, ask(random).written(*victim.headers[who]))
        cut = random.randrange(len(data) + 1)
        with victim.line(who) as line:
            line.send(data[:cut], data[cut:])
            line.finish()
            try:
                reply = line.reply(to="HEAD" if data.startswith(b"HEAD") else "GET")
                assert reply is None or sound(reply, data), reply
                assert line.ended or line.ends(), "the connection stays open"
            except AssertionError as failure:
                raise AssertionError(f"seed {seed}: {failure}\n{data!r}") from None


def test_a_body_beyond_the_limit_is_refused(victim: Victim) -> None:
    for framing in (b"Content-Length: 20000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n1312d00\r\n"):
        with victim.line("admin") as line:
            credentials = b"".join(b"%b: %b\r\n" % header for header in victim.headers["admin"])
            line.send(
                b"POST " + MAPS + b" HTTP/1.1\r\nHost: x\r\n" + credentials + framing,
                *[b"x" * 1_000_000] * 20,
                b"\r\n0\r\n\r\n",
            )
            reply = line.reply()
            assert reply is None or reply.code == 413


def test_a_header_without_end_takes_no_memory(victim: Victim) -> None:
    before = victim.memory()
    with victim.line() as line:
        line.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\nX: ", *[b"a" * 2**20] * 64)
        assert victim.memory() - before < 32 * 2**20


def test_connections_without_tls_end(victim: Victim) -> None:
    for data in (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"a" * 100, b"\0" * 1000, b""):
        with socket.create_connection(victim.address, timeout=5) as plain:
            plain.sendall(data)
            plain.shutdown(socket.SHUT_WR)
            try:
                while plain.recv(4096):
                    pass
            except ConnectionError:
                pass


def test_old_tls_is_refused(victim: Victim) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)), Line(victim.address, context):
        pass


def test_many_silent_connections_leave_room_for_others(victim: Victim) -> None:
    lines = [victim.line() for _ in range(200)]
    try:
        for line in lines:
            line.send(b"GET /healthz HTTP/1.1\r\nHost:")
        started = time.monotonic()
        assert Raw(victim.server, admin=True)("GET", "/readyz").code == 200
        assert time.monotonic() - started < 2
    finally:
        for line in lines:
            line.__exit__(None, None, None)


def test_who_never_finishes_a_request_is_cut_off(slow: dict[str, Line], victim: Victim) -> None:
    """The connections were opened with the first test of this module, so that the wait is short."""
    assert {why: line.ends(within=40) for why, line in slow.items()} == dict.fromkeys(slow, True)


@pytest.fixture(scope="module", autouse=True)
def slow(running: Victim) -> Iterator[dict[str, Line]]:
    lines = {why: running.line() for why in ("half a line", "half a head", "half a body", "half a chunk")}
    post = b"POST /healthz HTTP/1.1\r\nHost: x\r\n"
    lines["half a line"].send(b"GET /hea")
    lines["half a head"].send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    lines["half a body"].send(post + b"Content-Length: 10\r\n\r\nabc")
    lines["half a chunk"].send(post + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab")
    yield lines
    for line in lines.values():
        line.__exit__(None, None, None)
