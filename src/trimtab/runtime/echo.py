"""Whose write a change is: a watch tells a reconcile of its own writes, too, and most have no use for that.

Flow: a driver whose controller wants no echo opens a `Writer` for each reconcile; the client notes it in the caches with
the revision that its write made; the change of exactly that revision carries it, and the driver drops the change for that
one request. All others are told: other controllers, other requests, and every other revision of the object.

Guarantees: only what a reconcile surely wrote itself, and whose answer it got while it ran, is an echo. A write that may
have met what another wrote (apply, a patch without a revision) is none. In doubt, as after a new list or when the watch
is faster than the answer, there is one reconcile more and never one less.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.runtime.changes import Request


class Writer:
    """One reconcile of one request, by the driver `of`. What a task that outlives it writes is not its own."""

    __slots__ = ("of", "over", "request")

    def __init__(self, of: object, request: Request) -> None:
        self.of = of
        self.request = request
        self.over = False


def begin(of: object, request: Request) -> Writer:
    """From now on, in this task, writes are this reconcile's."""
    writer = Writer(of, request)
    _WRITER.set(writer)
    return writer


def current() -> Writer | None:
    """The reconcile that is going on in this task and wants no echo."""
    writer = _WRITER.get()
    return None if writer is None or writer.over else writer


_WRITER: ContextVar[Writer | None] = ContextVar("writer", default=None)
