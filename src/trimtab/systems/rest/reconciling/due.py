"""Whether an object has anything to do, and when it is looked at without a reason."""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET

from trimtab.model.conditions import get_condition
from trimtab.model.duration import Period
from trimtab.systems.rest.model import Join
from trimtab.systems.rest.reconciling import telling
from trimtab.systems.rest.reconciling.looking import slot_of
from trimtab.systems.rest.reconciling.session import Session

LEAST = 1.0
"""Seconds between two looks, whatever a policy or a definition says."""


def is_idle(session: Session) -> bool:
    """Whether nothing is known that had to be done."""
    subject, sync = session.subject, session.subject.sync
    ready = get_condition(subject.status.conditions, telling.READY)
    return (
        bool(sync.last_applied)
        and sync.pending is None
        and sync.operation is None
        and not sync.applying
        and not sync.recreating
        and not sync.removals
        and sync.model == session.place.digest
        and subject.status.observed_generation == subject.generation
        and ready is not None
        and ready.status == "True"
        and not subject.control.policy.paused
    )


def slot(session: Session, at: datetime | None = None) -> tuple[int, float]:
    """In which of its intervals an object is, and the seconds until the next. One that is never looked at is always
    in the same."""
    interval = _interval(session)
    if interval is None:
        return 0, float("inf")
    identifier = session.status.resource_id
    collection = identifier.rpartition("/")[0] if session.model.calls.list is not None else identifier
    return slot_of(at or session.place.clock.now(), interval, collection)


def _interval(session: Session) -> float | None:
    """Seconds between two looks: the object's own wish, else the kind's; None is never."""
    own = session.subject.control.policy.refresh
    if own is UNSET:
        seconds = session.model.refresh
    else:
        seconds = None if own == "never" else Period(own).seconds
    return None if seconds is None else max(LEAST, seconds)


def join_slot(session: Session, join: Join, at: datetime | None = None) -> tuple[int, float]:
    interval = max(LEAST, join.interval)
    return slot_of(at or session.place.clock.now(), interval, f"{session.status.resource_id} {join.name}")


class Known:
    """What is in memory of an object. To lose it costs nothing but a look."""

    __slots__ = ("attempts", "has_changed", "joins", "listed", "slot", "told")

    def __init__(self) -> None:
        self.slot: int | None = None
        self.listed = ""  # digest of what a list last said
        self.joins: dict[str, int] = {}  # the interval in which each was last asked
        self.attempts = 0
        self.told = ""  # the ID that others know
        self.has_changed = False  # by a look that no turn has followed up yet

    def due(self, session: Session) -> set[str]:
        """The joins whose time has come; after a start none is."""
        now = {join.name: join_slot(session, join)[0] for join in session.model.joins}
        found = {name for name, slot in now.items() if self.joins.setdefault(name, slot) != slot}
        self.joins = now
        return found
