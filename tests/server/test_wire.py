"""HTTP on a real socket: limits, order, and what happens to peers that do not behave."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trimtab.model.errors import StatusError
from trimtab.server.body import MAX_BODY
from trimtab.server.http import Response, Stream, error_response
from trimtab.server.streaming import gathered
from trimtab.server.wire import Incoming, Listener


async def echo(incoming: Incoming) -> Response | Stream:
    """Answers with the length of the body; `/stream` with three frames."""
    if incoming.path == "/stream":
        return Stream(frames=three())
    body = incoming.body
    if incoming.gathers and incoming.stream is not None:
        try:
            body = await gathered(incoming.stream, MAX_BODY)
        except StatusError as error:
            return error_response(error)
    return Response(body=f"{incoming.method} {incoming.path} {len(body)}".encode(), media=b"text/plain")


async def three() -> AsyncIterator[bytes]:
    for number in range(3):
        yield b"%d\n" % number


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    listener = Listener(echo)
    await listener.listen_unix(str(tmp_path / "s"))
    yield str(tmp_path / "s")
    await listener.close()


async def talk(address: str, data: bytes) -> bytes:
    """What comes back until the server closes the connection."""
    reader, writer = await asyncio.open_unix_connection(address)
    writer.write(data)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


async def test_a_body_up_to_the_limit_is_taken(address: str) -> None:
    head = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % MAX_BODY
    assert (await talk(address, head + b"x" * MAX_BODY)).endswith(b"POST / %d" % MAX_BODY)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_3_mib_is_refused(address: str, chunked: bool) -> None:
    assert MAX_BODY == 3 * 1024 * 1024
    size = MAX_BODY + 1
    if chunked:
        data = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (size, b"x" * size)
    else:
        data = b"content-length: %d\r\n\r\n%b" % (size, b"x" * size)
    answer = await talk(address, b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + data)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"limit is 3145728" in answer


async def test_requests_on_one_connection_are_answered_in_order(address: str) -> None:
    requests = b"".join(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % number for number in range(50))
    answer = await talk(address, requests + b"GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    paths = [line.split()[1] for line in answer.split(b"HTTP/1.1 200 OK")[1:] for line in [line.splitlines()[-1]]]
    assert paths == [b"/%d" % number for number in range(50)] + [b"/last"]


async def test_a_stream_is_sent_in_chunks(address: str) -> None:
    answer = await talk(address, b"GET /stream HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert answer.endswith(b"2\r\n0\n\r\n2\r\n1\n\r\n2\r\n2\n\r\n0\r\n\r\n")


async def test_a_connection_that_is_cut_off_in_an_answer_is_let_go_of_at_once(tmp_path: Path) -> None:
    """With what it has buffered; the garbage collector comes late, and pauses everybody."""
    begun, gone = asyncio.Event(), asyncio.Event()

    async def endless(incoming: Incoming) -> Stream:
        return Stream(frames=frames())

    async def frames() -> AsyncIterator[bytes]:
        while True:
            begun.set()
            yield b"x" * 65536

    listener = Listener(endless)
    await listener.listen_unix(str(tmp_path / "s"))
    gc.collect()
    gc.disable()
    try:
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        async with asyncio.timeout(10):
            await begun.wait()
            (watched,) = (weakref.ref(one, lambda _: gone.set()) for one in listener._connections)
            writer.transport.abort()
            await gone.wait()
        assert watched() is None
    finally:
        gc.enable()
        await listener.close()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /%zz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 70_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nhost: x\r\n" + b"".join(b"x%d: y\r\n" % n for n in range(200)) + b"\r\n", b"431"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n", b"414"),
    ],
)
async def test_what_cannot_be_read_is_refused(address: str, data: bytes, code: bytes) -> None:
    assert (await talk(address, data)).startswith(b"HTTP/1.1 " + code)


async def test_trailers_are_no_headers(tmp_path: Path) -> None:
    """A proxy in front strips headers that say who asks; trailers it may let pass."""
    seen: list[Incoming] = []

    async def keep(incoming: Incoming) -> Response:
        seen.append(incoming)
        assert incoming.stream is not None
        incoming.body = await gathered(incoming.stream, MAX_BODY)
        return Response(body=b"{}")

    listener = Listener(keep, proxied=(b"x-remote-",))
    await listener.listen_unix(str(tmp_path / "s"))
    head = (
        b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-remote-user: ann\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    trailers = b"authorization: Bearer x\r\nimpersonate-user: eve\r\nx-remote-group: system:masters\r\n"
    await talk(str(tmp_path / "s"), head + b"2\r\n{}\r\n0\r\n" + trailers + b"\r\n")
    await listener.close()
    assert (seen[0].body, seen[0].impersonation) == (b"{}", ())
    assert seen[0].proxied == ((b"x-remote-user", b"ann"),)
    assert b"authorization" not in seen[0].headers


async def test_of_two_headers_that_may_come_once_the_first_counts(tmp_path: Path) -> None:
    seen: list[Incoming] = []

    async def keep(incoming: Incoming) -> Response:
        seen.append(incoming)
        return Response(body=b"{}")

    listener = Listener(keep)
    await listener.listen_unix(str(tmp_path / "s"))
    twice = b"authorization: Bearer one\r\nauthorization: Bearer two\r\n"
    await talk(str(tmp_path / "s"), b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + twice + b"\r\n")
    await listener.close()
    assert seen[0].headers[b"authorization"] == b"Bearer one"


async def test_spaces_around_a_name_are_none_of_it(tmp_path: Path) -> None:
    seen: list[Incoming] = []

    async def keep(incoming: Incoming) -> Response:
        seen.append(incoming)
        return Response(body=b"{}")

    listener = Listener(keep, proxied=(b"x-remote-",))
    await listener.listen_unix(str(tmp_path / "s"))
    said = b"impersonate-user: \t bob \t\r\nx-remote-user: ann  \r\n"
    await talk(str(tmp_path / "s"), b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + said + b"\r\n")
    await listener.close()
    assert seen[0].impersonation == ((b"impersonate-user", b"bob"),)
    assert seen[0].proxied == ((b"x-remote-user", b"ann"),)


async def test_a_transfer_encoding_that_is_not_undone_is_refused(address: str) -> None:
    head = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n"
    answer = await talk(address, head + b"2\r\n{}\r\n0\r\n\r\nGET /second HTTP/1.1\r\nhost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 501 ")
    assert b"second" not in answer


async def test_a_body_that_says_it_is_too_long_is_refused_before_it_comes(address: str) -> None:
    reader, writer = await asyncio.open_unix_connection(address)
    writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n")
    async with asyncio.timeout(10):
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
    writer.close()


async def test_a_large_body_is_asked_about_before_it_is_whole(tmp_path: Path) -> None:
    async def refuse(incoming: Incoming) -> Response:
        assert incoming.gathers
        return Response(code=403)

    listener = Listener(refuse)
    await listener.listen_unix(str(tmp_path / "s"))
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
    writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\n" + b"x" * 1000)
    async with asyncio.timeout(10):
        assert (await reader.readline()).startswith(b"HTTP/1.1 403 ")
    writer.close()
    await listener.close()


async def test_a_large_body_leaves_the_connection_to_the_next_request(address: str) -> None:
    post = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n" + b"x" * 100_000
    answer = await talk(address, post + post + b"GET /end HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert answer.count(b"POST / 100000") == 2
    assert answer.endswith(b"GET /end 0")


async def test_who_asks_for_another_protocol_gets_one_answer_in_this_one(address: str) -> None:
    answer = await talk(address, b"GET /a HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in answer


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"GET / HTTP/1.1\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 99, 200),
        (b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 100, 431),
        (b"GET / HTTP/1.0\r\n", 200),
        (b"GET / HTTP/2.0\r\nhost: x\r\n", 505),
        (b"GET / HTTP/0.9\r\nhost: x\r\n", 505),
    ],
)
async def test_a_head_is_checked_as_others_check_it(address: str, head: bytes, code: int) -> None:
    closing = b"" if head.count(b"\r\n") > 99 or b"1.0" in head else b"connection: close\r\n"
    reader, writer = await asyncio.open_unix_connection(address)
    writer.write(head + closing + b"\r\n")
    async with asyncio.timeout(10):
        assert (await reader.readline()).startswith(b"HTTP/1.1 %d " % code)
    writer.close()
