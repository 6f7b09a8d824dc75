"""A socket in the loop, plain and with TLS, against a server of asyncio's own."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trimtab.client.sockets import Socket, connect
from trimtab.testing.pki import Authority

LARGE = bytes(range(256)) * 40_000  # ten megabytes: more than any buffer of the system takes


class Heard(asyncio.Protocol):
    """Notes what a socket tells."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.came = asyncio.Event()
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.ended = False
        self.socket: Socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, Socket)
        self.socket = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.came.set()

    def eof_received(self) -> None:
        self.ended = True

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)  # a second call would raise

    async def has(self, size: int) -> None:
        while len(self.data) < size:
            self.came.clear()
            await self.came.wait()


class Serving:
    """One connection's other side."""

    def __init__(
        self, port: int, context: ssl.SSLContext | None, arrivals: asyncio.Queue[asyncio.StreamWriter]
    ) -> None:
        self.port = port
        self.context = context
        self.arrivals = arrivals
        self.readers: list[asyncio.StreamReader] = []

    async def joined(self) -> tuple[Heard, asyncio.StreamReader, asyncio.StreamWriter]:
        heard = Heard()
        await connect(("127.0.0.1", self.port), self.context, "localhost", heard)
        writer = await self.arrivals.get()
        return heard, self.readers[-1], writer


@pytest.fixture(params=["plain", "tls"])
async def serving(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Serving]:
    ours: ssl.SSLContext | None = None
    theirs: ssl.SSLContext | None = None
    if request.param == "tls":
        authority = Authority(tmp_path)
        pair = authority.server("server", hosts=("localhost",))
        ours = ssl.create_default_context(cafile=str(authority.certificate))
        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        theirs.load_cert_chain(pair.certificate, pair.key)
    arrivals: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    kept: list[asyncio.StreamWriter] = []

    async def arrived(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.readers.append(reader)
        kept.append(writer)
        arrivals.put_nowait(writer)

    server = await asyncio.start_server(arrived, "127.0.0.1", 0, ssl=theirs)
    made = Serving(server.sockets[0].getsockname()[1], ours, arrivals)
    try:
        yield made
    finally:
        server.close()
        for writer in kept:
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def test_what_does_not_fit_into_the_system_goes_out_later_and_in_order(serving: Serving) -> None:
    heard, reader, _ = await serving.joined()
    heard.socket.write(LARGE)
    heard.socket.write(b"the end")
    assert await reader.readexactly(len(LARGE)) == LARGE
    assert await reader.readexactly(7) == b"the end"
    heard.socket.abort()


async def test_all_that_is_sent_comes_in_order(serving: Serving) -> None:
    heard, _, writer = await serving.joined()
    writer.write(LARGE)
    await heard.has(len(LARGE))
    assert bytes(heard.data) == LARGE
    heard.socket.abort()


async def test_who_pauses_hears_nothing_until_he_resumes(serving: Serving) -> None:
    heard, reader, writer = await serving.joined()
    heard.socket.pause_reading()
    heard.socket.pause_reading()
    writer.write(LARGE)
    heard.socket.write(b"are you there")
    await reader.readexactly(13)
    assert not heard.data
    heard.socket.resume_reading()
    heard.socket.resume_reading()
    await heard.has(len(LARGE))
    heard.socket.abort()


async def test_the_end_of_the_other_side_is_told_and_ends_the_connection(serving: Serving) -> None:
    heard, _, writer = await serving.joined()
    writer.close()
    assert await heard.lost is None
    assert heard.ended
    assert heard.socket.is_closing()
    heard.socket.write(b"nobody hears this")


async def test_an_abort_is_told_once_and_not_within_the_call(serving: Serving) -> None:
    heard, _, _ = await serving.joined()
    heard.socket.abort()
    heard.socket.abort()
    assert not heard.lost.done()
    assert await heard.lost is None


async def test_a_connection_that_is_reset_is_told_as_such(serving: Serving) -> None:
    heard, _, writer = await serving.joined()
    heard.socket.pause_reading()  # so that the write finds out
    writer.transport.abort()
    while not heard.lost.done():
        heard.socket.write(LARGE)
        await asyncio.wait({heard.lost}, timeout=0.01)
    assert isinstance(await heard.lost, OSError)


async def test_a_handshake_that_is_given_up_leaves_no_socket_behind() -> None:
    """An open one would be a ResourceWarning, and warnings are errors."""
    arrivals: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    server = await asyncio.start_server(lambda reader, writer: arrivals.put_nowait(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    opening = asyncio.create_task(connect(("127.0.0.1", port), ssl.create_default_context(), "localhost", Heard()))
    writer = await arrivals.get()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    writer.close()
    await writer.wait_closed()
    server.close()


async def test_the_failure_to_connect_is_that_of_the_last_address() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(ConnectionRefusedError):
        await connect(("localhost", port), None, None, Heard())
