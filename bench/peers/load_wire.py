"""Just enough HTTP/1.1 over TLS for load: one kept connection, whole answers, and watches line by line."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import urlsplit


class Way(NamedTuple):
    """How to get in. It goes to other processes, so it is plain text."""

    url: str
    ca: str
    certificate: str
    key: str
    token: str

    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key)
        return context


class Connection:
    """One at a time. `small` keeps the kernel from taking in what its reader does not read."""

    def __init__(self, way: Way, context: ssl.SSLContext, *, small: bool = False) -> None:
        self._way, self._context, self._small = way, context, small
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._reader is None or self._writer is None:
            place = urlsplit(self._way.url)
            raw = socket.socket()
            raw.setblocking(False)
            if self._small:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
            await asyncio.get_running_loop().sock_connect(raw, (place.hostname, place.port))
            self._reader, self._writer = await asyncio.open_connection(
                sock=raw, ssl=self._context, server_hostname=place.hostname, limit=64 * 1024
            )
        return self._reader, self._writer

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None

    async def _head(self, method: str, path: str, body: bytes, media: str) -> tuple[int, dict[bytes, bytes]]:
        reader, writer = await self._open()
        head = f"{method} {path} HTTP/1.1\r\nhost: load\r\naccept: application/json\r\ncontent-length: {len(body)}\r\n"
        head += f"content-type: {media}\r\n" if body else ""
        head += f"authorization: Bearer {self._way.token}\r\n" if self._way.token else ""
        writer.write(head.encode() + b"\r\n" + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), headers

    async def call(
        self, method: str, path: str, body: bytes = b"", media: str = "application/json"
    ) -> tuple[int, bytes]:
        code, headers = await self._head(method, path, body, media)
        reader, _ = await self._open()
        if b"chunked" in headers.get(b"transfer-encoding", b""):
            return code, b"".join([chunk async for chunk in _chunks(reader)])
        return code, await reader.readexactly(int(headers.get(b"content-length", b"0")))

    async def watch(self, path: str, pace: Pace) -> AsyncIterator[bytes]:
        """Lines until the server ends the stream; OSError or EOFError when it breaks off."""
        code, headers = await self._head("GET", path, b"", "")
        reader, _ = await self._open()
        if code != 200:
            body = await reader.readexactly(int(headers.get(b"content-length", b"0")))
            yield b'{"type":"ERROR","object":%b}' % body.strip()
            return
        async for chunk in _chunks(reader):
            await pace(len(chunk))
            for line in chunk.splitlines():
                yield line


class Pace:
    """How fast a reader reads: as fast as it can. A slow one overrides it."""

    async def __call__(self, size: int) -> None:
        return None


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
