"""A proxy on loopback between a client and a server, which a test can make behave badly.

It knows bytes only, so it stands before TLS too; `answer` needs plain HTTP, as it is spoken on the unix socket.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self


class Mode(enum.Enum):
    PASS = "pass"
    REFUSE = "refuse"  # connections are closed as soon as they come
    HANG = "hang"  # connections are taken, and nothing comes through
    ANSWER = "answer"  # each request is answered here


Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class FaultProxy:
    """`address` is where it listens: a port of 127.0.0.1, or the path of a unix socket."""

    def __init__(self, upstream: int | Path, listen: Path | None = None) -> None:
        self.mode = Mode.PASS
        self.connections = 0  # that came, whatever became of them
        self.reply = b""
        self._upstream = upstream
        self._listen = listen
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        if self._listen is not None:
            self._server = await asyncio.start_unix_server(self._accept, self._listen)
        else:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
            self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._open, return_exceptions=True)
        await asyncio.sleep(0)  # transports close at the loop's next turn

    def cut(self) -> None:
        """Break every connection that is open."""
        for task in self._open:
            task.cancel()

    def refuse(self) -> None:
        self.mode = Mode.REFUSE
        self.cut()

    def hang(self) -> None:
        """From now on nothing comes through, in either direction; nobody is told."""
        self.mode = Mode.HANG
        self._flowing.clear()

    def answer(self, code: int, *headers: str) -> None:
        """Answer each request so, instead of the server."""
        self.mode = Mode.ANSWER
        head = [f"HTTP/1.1 {code} No", "Content-Length: 0", "Connection: close", *headers, "", ""]
        self.reply = "\r\n".join(head).encode()
        self.cut()

    def heal(self) -> None:
        """All well again. What hung is broken: its bytes would come too late."""
        stale = self.mode is Mode.HANG
        self.mode = Mode.PASS
        self._flowing.set()
        if stale:
            self.cut()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        task.add_done_callback(lambda _: writer.close())  # it may have been cut before it began

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.mode is Mode.ANSWER:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(self.reply)
                await writer.drain()
                return
            if self.mode is Mode.REFUSE:
                return
            await self._flowing.wait()
            up_reader, up_writer = await self._connected()
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._carry(reader, up_writer))
                    both.create_task(self._carry(up_reader, writer))
            finally:
                up_writer.transport.abort()
        except (OSError, ExceptionGroup, asyncio.IncompleteReadError):
            pass  # a broken connection is what this is about

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._upstream, Path):
            return await asyncio.open_unix_connection(self._upstream)
        return await asyncio.open_connection("127.0.0.1", self._upstream)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError  # one side ended, so the other does
