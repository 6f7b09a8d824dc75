"""What goes wrong on the way to a Git server, played by a proxy before a real one; and servers that are hostile.

The proxy sees bytes only, so it is good for every transport. What is not a fault passes as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import msgspec

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Faults(msgspec.Struct, kw_only=True):
    """What to do; it may be changed while the proxy runs, for connections to come."""

    refuse: bool = False
    """Close connections at once."""
    stall_after: int | None = None
    """Silent, with the connection open, after so many bytes of the server's."""
    die_after_sent: int | None = None
    """The connection ends after so many bytes of the client's came through."""
    deaf_after: bytes | None = None
    """From the moment the client says this, nothing of the server's answers comes back: it did the work and died."""
    when_said: tuple[bytes, Callable[[], None]] | None = None
    """Once, when the client says this and before the server hears it: somebody else is faster."""


class FaultyWay:
    """A proxy before `port` on loopback, from `async with` on. `port` is then its own."""

    def __init__(self, target: int, faults: Faults | None = None) -> None:
        self.target, self.faults, self.port = target, faults or Faults(), 0
        self.connections = 0
        self.stalled = asyncio.Event()
        """A client waits for what does not come."""
        self._server: HostileServer | None = None

    async def __aenter__(self) -> Self:
        self._server = await HostileServer(self._serve).__aenter__()
        self.port = self._server.port
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None  # noqa: S101 - entered
        await self._server.__aexit__(kind, error, trace)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.faults.refuse:
            return
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target)
        deaf = asyncio.Event()
        up = asyncio.ensure_future(self._up(reader, there_writer, deaf))
        down = asyncio.ensure_future(self._down(there_reader, writer, deaf))
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            if up.done() and up.result():  # the client has said all it has; it still listens
                await asyncio.wait({down})
        finally:
            there_writer.close()  # before anything that could be cancelled
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
            await _closed(there_writer)

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, deaf: asyncio.Event) -> bool:
        faults, sent, heard = self.faults, 0, b""
        while piece := await reader.read(65536):
            heard = heard[-256:] + piece
            if faults.when_said and faults.when_said[0] in heard:
                (_, act), faults.when_said = faults.when_said, None
                await asyncio.to_thread(act)
            if faults.deaf_after is not None and faults.deaf_after in heard:
                deaf.set()
            if faults.die_after_sent is not None and sent + len(piece) > faults.die_after_sent:
                writer.write(piece[: max(0, faults.die_after_sent - sent)])
                await writer.drain()
                return False
            writer.write(piece)
            await writer.drain()
            sent += len(piece)
        with contextlib.suppress(OSError, NotImplementedError):
            writer.write_eof()
        return True

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, deaf: asyncio.Event) -> None:
        faults, passed = self.faults, 0
        while piece := await reader.read(65536):
            if deaf.is_set():
                continue  # until the server has finished: its work is done, and nobody is told
            if faults.stall_after is not None and passed + len(piece) > faults.stall_after:
                self.stalled.set()
                await asyncio.Event().wait()
            writer.write(piece)
            await writer.drain()
            passed += len(piece)


class HostileServer:
    """Whatever `serve` does with each connection, on loopback, from `async with` on."""

    def __init__(self, serve: Serve) -> None:
        self._serve, self.port = serve, 0
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        while self._connections:
            task, writer = self._connections.popitem()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await _closed(writer)  # one that was cancelled before it began has not done it
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._attend(reader, writer))
        self._connections[task] = writer
        task.add_done_callback(lambda done: self._connections.pop(done, None))

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            await _closed(writer)


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def line(text: bytes) -> bytes:
    """A packet of Git's protocol: its length in four hex digits, then it."""
    return b"%04x" % (len(text) + 4) + text


async def endless_refs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """git://, protocol version 0: branches without an end."""
    await reader.read(4096)
    number = 0
    while True:
        oid = b"%040x" % (number + 1)
        more = b"\0 side-band-64k" if number == 0 else b""
        writer.write(line(oid + b" refs/heads/branch-%d" % number + more + b"\n"))
        number += 1
        if number % 100 == 0:
            await writer.drain()


async def endless_pack(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """git://, protocol version 0: one branch, and a pack of random bytes that does not end."""
    import os
    import struct
    import zlib

    await reader.read(4096)
    oid = b"1" * 40
    writer.write(line(oid + b" refs/heads/main\0 side-band-64k ofs-delta\n") + b"0000")
    await writer.drain()
    heard = b""
    while b"done\n" not in heard:
        piece = await reader.read(4096)
        if not piece:
            return
        heard += piece
    writer.write(line(b"NAK\n"))
    packed = zlib.compressobj(0)
    size = 1 << 40
    header, rest = [(3 << 4) | (size & 15)], size >> 4
    while rest:
        header[-1] |= 0x80
        header.append(rest & 0x7F)
        rest >>= 7
    writer.write(line(b"\1PACK" + struct.pack(">II", 2, 1) + bytes(header)))
    while True:
        piece = packed.compress(os.urandom(60_000))
        for at in range(0, len(piece), 60_000):
            writer.write(line(b"\1" + piece[at : at + 60_000]))
        await writer.drain()


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers to nothing, and keeps the line open."""
    await reader.read(4096)
    writer.write(b"0")
    await writer.drain()
    await reader.read()
