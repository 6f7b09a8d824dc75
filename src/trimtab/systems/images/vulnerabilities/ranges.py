"""Whether a version is affected, as the OSV schema evaluates it: listed in `versions`, or inside of a range.

A range is a row of events on the line of versions: `introduced` begins (`0` before all versions), `fixed` ends before it,
`last_affected` ends after it, and a `limit` cuts what lies beyond. Ranges of Git commits need the repository's history,
so they cannot be judged here. What cannot be compared is said, and only when nothing else shows that the version is affected.
"""

from __future__ import annotations

import enum
from typing import Any, Literal, NamedTuple

import msgspec

from trimtab.systems.images.vulnerabilities.versions import CannotCompareError, key

EventKind = Literal["introduced", "fixed", "last_affected", "limit"]


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    kind: EventKind
    version: str


class Range(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One range of an advisory. `type` is SEMVER, ECOSYSTEM or GIT."""

    type: str
    events: tuple[Event, ...]


class Outcome(enum.Enum):
    AFFECTED = "affected"
    NOT_AFFECTED = "not affected"
    CANNOT_COMPARE = "cannot compare"


class Verdict(NamedTuple):
    """`fixed` are the next versions that end the ranges which the version is in."""

    outcome: Outcome
    fixed: tuple[str, ...] = ()
    why: str = ""


def judge(scheme: str, version: str, ranges: tuple[Range, ...], versions: tuple[str, ...] = ()) -> Verdict:
    """Is this version affected? Never raises for what the version or the ranges hold."""
    affected = version in versions
    fixed: list[str] = []
    why = ""
    for each in ranges:
        try:
            inside, end = _inside(scheme, version, each)
        except CannotCompareError as error:
            why = why or str(error)
            continue
        affected = affected or inside
        if inside and end and end not in fixed:
            fixed.append(end)
    if affected:
        return Verdict(Outcome.AFFECTED, tuple(fixed) or _next_fixed(scheme, version, ranges))
    if why:
        return Verdict(Outcome.CANNOT_COMPARE, why=why)
    return _NOT_AFFECTED


def covers(scheme: str, version: str, ranges: tuple[Range, ...]) -> bool:
    """Do the ranges alone show that it is affected?"""
    return judge(scheme, version, ranges).outcome is Outcome.AFFECTED


def _inside(scheme: str, version: str, each: Range) -> tuple[bool, str]:
    """Is it in the range, and which version ends the part that it is in?"""
    if each.type == "GIT":
        raise CannotCompareError(version, "the range is of Git commits, which need the repository's history")
    order = "semver" if each.type == "SEMVER" else scheme
    at = key(order, version)
    if len(each.events) == 2:  # most ranges: all versions before a fix
        first, last = each.events
        if first.kind == "introduced" and first.version == "0" and last.kind == "fixed":
            return (True, last.version) if at < key(order, last.version) else (False, "")
    limits = [event.version for event in each.events if event.kind == "limit"]
    if limits and not any(limit == "*" or at < key(order, limit) for limit in limits):
        return False, ""
    inside, end = False, ""
    for place, kind, text in sorted(_placed(order, each), key=_by_place):
        passed = place is None or at >= place
        if kind == "introduced" and passed:
            inside, end = True, ""
        elif (kind == "fixed" and passed) or (kind == "last_affected" and passed and at != place):
            inside, end = False, ""
        elif not passed and inside:
            return True, text if kind == "fixed" else ""
    return inside, end


def _placed(order: str, each: Range) -> list[tuple[Any, EventKind, str]]:
    return [
        (None if event.version == "0" else key(order, event.version), event.kind, event.version)
        for event in each.events
        if event.kind != "limit"
    ]


class _by_place:  # noqa: N801  # used as a sort key
    """Events by their version; `0` is before all, and what begins at a version is before what ends there."""

    __slots__ = ("place", "rank")

    def __init__(self, event: tuple[Any, EventKind, str]) -> None:
        self.place = event[0]
        self.rank = 0 if event[1] == "introduced" else 1

    def __lt__(self, other: _by_place) -> bool:
        if self.place is None or other.place is None:
            return (self.place is not None, self.rank) < (other.place is not None, other.rank)
        if self.place == other.place:
            return self.rank < other.rank
        return bool(self.place < other.place)


def _next_fixed(scheme: str, version: str, ranges: tuple[Range, ...]) -> tuple[str, ...]:
    """For a version that is listed and in no range: the nearest fix after it, if any."""
    best: tuple[Any, str] | None = None
    for each in ranges:
        order = "semver" if each.type == "SEMVER" else scheme
        for event in each.events:
            if event.kind != "fixed" or each.type == "GIT":
                continue
            try:
                place = key(order, event.version)
                if place > key(order, version) and (best is None or place < best[0]):
                    best = place, event.version
            except CannotCompareError:
                continue  # the range's own verdict says so
    return (best[1],) if best else ()


_NOT_AFFECTED = Verdict(Outcome.NOT_AFFECTED)
