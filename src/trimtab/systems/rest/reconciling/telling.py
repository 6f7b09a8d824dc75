"""What the conditions of an object say. One place for their reasons, so that the guide can list them. Pure.

Ready: the resource is there and as the spec says. Synced: the last look or write succeeded and nothing is left to write.
Progressing: an operation of the service runs. Drifted: someone else changed what the spec says. ReferencesResolved: all
that it refers to is there. Stalled: nothing more will happen until someone acts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import UNSET

from trimtab.model.clock import Clock
from trimtab.model.conditions import get_condition
from trimtab.runtime.status import condition
from trimtab.systems.rest.state import Operation, Status

READY, SYNCED, PROGRESSING, DRIFTED, REFERENCES, STALLED = (
    "Ready",
    "Synced",
    "Progressing",
    "Drifted",
    "ReferencesResolved",
    "Stalled",
)
MOST_PATHS = 8


class Word(msgspec.Struct, frozen=True):
    """One condition."""

    type: str
    ok: bool | None
    reason: str
    message: str = ""


def told(status: Status, clock: Clock, generation: int, words: Iterable[Word]) -> Status:
    """The status with these conditions, and with the others as they were."""
    conditions = status.conditions
    for word in words:
        conditions = condition(conditions, clock, generation or UNSET, word.type, word.ok, word.reason, word.message)
    return msgspec.structs.replace(status, conditions=conditions, observed_generation=generation or UNSET)


def settled(drifted: Word, message: str = "") -> tuple[Word, ...]:
    """It is there, and nothing is to be written. What drifted and is left so is still not what the spec says."""
    contested = drifted.reason == "DriftContested"
    return (
        Word(READY, True, "Settled", message),
        Word(SYNCED, False, drifted.reason, drifted.message) if drifted.ok else Word(SYNCED, True, "Settled"),
        Word(PROGRESSING, False, "Idle"),
        Word(REFERENCES, True, "Resolved"),
        drifted,
        Word(STALLED, True, drifted.reason, drifted.message) if contested else Word(STALLED, False, "Idle"),
    )


def progressing(reason: str, message: str) -> tuple[Word, ...]:
    """Something goes on at the service, or is about to: all that it refers to was there."""
    return (
        Word(READY, False, reason, message),
        Word(SYNCED, False, reason, message),
        Word(PROGRESSING, True, reason, message),
        Word(STALLED, False, "Idle"),
        Word(REFERENCES, True, "Resolved"),
    )


def waiting(reason: str, message: str) -> tuple[Word, ...]:
    """For something that will come without anybody touching this object."""
    return (
        Word(READY, False, reason, message),
        Word(SYNCED, False, reason, message),
        Word(PROGRESSING, False, "Idle"),
        Word(STALLED, False, "Idle"),
    )


def stalled(reason: str, message: str) -> tuple[Word, ...]:
    """Someone must act."""
    return (
        Word(READY, False, reason, message),
        Word(SYNCED, False, reason, message),
        Word(PROGRESSING, False, "Idle"),
        Word(STALLED, True, reason, message),
    )


def unknown(status: Status, reason: str, message: str) -> tuple[Word, ...]:
    """Nobody can tell now: what was ready may still be so."""
    before = get_condition(status.conditions, READY)
    was_ready = before is not None and before.status != "False"
    idle = () if status.sync.operation is not None else (Word(PROGRESSING, False, "Idle"),)
    return (Word(READY, None if was_ready else False, reason, message), Word(SYNCED, None, reason, message), *idle)


def progress(operation: Operation) -> str:
    percent = f", {operation.percent:.0f} %" if operation.percent is not None else ""
    return f"{operation.method} is under way since {operation.started}{percent}"


def named(paths: Iterable[str]) -> str:
    """The first paths, for a message."""
    found = list(paths)
    more = f" and {len(found) - MOST_PATHS} more" if len(found) > MOST_PATHS else ""
    return ", ".join(found[:MOST_PATHS]) + more
