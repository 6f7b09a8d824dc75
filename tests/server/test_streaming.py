"""Bodies that are read as they come: on a real socket, with peers that are slow, too fast, or gone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trimtab.model.errors import StatusError
from trimtab.server.http import Response, Stream, error_response
from trimtab.server.streaming import HIGH_WATER, BodyStream, Cut
from trimtab.server.wire import Incoming, Listener

PUT = b"PUT /apis/a/v1/namespaces/n/things/x/artifacts/"
MIB = 1 << 20


class Reader:
    """A handler whose reading a test steers."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.began = asyncio.Event()
        self.ended: asyncio.Queue[int | BaseException] = asyncio.Queue()

    async def __call__(self, incoming: Incoming) -> Response | Stream:
        if incoming.path.endswith("/file"):
            return Stream(frames=two(), media=b"text/plain", length=6, headers=((b"etag", b'"x"'),))
        if incoming.stream is None:
            return Response(body=b"plain %d" % len(incoming.body), media=b"text/plain")
        assert incoming.body == b""
        if incoming.path.endswith("/refused"):
            return Response(code=413, body=b"too large", media=b"text/plain")
        self.began.set()
        await self.go.wait()
        size = 0
        try:
            async for piece in incoming.stream:
                size += len(piece)
        except StatusError as error:
            return error_response(error)
        except BaseException as error:
            self.ended.put_nowait(error)
            raise
        self.ended.put_nowait(size)
        return Response(body=b"read %d of %d" % (size, incoming.stream.length or -1), media=b"text/plain")


async def two() -> AsyncIterator[bytes]:
    yield b"abc"
    yield b"def"


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
async def address(tmp_path: Path, reader: Reader) -> AsyncIterator[str]:
    listener = Listener(reader)
    await listener.listen_unix(str(tmp_path / "s"))
    yield str(tmp_path / "s")
    await listener.close()


async def until_closed(stream: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(10):
        return await stream.read()


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_of_many_times_the_usual_limit_is_read_piece_by_piece(
    address: str, reader: Reader, chunked: bool
) -> None:
    incoming, outgoing = await asyncio.open_unix_connection(address)
    framing = b"transfer-encoding: chunked" if chunked else b"content-length: %d" % (20 * MIB)
    outgoing.write(PUT + b"big HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + framing + b"\r\n\r\n")
    for _ in range(20):
        outgoing.write(b"%x\r\n%b\r\n" % (MIB, b"x" * MIB) if chunked else b"x" * MIB)
        await outgoing.drain()
    if chunked:
        outgoing.write(b"0\r\n\r\n")
    answer = await until_closed(incoming)
    assert answer.endswith(b"read %d of %d" % (20 * MIB, -1 if chunked else 20 * MIB))
    outgoing.close()


async def test_a_slow_reader_makes_the_sender_wait(address: str, reader: Reader) -> None:
    reader.go.clear()
    incoming, outgoing = await asyncio.open_unix_connection(address)
    outgoing.transport.set_write_buffer_limits(high=64 * 1024)
    outgoing.write(PUT + b"big HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % (32 * MIB))
    await reader.began.wait()
    sent = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.4):
            while sent < 32:
                outgoing.write(b"x" * MIB)
                sent += 1
                await outgoing.drain()
    assert sent < 16  # the rest waits on the sender's side
    reader.go.set()
    outgoing.write(b"x" * MIB * (32 - sent))
    assert (await until_closed(incoming)).endswith(b"read %d of %d" % (32 * MIB, 32 * MIB))
    outgoing.close()


async def test_a_body_that_is_cut_off_is_never_taken_for_a_whole_one(address: str, reader: Reader) -> None:
    _, outgoing = await asyncio.open_unix_connection(address)
    outgoing.write(PUT + b"big HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nonly this")
    await reader.began.wait()
    outgoing.close()
    async with asyncio.timeout(5):
        assert isinstance(await reader.ended.get(), asyncio.CancelledError | Cut)


async def test_an_answer_before_the_end_of_the_body_arrives_and_ends_the_connection(address: str) -> None:
    incoming, outgoing = await asyncio.open_unix_connection(address)
    outgoing.write(PUT + b"refused HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (8 * MIB))
    outgoing.write(b"x" * 8 * MIB)
    answer = await until_closed(incoming)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer
    outgoing.close()


async def test_who_expects_a_continue_gets_it_when_the_body_is_wanted(address: str, reader: Reader) -> None:
    reader.go.clear()
    incoming, outgoing = await asyncio.open_unix_connection(address)
    outgoing.write(
        PUT + b"big HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\nconnection: close\r\ncontent-length: 3\r\n\r\n"
    )
    await reader.began.wait()
    reader.go.set()
    async with asyncio.timeout(5):
        assert await incoming.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    outgoing.write(b"abc")
    assert (await until_closed(incoming)).endswith(b"read 3 of 3")
    outgoing.close()


async def test_requests_after_a_streamed_one_are_answered_on_the_same_connection(address: str) -> None:
    incoming, outgoing = await asyncio.open_unix_connection(address)
    put = PUT + b"a HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc"
    outgoing.write(put + put + b"PUT / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\nab")
    answer = await until_closed(incoming)
    assert answer.count(b"read 3 of 3") == 2
    assert answer.endswith(b"plain 2")
    outgoing.close()


async def test_an_answer_of_known_length_is_sent_as_it_is(address: str) -> None:
    incoming, outgoing = await asyncio.open_unix_connection(address)
    outgoing.write(b"HEAD /file HTTP/1.1\r\nhost: x\r\n\r\nGET /file HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    answer = await until_closed(incoming)
    assert answer.count(b"content-length: 6\r\n") == 2
    assert answer.count(b'etag: "x"') == 2
    assert answer.endswith(b"\r\n\r\nabcdef")
    assert answer.count(b"abcdef") == 1
    outgoing.close()


async def test_a_body_that_stops_coming_is_given_up() -> None:
    body = BodyStream(length=9, begin=lambda: None, pause=lambda: None, resume=lambda: None, patience=0.01)
    body.feed(b"abc")
    with pytest.raises(StatusError, match="stopped coming") as raised:
        async for _ in body:
            pass
    assert raised.value.code == 408


async def test_what_waits_is_bounded_and_reading_goes_on_when_it_was_read() -> None:
    calls: list[str] = []
    body = BodyStream(
        length=None, begin=lambda: None, pause=lambda: calls.append("pause"), resume=lambda: calls.append("resume")
    )
    for _ in range(4):
        body.feed(b"x" * (HIGH_WATER // 2))
    assert calls == ["pause"]
    body.end()
    assert sum([len(piece) async for piece in body]) == 2 * HIGH_WATER
    assert calls == ["pause", "resume"]
