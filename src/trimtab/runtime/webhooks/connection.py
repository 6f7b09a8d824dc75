"""One connection of a webhook server: it ends when the head of a request takes too long, be it the first or a later one.

aiohttp has one time limit only, for a connection on which no request is under way. It must be long, for API servers keep
idle connections; so it does not help against a client that begins a request and goes silent.

Caveat: a head that begins in the same packet in which the body before it ends has the time of an idle connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

IDLE = 120.0  # API servers close theirs after 90 s; were we the first, a request could meet a closed connection
LINGER = 2.0  # for the rest of a body that nobody wants any more


class Connection(web.RequestHandler):
    """`patience` is for a head: since the connection was made, or since its first byte when the connection was idle."""

    __slots__ = ("_asking", "_due", "_patience")

    def __init__(self, server: web.Server, patience: float) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]
            auto_decompress=False,
            keepalive_timeout=IDLE,
            lingering_time=LINGER,
        )
        self._patience = patience
        self._due: asyncio.TimerHandle | None = None
        self._asking = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        if not self._asking and self._due is None:
            self._expect()
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._expected()
        super().connection_lost(exc)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While a request is under way; its body and its work have limits of their own."""
        self._expected()
        self._asking = True
        try:
            yield
        finally:
            self._asking = False

    def _expect(self) -> None:
        self._due = asyncio.get_running_loop().call_later(self._patience, self._cut_off)

    def _expected(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _cut_off(self) -> None:
        self._due = None
        if self.transport is not None:
            self.transport.abort()
