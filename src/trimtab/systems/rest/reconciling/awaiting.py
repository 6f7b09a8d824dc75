"""Waiting where the service says nothing of waiting: until it shows what it made, or no longer shows what it deleted. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from trimtab.model.clock import format_micro_time
from trimtab.systems.rest.model import Call, Model
from trimtab.systems.rest.state import Operation

FIRST_LOOK = 1.0


def appearing(model: Model, call: Call, *, verb: str, now: datetime, generation: int) -> Operation:
    return _awaited(model, call, "resource", verb, now, generation)


def vanishing(model: Model, call: Call, *, now: datetime, generation: int) -> Operation:
    return _awaited(model, call, "gone", "delete", now, generation)


def _awaited(model: Model, call: Call, style: str, verb: str, now: datetime, generation: int) -> Operation:
    return Operation(
        verb=verb,
        method=call.method,
        url="",
        style=style,
        started=format_micro_time(now),
        next_poll=format_micro_time(now + timedelta(seconds=FIRST_LOOK)),
        deadline=format_micro_time(now + timedelta(seconds=model.polling.deadline)),
        generation=generation,
    )
