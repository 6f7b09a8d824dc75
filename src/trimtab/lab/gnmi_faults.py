"""How a gNMI device may misbehave, and the front that lets it do so on the wire.

A front takes the connections of a device and passes their bytes to its server, which listens at a unix socket. It costs
a hop, so only a device that is to misbehave has one.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from pathlib import Path

CHUNK = 64 * 1024


class Fault(enum.Enum):
    NONE = "none"
    HANG = "hang"
    """It takes a call and never answers."""
    HANG_ON_GET = "hang-on-get"
    GO_AWAY = "go-away"
    """It cuts the connection in the middle of a Get."""
    GARBAGE = "garbage"
    """It sends bytes that are no HTTP/2."""
    DRIP = "drip"
    """It sends one byte a second."""
    SILENT = "silent"
    """It takes connections and says nothing."""
    BREAK = "break"
    """It takes a connection and closes it."""
    ONE_BAD_PATH = "one-bad-path"
    """A Get with a path that it does not have fails as a whole, as SR Linux does."""
    EMPTY = "empty"
    """It answers a Get with nothing."""
    HUGE = "huge"
    """Its Capabilities are larger than anybody should take."""


ON_THE_WIRE = frozenset({Fault.GO_AWAY, Fault.GARBAGE, Fault.DRIP, Fault.SILENT, Fault.BREAK})


class Front:
    """Listens from `start` to `close`. `fault` may be changed meanwhile, for the connections that follow."""

    def __init__(self, server: Path, fault: Fault) -> None:
        self.fault = fault
        self.connections = 0
        """How many were taken so far."""
        self._server = server
        self._listeners: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    async def start(self, address: str, port: int) -> int:
        listener = await asyncio.start_server(self._take, address, port)
        self._listeners.append(listener)
        return int(listener.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """Every connection, at once."""
        for writer in self._writers:
            writer.transport.abort()

    async def close(self) -> None:
        self._ended.set()
        for listener in self._listeners:
            listener.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with contextlib.suppress(ConnectionError):
                if self.fault in ON_THE_WIRE - {Fault.GO_AWAY}:
                    await self._misbehave(reader, writer)
                else:
                    await self._pass(reader, writer)
        finally:
            writer.close()
            self._writers.discard(writer)

    async def _misbehave(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.fault is Fault.GARBAGE:
            writer.write(b"login: \xff\xfe who are you?\r\n" * 8)
        if self.fault is Fault.DRIP:
            for byte in b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" * 64:
                writer.write(bytes((byte,)))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), 1)
                    return
        if self.fault is not Fault.BREAK:
            while await reader.read(CHUNK):
                pass

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(self._server)
        try:
            await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))
        finally:
            inner_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
