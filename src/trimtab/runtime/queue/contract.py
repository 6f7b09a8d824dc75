"""Queue: work that is handed out to whoever is free: in this process (`local`), or on many machines (`nats`).

Flow: `publish` a payload on a subject. One of those who `consume` the subject gets it, works, and says `ack`. Whoever needs
longer than the deadline says `extend` in time; whoever cannot do it now says `nak`; what nobody can ever do is `term`.

Guarantees: a message is delivered until it is acknowledged, to one consumer at a time, and `deliveries` counts how often.
What is not settled within the deadline is delivered again. After `max_deliveries`, or `term`, it is in the list that
`dead` reads. The same id published twice within the window is one message. Nothing grows without bound: `QueueFull`.

Assumptions: everybody who consumes a subject names the same deadline. Handlers may see a message twice.

Caveats: the queue is a hint, not the truth. `LocalQueue` forgets all when its process ends, so what must survive is in a
resource first, and a controller publishes again what it finds undone. Order is by arrival; what comes again comes first.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

MAX_DEPTH = 10_000
MAX_DELIVERIES = 5
MAX_PAYLOAD = 512 << 10
MAX_DEAD = 1_000
WINDOW = 120.0


class Message(Protocol):
    """One delivery. The first of `ack`, `nak` and `term` counts; what comes later, or after the deadline, has no effect."""

    @property
    def subject(self) -> str: ...

    @property
    def payload(self) -> bytes: ...

    @property
    def id(self) -> str: ...

    @property
    def deliveries(self) -> int:
        """1 at the first delivery."""
        ...

    async def ack(self) -> None:
        """It is done. When this returns it will not come again."""
        ...

    async def nak(self, delay: float | None = None) -> None:
        """Not now: deliver it again, at once or after `delay` seconds."""
        ...

    async def extend(self) -> None:
        """Still at work: the deadline counts from now."""
        ...

    async def term(self, reason: str = "") -> None:
        """Nobody will ever be able to do it."""
        ...


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that was given up."""

    subject: str
    payload: bytes
    id: str
    deliveries: int
    reason: str


class Queue(Protocol):
    """The module's docstring states the contract."""

    async def publish(self, subject: str, payload: bytes, *, id: str = "") -> bool:  # noqa: A002 - the field's word
        """False when the id was published already. QueueFull, PayloadTooLarge, QueueUnavailable."""
        ...

    def consume(self, subject: str, *, concurrency: int = 1, deadline: float = 60.0) -> AsyncIterator[Message]:
        """Messages as they come, at most `concurrency` of them unsettled at a time. Ends when the queue is closed."""
        ...

    async def dead(self, subject: str, *, limit: int = 100) -> list[DeadLetter]:
        """Those that were given up, oldest first. The list is bounded: the oldest fall out."""
        ...

    async def depth(self, subject: str) -> int:
        """How many wait or are being worked on."""
        ...

    async def ready(self) -> None:
        """QueueUnavailable when it cannot be used."""
        ...

    async def close(self) -> None: ...


class QueueError(Exception):
    """A queue could not do what it was asked to."""


class QueueFull(QueueError):  # noqa: N818 - it reads as what happened
    """As many messages wait on the subject as may; publish again later."""

    def __init__(self, subject: str, limit: int) -> None:
        super().__init__(f"{limit} messages wait on {subject}, which is the limit: publish again later")


class PayloadTooLarge(QueueError):  # noqa: N818
    """A message names what to work on; what is large is a blob."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"a payload of {size} bytes is over the limit of {limit}: put it into a blob and send its digest"
        )


class QueueUnavailable(QueueError):  # noqa: N818
    """The queue cannot be reached, or is closed."""


def check_subject(subject: str) -> str:
    """Words of letters, digits, - and _, with points between. No wildcards. ValueError."""
    if len(subject) > 200 or not _SUBJECT.fullmatch(subject):
        raise ValueError(f"{subject[:80]!r} is no subject: it must be words of letters, digits, - and _ between points")
    return subject


def check_id(id: str) -> str:  # noqa: A002
    """Nothing, or printable ASCII without spaces. ValueError."""
    if not _ID.fullmatch(id):
        raise ValueError(f"{id[:80]!r} is no id of a message: at most 512 printable ASCII characters without spaces")
    return id


_ID = re.compile(r"[!-~]{0,512}")
_SUBJECT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
