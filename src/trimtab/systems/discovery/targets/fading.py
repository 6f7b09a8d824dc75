"""How a Target disappears: Ready, Stale, Lost, deleted. One step at a time, by a count of misses *and* by age, and the
last two steps only after a probe of all its addresses found nothing.

A sweep of poor quality counts no miss at all: then there is no event. When too many would go at once (`held`) none
does: our own network is the likelier cause.
"""

from __future__ import annotations

import enum

import msgspec

from trimtab.systems.discovery.kinds import Fading

ALWAYS = 1
"""So many may go at once from a fleet of any size: one of three is more than a quarter, and still no mass loss."""


class Phase(enum.Enum):
    READY = "Ready"
    STALE = "Stale"
    """It missed a sweep. Nothing else has changed."""
    LOST = "Lost"
    DELETED = "Deleted"


class Seen(msgspec.Struct, frozen=True):
    """Something answered at a port of ours, at one of its addresses, be it that it refuses the login. A connection that is
    refused is no such answer: nothing listens there."""


class Missed(msgspec.Struct, frozen=True):
    """A sweep that can be trusted did not see it. `age_seconds` is since the first that did not: a long time in which
    nobody swept is no absence. `confirmed` says that a probe of all its addresses, after the sweep, found nothing
    either."""

    misses: int
    age_seconds: float
    confirmed: bool = False


def next(phase: Phase, event: Seen | Missed, policy: Fading) -> Phase:  # noqa: A001 - read it as fading.next
    """The next phase."""
    if phase is Phase.DELETED:
        return phase
    if isinstance(event, Seen):
        return Phase.READY
    if phase is Phase.READY:
        return Phase.STALE
    if not event.confirmed or not _due(phase, event, policy):
        return phase
    return Phase.LOST if phase is Phase.STALE else Phase.DELETED


def needs_confirmation(phase: Phase, event: Missed, policy: Fading) -> bool:
    """Whether a confirming probe that finds nothing would change the phase. Only then it is worth sending."""
    return phase in (Phase.STALE, Phase.LOST) and _due(phase, event, policy)


def held(total: int, losing: int, percent: int) -> bool:
    """MassLoss: whether `losing` of a rule's `total` Targets are too many to become Lost or be deleted at once. All of
    them always are: a wrong community, or a cable of our own, is the likelier cause."""
    if losing == total:
        return losing > 0 and percent < 100
    return losing > ALWAYS and losing * 100 > total * percent


def _due(phase: Phase, event: Missed, policy: Fading) -> bool:
    if phase is Phase.STALE:
        return event.misses >= policy.lost_after_misses and event.age_seconds >= policy.lost_after.seconds
    return event.misses >= policy.delete_after_misses and event.age_seconds >= policy.delete_after.seconds
