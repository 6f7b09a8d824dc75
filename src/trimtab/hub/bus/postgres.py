"""The bus over PostgreSQL's LISTEN and NOTIFY: no server besides the database. Needs the extra `trimtab[postgres]`.

The order is the database's own: notifications come to every listener in the order of the commits that sent them. One
connection listens and speaks; when it ends, so does the session. A notification has less than 8000 bytes, so longer
messages go in parts, all in one transaction.

Caveat: a connection pooler that gives connections away between transactions (PgBouncer's transaction mode) cannot listen.
Whoever may connect to the database may listen: say nothing here that is secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Any

import asyncpg

from trimtab.hub.bus.contract import MAX_MESSAGE, BusError, Lost
from trimtab.hub.bus.inbox import Inbox
from trimtab.hub.bus.parts import Joiner, split
from trimtab.storage.postgres_url import cleaned, tls_of

CHANNEL = "trimtab_hub_bus"
"""Not that of the storage's log: who follows that one need not wake at every beat."""
MAX_PAYLOAD = 7900

_BROKEN = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class PostgresBus:
    """Fulfils `Bus`. Hubs that share a database and are not one have other channels (a name in lower case)."""

    def __init__(self, url: str, *, channel: str = CHANNEL, timeout: float = 5.0) -> None:
        if not channel.isidentifier() or channel != channel.lower() or len(channel) > 30:
            raise ValueError(f"the channel must be a lower case name of at most 30 letters, not {channel!r}")
        self._url = url
        self._channel = channel
        self._timeout = timeout

    async def open(self, replica: str) -> PostgresSession:
        try:
            connection = await asyncpg.connect(
                self._url, timeout=self._timeout, command_timeout=self._timeout, **tls_of(self._url)
            )
        except (*_BROKEN, ValueError) as error:
            raise Lost(f"PostgreSQL cannot be reached: {self.cleaned(error)}") from None
        session = PostgresSession(self, connection, self._channel)
        try:
            await session.listen(replica)
        except BaseException:
            connection.terminate()
            raise
        return session

    async def close(self) -> None:
        """Every session has a connection of its own."""

    def cleaned(self, error: BaseException) -> str:
        return cleaned(error, self._url)


class PostgresSession:
    def __init__(self, bus: PostgresBus, connection: Any, channel: str) -> None:
        self._bus = bus
        self._connection = connection
        self._channel = channel
        self._inbox = Inbox()
        self._joiners: dict[str, Joiner] = {}
        self._speaking = asyncio.Lock()  # a connection does one thing at a time

    async def listen(self, replica: str) -> None:
        self._connection.add_termination_listener(lambda _: self._inbox.end("the connection to PostgreSQL ended"))
        try:
            for channel in (self._channel, _own(self._channel, replica)):
                self._joiners[channel] = Joiner()
                await self._connection.add_listener(channel, self._heard)
        except _BROKEN as error:
            raise Lost(f"PostgreSQL does not listen: {self._bus.cleaned(error)}") from None

    async def publish(self, message: bytes) -> None:
        await self._notify(self._channel, message)

    async def send(self, replica: str, message: bytes) -> None:
        await self._notify(_own(self._channel, replica), message)

    async def receive(self) -> bytes:
        return await self._inbox.get()

    async def close(self) -> None:
        self._inbox.end("the session was closed")
        try:
            async with self._speaking:
                await self._connection.close(timeout=1)
        except (*_BROKEN, TimeoutError):
            self._connection.terminate()

    async def _notify(self, channel: str, message: bytes) -> None:
        if len(message) > MAX_MESSAGE:
            raise BusError(f"a message has at most {MAX_MESSAGE} bytes, not {len(message)}")
        parts = split(message, secrets.token_hex(6), MAX_PAYLOAD)
        async with self._speaking:
            self._inbox.check()
            try:
                await self._connection.execute(
                    "SELECT pg_notify($1, part) FROM unnest($2::text[]) part", channel, parts
                )
            except _BROKEN as error:
                why = f"PostgreSQL does not answer: {self._bus.cleaned(error)}"
                self._inbox.end(why)
                self._connection.terminate()  # half a conversation cannot be gone on with
                raise Lost(why) from None

    def _heard(self, connection: object, pid: int, channel: str, payload: object) -> None:
        with contextlib.suppress(ValueError):  # whoever may connect may notify: what is not ours is nothing
            if (message := self._joiners[channel].add(str(payload))) is not None:
                self._inbox.put(message)


def _own(channel: str, replica: str) -> str:
    """A channel's name has at most 63 bytes."""
    return f"{channel}_{replica}"[:63]
