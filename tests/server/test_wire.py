"""HTTP on a real socket: limits, order, and what happens to peers that do not behave."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trimtab.server.body import MAX_BODY
from trimtab.server.http import Response, Stream
from trimtab.server.wire import Incoming, Listener


async def echo(incoming: Incoming) -> Response | Stream:
    """Answers with the length of the body; `/stream` with three frames."""
    if incoming.path == "/stream":
        return Stream(frames=three())
    return Response(body=f"{incoming.method} {incoming.path} {len(incoming.body)}".encode(), media=b"text/plain")


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
    head = b"POST / HTTP/1.1\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % MAX_BODY
    assert (await talk(address, head + b"x" * MAX_BODY)).endswith(b"POST / %d" % MAX_BODY)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_3_mib_is_refused(address: str, chunked: bool) -> None:
    assert MAX_BODY == 3 * 1024 * 1024
    size = MAX_BODY + 1
    if chunked:
        data = b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (size, b"x" * size)
    else:
        data = b"content-length: %d\r\n\r\n%b" % (size, b"x" * size)
    answer = await talk(address, b"POST / HTTP/1.1\r\nconnection: close\r\n" + data)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"limit is 3145728" in answer


async def test_requests_on_one_connection_are_answered_in_order(address: str) -> None:
    requests = b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(50))
    answer = await talk(address, requests + b"GET /last HTTP/1.1\r\nconnection: close\r\n\r\n")
    paths = [line.split()[1] for line in answer.split(b"HTTP/1.1 200 OK")[1:] for line in [line.splitlines()[-1]]]
    assert paths == [b"/%d" % number for number in range(50)] + [b"/last"]


async def test_a_stream_is_sent_in_chunks(address: str) -> None:
    answer = await talk(address, b"GET /stream HTTP/1.1\r\nconnection: close\r\n\r\n")
    assert answer.endswith(b"2\r\n0\n\r\n2\r\n1\n\r\n2\r\n2\n\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /%zz HTTP/1.1\r\nconnection: close\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * 70_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"x%d: y\r\n" % n for n in range(200)) + b"\r\n", b"431"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
    ],
)
async def test_what_cannot_be_read_is_refused(address: str, data: bytes, code: bytes) -> None:
    assert (await talk(address, data)).startswith(b"HTTP/1.1 " + code)
