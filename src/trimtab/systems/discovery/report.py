"""What a run came to, as the rule's status shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.clock import format_time
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule, EntryStatus, Plan, TargetCounts
from trimtab.systems.discovery.scope.addresses import written
from trimtab.systems.discovery.scope.sources import Place, Scope
from trimtab.systems.discovery.scope.windows import opens

MAX_MESSAGE = 512
MAX_ENTRIES = 512
"""What a status holds."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Of one run. With `overlap` and `held` the rule has conditions of its own."""

    ok: bool
    reason: str
    message: str
    counts: dict[str, int]
    plan: Plan
    entries: tuple[EntryStatus, ...]
    targets: TargetCounts
    overlap: str = ""
    held: str = ""
    poor: bool = False
    """It may not be trusted about what is gone, and is soon done again."""


def awaited(rule: DiscoveryRule, now: datetime) -> tuple[str, str]:
    """The reason and the message of a rule whose first sweep is to come."""
    opening = opens(rule.spec.windows, rule.spec.period, None, now)
    first = "the first sweep of this rule, or of its change,"
    if opening is None or opening <= now:
        return "Sweeping", f"{first} has not ended"
    return "OutsideWindow", f"{first} begins when a window opens: at {format_time(opening)}"


def outcomes_of(outcomes: bytes) -> dict[str, int]:
    """How many addresses came to what."""
    return {outcome.name.lower(): outcomes.count(outcome) for outcome in Outcome}


def entries_of(scope: Scope, outcomes: bytes) -> tuple[EntryStatus, ...]:
    """What came of each entry that was swept."""
    kinds = outcomes.translate(_KINDS)
    return _folded([_entry(scope, place, kinds) for place in scope.places])


def listed(places: Iterable[tuple[Place, Sequence[str]]]) -> tuple[EntryStatus, ...]:
    """The entries of a rule that probes nothing, with the addresses that were written."""
    return _folded(
        [
            EntryStatus(entry=place.entry.name, addresses=len(addresses), found=len(addresses), message=_said(place))
            for place, addresses in places
        ]
    )


def _entry(scope: Scope, place: Place, kinds: bytes) -> EntryStatus:
    """Counted by runs of positions: an interval of an entry is one of the scope, or a part of it."""
    total = found = there = 0
    for interval in place.addresses.intervals:
        first = scope.addresses.position(written(interval.first, interval.version))
        if first is not None:
            total += interval.size
            found += kinds.count(_FOUND, first, first + interval.size)
            there += kinds.count(_THERE, first, first + interval.size)
    return EntryStatus(
        entry=place.entry.name,
        addresses=total,
        found=found,
        not_found=total - found - there,
        message=_said(place, there),
    )


def _said(place: Place, there: int = 0) -> str | UnsetType:
    """What could not be resolved, and how many devices are there and did not say what they are."""
    said = [place.problem[: MAX_MESSAGE - 128]] if place.problem else []
    if there:
        answer = "answer and are" if there > 1 else "answers and is"
        said.append(f"{there} {answer} not identified: trimtab discovery why ADDRESS says why")
    return "; ".join(said) or UNSET


_FOUND, _THERE = b"f", b"t"
_KINDS = bytes(
    ord(_FOUND if byte == Outcome.IDENTIFIED else _THERE if byte >= Outcome.OPEN else b"-") for byte in range(256)
)


def _folded(entries: Sequence[EntryStatus]) -> tuple[EntryStatus, ...]:
    """As many as a status holds: the rest in one line, but what failed goes first."""
    if len(entries) <= MAX_ENTRIES:
        return tuple(entries)
    ordered = sorted(entries, key=lambda entry: not entry.message)
    kept, rest = ordered[: MAX_ENTRIES - 1], ordered[MAX_ENTRIES - 1 :]
    return (
        *kept,
        EntryStatus(
            entry=f"{len(rest)} more entries",
            addresses=sum(entry.addresses for entry in rest),
            found=sum(entry.found for entry in rest),
            not_found=sum(entry.not_found for entry in rest),
        ),
    )
