"""Where others tell us something over HTTP: a listener for an aiohttp application, on connections with patience bounds."""

from __future__ import annotations

import asyncio
import ssl

from aiohttp import web

from trimtab.runtime.webhooks.connection import Connection


class Receiver:
    """Listens from `start` to `stop`. `patience` is what a request may take to arrive, and what is under way to end."""

    def __init__(
        self, application: web.Application, host: str, port: int, tls: ssl.SSLContext | None, patience: float
    ) -> None:
        self._host, self._port, self._tls, self._patience = host, port, tls, patience
        self._runner = web.AppRunner(application, shutdown_timeout=patience)
        self._listener: asyncio.Server | None = None

    async def start(self) -> int:
        """Returns the port, which the system chooses when it was 0."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._connected, self._host, self._port, ssl=self._tls)
        self._port = int(self._listener.sockets[0].getsockname()[1])
        return self._port

    async def stop(self) -> None:
        """Take no more connections, finish what is under way."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        await self._runner.cleanup()

    def _connected(self) -> web.RequestHandler:
        assert self._runner.server is not None  # noqa: S101 - we listen
        return Connection(self._runner.server, self._patience)
