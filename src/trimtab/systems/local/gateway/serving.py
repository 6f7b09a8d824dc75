"""Serves the metrics on the loopback interface: one page, for Prometheus or for the controllers themselves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from trimtab.systems.local.gateway.metrics import TYPE

REQUEST_MAX = 16384
PATIENCE = 10.0


class MetricsServer:
    """`page` makes the text anew for each request; when it cannot, the answer is 503."""

    def __init__(self, page: Callable[[], Awaitable[bytes]]) -> None:
        self._page = page
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self, port: int = 0) -> None:
        """At this port if it is free, else at another."""
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=REQUEST_MAX)
        except OSError:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=REQUEST_MAX)
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer(request))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked is gone, or asked nothing that we serve
        finally:
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                await writer.wait_closed()

    async def _answer(self, request: bytes) -> bytes:
        method, path, *_ = (*request.split(b"\r\n", 1)[0].split(b" "), b"", b"")
        if method not in (b"GET", b"HEAD") or path.partition(b"?")[0] != b"/metrics":
            return _response("404 Not Found", b"ask for /metrics\n", method)
        try:
            return _response("200 OK", await self._page(), method)
        except Exception as error:
            return _response("503 Service Unavailable", f"{type(error).__name__}: {error}\n".encode(), method)


def _response(status: str, body: bytes, method: bytes) -> bytes:
    kind = TYPE if status.startswith("200") else "text/plain"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (b"" if method == b"HEAD" else body)
