"""The bus's contract: what replicas publish comes to all of them, themselves included, in one order.

Flow: a replica opens a `Session`, hears everything that is published from then on, and may publish and answer. When
anything may have been missed the session ends with `Lost`, and the replica opens another, knowing that it knows nothing.

Guarantees
  - One order: of two published messages, every session that hears both hears the same one first.
  - No gap: a session hears all that is published between its opening and its end.
  - When `publish` returns, the message has its place in the order: what is published later comes later.
  - `send` goes to one replica, in no order and without a promise. Whoever counts on it asks again.

Caveats: the bus is trusted with what is said on it (names and IDs, never documents). A message is at most MAX_MESSAGE.
"""

from __future__ import annotations

from typing import Protocol

MAX_MESSAGE = 256 * 1024
"""Bytes."""


class BusError(Exception):
    """The bus cannot do what was asked."""


class Lost(BusError):  # noqa: N818
    """The session is over: something may have been missed. The message has no credentials."""


class Session(Protocol):
    """One replica's ear and mouth. Only one task receives."""

    async def publish(self, message: bytes) -> None: ...

    async def send(self, replica: str, message: bytes) -> None: ...

    async def receive(self) -> bytes:
        """The next message, published or sent to us. Raises Lost once the session is over."""
        ...

    async def close(self) -> None: ...


class Bus(Protocol):
    async def open(self, replica: str) -> Session:
        """Hear from now on, as this replica (letters, digits and dashes). Raises Lost when the bus cannot be reached."""
        ...

    async def close(self) -> None: ...
