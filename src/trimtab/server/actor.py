"""Who the request in hand is from, for those far below who keep a record of it."""

from __future__ import annotations

from contextvars import ContextVar

ACTOR: ContextVar[str] = ContextVar("actor", default="")
