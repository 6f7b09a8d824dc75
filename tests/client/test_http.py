"""The HTTP transport against servers that misbehave: what it waits for, what it takes, what it sends again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import orjson
import pytest

from tests.client.widgets import Widget, scheme
from trimtab.client.api import ApiClient
from trimtab.client.config import Config, ConfigError, load
from trimtab.client.credentials import Fixed, Identity, TokenFile
from trimtab.client.http import HttpTransport, Limits
from trimtab.client.protocol import Query
from trimtab.client.retry import Policy
from trimtab.client.transport import Call, Silent, Unreachable
from trimtab.client.wire import Connection
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports

WIDGET = scheme().kind_of(Widget)
GET, POST = Call(method="GET", path="/x"), Call(method="POST", path="/x", body=b"{}")


class Patient(SystemClock):
    """Time that does not pass: pauses are noted, not waited."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return super().now()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Peer:
    """A server of scripted answers, one after the other; the last one repeats. None hangs up without an answer."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.config = Config(server="")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                if b"Content-Length: " in head:
                    size = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
                    await reader.readexactly(size)
                self.requests.append(head)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if b"Connection: close" in answer:
                    break
        writer.close()


@contextlib.asynccontextmanager
async def serving(*answers: bytes | None) -> AsyncIterator[Peer]:
    peer = Peer(*answers)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    peer.config = Config(server=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield peer
    finally:
        server.close()
        for writer in peer.writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@contextlib.asynccontextmanager
async def carried(config: Config, **settings: object) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(config, **{"clock": Patient(), **settings})  # type: ignore[arg-type]
    try:
        yield transport
    finally:
        await transport.close()


def answer(code: int, body: bytes = b"{}", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {code} X", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def failed(transport: HttpTransport, call: Call = GET) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await transport.call(call)
    return caught.value


# answers


async def test_connections_are_kept_alive() -> None:
    async with serving(answer(200)) as peer, carried(peer.config) as transport:
        for _ in range(3):
            assert (await transport.call(GET)).code == 200
        assert len(peer.requests) == 3
        assert transport._wire is not None
        assert len(transport._wire._all) == 1


async def test_a_status_is_raised_as_it_is() -> None:
    status = {"kind": "Status", "code": 409, "reason": "Conflict", "message": "no", "details": {"name": "a"}}
    async with serving(answer(409, orjson.dumps(status))) as peer, carried(peer.config) as transport:
        error = await failed(transport)
    assert (error.code, error.reason, error.message, error.details) == (409, "Conflict", "no", {"name": "a"})


async def test_a_page_that_is_no_status_is_told_in_part() -> None:
    page = b"<html>\n  <b>Bad   Gateway</b>" + b"x" * 5000
    async with serving(answer(500, page)) as peer, carried(peer.config) as transport:
        error = await failed(transport)
    assert (error.code, error.reason) == (500, "InternalError")
    assert error.message.startswith("the server answered 500: <html> <b>Bad Gateway</b>xxx")
    assert len(error.message) < 300


@pytest.mark.parametrize("page", [b"<html>Please log in</html>", b"[]", b"", b'{"hello":"world"}'])
async def test_an_answer_that_is_none_of_the_api_is_an_error_like_any_other(page: bytes) -> None:
    async with serving(answer(200, page)) as peer, carried(peer.config) as transport:
        with pytest.raises(StatusError, match="the server's answer is no") as caught:
            await ApiClient(transport).list(WIDGET)
    assert caught.value.code == 500


@pytest.mark.parametrize(
    "line",
    [b"<html>", b"{}", b'{"type":"ADDED","object":{}}', b'{"type":"X","object":{"metadata":{"resourceVersion":"1"}}}'],
)
async def test_an_event_that_is_none_is_an_error_like_any_other(line: bytes) -> None:
    async with serving(chunks(line + b"\n")) as peer, carried(peer.config) as transport:
        with pytest.raises(StatusError, match="the server's"):
            await anext(ApiClient(transport).watch(WIDGET, Query(), "1"))


async def test_nothing_is_redirected() -> None:
    elsewhere = answer(302, b"", "Location: http://elsewhere.example.com/")
    async with serving(elsewhere) as peer, carried(peer.config) as transport:
        assert (await failed(transport)).code == 302


async def test_an_answer_over_the_bound_is_refused() -> None:
    async with serving(answer(200, b"x" * 2000)) as peer, carried(peer.config, limits=Limits(body=1000)) as transport:
        assert "over 1000 bytes" in (await failed(transport)).message


async def test_warnings_are_heard() -> None:
    heard: list[str] = []
    warned = answer(200, b"{}", 'Warning: 299 - "old \\"thing\\""')
    async with serving(warned) as peer, carried(peer.config, warn=heard.append) as transport:
        await transport.call(GET)
    assert heard == ['old "thing"']


# what is sent again


@pytest.mark.parametrize("code", [502, 503, 504])
async def test_a_read_is_sent_again_when_the_server_is_down(code: int) -> None:
    async with serving(answer(code), answer(code), answer(200)) as peer, carried(peer.config) as transport:
        assert (await transport.call(GET)).code == 200
        assert len(peer.requests) == 3


async def test_a_write_is_not_sent_again_when_the_server_is_down() -> None:
    async with serving(answer(503), answer(200)) as peer, carried(peer.config) as transport:
        assert (await failed(transport, POST)).code == 503
        assert len(peer.requests) == 1


async def test_a_write_whose_connection_broke_is_not_sent_again() -> None:
    async with serving(None, answer(200)) as peer, carried(peer.config) as transport:
        with pytest.raises(Unreachable, match="the connection broke"):
            await transport.call(POST)
        assert len(peer.requests) == 1


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH", "POST"])
async def test_no_write_is_sent_again_on_a_connection_that_was_kept_alive(method: str) -> None:
    async with serving(answer(200), None, answer(200)) as peer, carried(peer.config) as transport:
        await transport.call(GET)
        with pytest.raises(Unreachable, match="the connection broke"):
            await transport.call(Call(method=method, path="/x"))
        assert len(peer.requests) == 2


async def test_a_read_whose_connection_broke_is_sent_again() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{"
    async with serving(None, half, answer(200)) as peer, carried(peer.config) as transport:
        assert (await transport.call(GET)).body == b"{}"
        assert len(peer.requests) == 3


@pytest.mark.parametrize("call", [GET, POST])
async def test_who_is_told_to_come_later_comes_later(call: Call) -> None:
    clock = Patient()
    busy = answer(429, b"{}", "Retry-After: 7")
    async with serving(busy, answer(200)) as peer, carried(peer.config, clock=clock) as transport:
        assert (await transport.call(call)).code == 200
    assert [round(seconds) for seconds in clock.slept] == [7]


async def test_a_429_without_a_time_is_final() -> None:
    async with serving(answer(429), answer(200)) as peer, carried(peer.config) as transport:
        assert (await failed(transport)).reason == "TooManyRequests"
        assert len(peer.requests) == 1


async def test_where_nobody_listens_a_write_is_tried_again_too() -> None:
    clock = Patient()
    nobody = Config(server=f"http://127.0.0.1:{free_ports(1)[0]}")
    async with carried(nobody, clock=clock, policy=Policy(attempts=3)) as transport:
        with pytest.raises(Unreachable, match="does not answer: Connection refused"):
            await transport.call(POST)
    assert len(clock.slept) == 2


async def test_a_socket_that_is_not_there_is_told(tmp_path: Path) -> None:
    async with carried(Config(server=f"unix://{tmp_path}/none.sock")) as transport:
        with pytest.raises(Unreachable, match=r"none\.sock does not answer: No such file"):
            await transport.call(GET)


# silence


async def test_an_answer_that_does_not_come_is_given_up() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\n") as peer, carried(peer.config, limits=Limits(request=0.1)) as transport:
        with pytest.raises(Silent, match=r"did not answer within 0\.1 s"):
            await transport.call(POST)


async def test_a_stream_that_falls_silent_is_given_up() -> None:
    silent = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{}\n{\r\n"
    async with serving(silent) as peer, carried(peer.config) as transport:
        lines = transport.stream(GET, 0.1)
        assert await anext(lines) == b"{}"
        with pytest.raises(Silent, match=r"within 0\.1 s"):
            await anext(lines)


# streams


def chunks(*parts: bytes) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


async def test_lines_are_whole_however_they_arrive() -> None:
    async with (
        serving(chunks(b"on", b"e", b"\ntwo\nthr", b"ee\n", b"\nfour\n")) as peer,
        carried(peer.config) as transport,
    ):
        assert [line async for line in transport.stream(GET, 5)] == [b"one", b"two", b"three", b"four"]


async def test_a_line_over_the_bound_ends_the_stream() -> None:
    async with (
        serving(chunks(b"x" * 600, b"x" * 600)) as peer,
        carried(peer.config, limits=Limits(line=1000)) as transport,
    ):
        with pytest.raises(StatusError, match="over 1000 bytes"):
            await anext(transport.stream(GET, 5))


async def test_a_stream_that_breaks_is_told() -> None:
    broken = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\n{}\n\r\n"
    async with serving(broken) as peer, carried(peer.config) as transport:
        lines = transport.stream(GET, 5)
        assert await anext(lines) == b"{}"
        with pytest.raises(Unreachable, match="the connection broke"):
            await anext(lines)


async def test_a_refused_stream_is_raised() -> None:
    async with serving(answer(403)) as peer, carried(peer.config) as transport:
        with pytest.raises(StatusError) as caught:
            await anext(transport.stream(GET, 5))
    assert caught.value.code == 403


# credentials and TLS


async def test_no_credential_goes_in_the_clear() -> None:
    async with serving(answer(200)) as peer:
        config = Config(server=peer.config.server, credentials=Fixed(Identity(authorization="Bearer hush")))
        async with carried(config) as transport:
            await transport.call(GET)
        assert b"hush" not in peer.requests[0]


async def test_a_refused_token_is_read_again_and_the_call_repeated(
    trimtab_server: TrimtabServer, tmp_path: Path
) -> None:
    admin = (trimtab_server.kubeconfig.parent / "pki" / "admin.token").read_text()
    (tmp_path / "token").write_text("expired")
    found = load(trimtab_server.kubeconfig)
    config = Config(server=found.server, ca=found.ca, credentials=TokenFile(tmp_path / "token"))
    async with carried(config) as transport:
        assert (await failed(transport, Call(method="GET", path="/api"))).code == 401
        (tmp_path / "token").write_text("expired as well")
        await failed(transport, Call(method="GET", path="/api"))
        (tmp_path / "token").write_text(admin)
        assert (await transport.call(Call(method="GET", path="/api"))).code == 200


async def test_a_token_that_cannot_be_read_is_a_401_that_may_pass(
    trimtab_server: TrimtabServer, tmp_path: Path
) -> None:
    found = load(trimtab_server.kubeconfig)
    config = Config(server=found.server, ca=found.ca, credentials=TokenFile(tmp_path / "token"))
    async with carried(config) as transport:
        error = await failed(transport, Call(method="GET", path="/api"))
        assert (error.code, "the token cannot be read" in error.message) == (401, True)
        (tmp_path / "token").write_text((trimtab_server.kubeconfig.parent / "pki" / "admin.token").read_text())
        assert (await transport.call(Call(method="GET", path="/api"))).code == 200


async def test_a_certificate_that_is_not_trusted_is_refused(trimtab_server: TrimtabServer) -> None:
    async with carried(Config(server=trimtab_server.url)) as transport:
        with pytest.raises(ConfigError, match="its certificate is not trusted"):
            await transport.call(GET)


async def test_a_certificate_for_another_name_is_refused_unless_that_name_is_meant(
    trimtab_server: TrimtabServer,
) -> None:
    found = load(trimtab_server.kubeconfig)
    for name, trusted in (("localhost", True), ("elsewhere.example.com", False)):
        config = Config(server=found.server, ca=found.ca, credentials=found.credentials, tls_server_name=name)
        async with carried(config) as transport:
            if trusted:
                assert (await transport.call(Call(method="GET", path="/api"))).code == 200
            else:
                with pytest.raises(ConfigError, match="not trusted"):
                    await transport.call(GET)


async def test_verification_can_be_switched_off(trimtab_server: TrimtabServer) -> None:
    async with carried(Config(server=trimtab_server.url, verify=False)) as transport:
        assert (await transport.call(Call(method="GET", path="/version"))).code == 200


async def test_a_certificate_without_its_key_is_told(trimtab_server: TrimtabServer) -> None:
    wrong = Fixed(Identity(certificate=b"no", key=b"no"))
    async with carried(Config(server=trimtab_server.url, credentials=wrong, source="kubeconfig")) as transport:
        with pytest.raises(
            ConfigError, match="kubeconfig: the client certificate or its key cannot be used: not in PEM"
        ):
            await transport.call(GET)


# hostile answers


@pytest.mark.parametrize(
    "trailers", [b"x-more: yes\r\n" * 20_000, b"x-more: " + b"y" * 300_000], ids=["many", "one that is long"]
)
async def test_trailers_are_bounded(trailers: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    async with serving(head + trailers) as peer, carried(peer.config, policy=Policy(attempts=1)) as transport:
        with pytest.raises(Unreachable, match="too much that is no body"):
            await transport.call(GET)


async def test_a_second_answer_that_nobody_asked_for_is_not_read() -> None:
    one = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    async with serving(one + one.replace(b"{}", b"[]"), answer(200)) as peer, carried(peer.config) as transport:
        assert (await transport.call(GET)).body == b"{}"
        assert (await transport.call(GET)).body == b"{}", "on a connection of its own"


async def test_a_stream_may_be_announced() -> None:
    """By a head of its own, which comes first and is not the answer's."""
    connection = Connection(asyncio.get_running_loop(), set())
    connection.connection_made(Nowhere())
    asked = asyncio.create_task(connection.ask(b"", stream=True, limit=100, within=5.0))
    await asyncio.sleep(0)
    connection.data_received(b"HTTP/1.1 100 Continue\r\n\r\n")
    await asyncio.sleep(0)
    connection.data_received(chunks(b"{}\n"))
    answer = await asked
    assert answer.code == 200
    assert await anext(answer.chunks(5.0)) == b"{}\n"


async def test_a_time_that_was_set_for_one_answer_does_not_end_the_next() -> None:
    """The connection keeps its timer: it may ring while a later answer still has its time."""
    connection = Connection(asyncio.get_running_loop(), set())
    connection.connection_made(Nowhere())
    for within in (0.05, 30.0):
        asked = asyncio.create_task(connection.ask(b"", stream=False, limit=100, within=within))
        await asyncio.sleep(0)
        if within > 1:
            await asyncio.sleep(0.1)  # past the first one's time, which is the thing to wait for here
        connection.data_received(answer(200))
        assert (await asked).body == b"{}"
    asked = asyncio.create_task(connection.ask(b"", stream=False, limit=100, within=0.05))
    with pytest.raises(TimeoutError):
        await asked
    connection.abort()


class Nowhere(asyncio.Transport):
    """Takes what is written and brings nothing."""

    def write(self, data: object) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None: ...


async def test_a_change_of_protocol_is_no_answer() -> None:
    switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nnonsense"
    async with serving(switch) as peer, carried(peer.config, policy=Policy(attempts=1)) as transport:
        with pytest.raises(Unreachable):
            await transport.call(GET)
