"""The life of a release of several services. Pure.

    (none) → Gathering → Promoting → (none: Succeeded)
                 └───────────┴──→ RollingBack → (none: Failed)

Members are analysed each on its own; none is promoted before all are ready. Then they are promoted one after another, in
the group's order; the next one begins when the one before it serves. When one fails, those that are still analysed roll
back at once, and those that were promoted go back one after another, in the opposite order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.clock import format_time
from trimtab.runtime.runs import Run, bounded, finished
from trimtab.systems.delivery.kinds import (
    CanaryDeployment,
    CanaryDeploymentStatus,
    ReleaseGroupSpec,
    ReleaseGroupStatus,
)
from trimtab.systems.delivery.kinds.group import MemberState, MemberStatus, Release

LIMIT = 10
_ANALYSED = ("WaitingRollout", "Starting", "Progressing", "WaitingPromotion")


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A member, as it is."""

    stable: str = ""
    run: str = ""
    revision: str = ""
    before: str = ""
    analysed: bool = False
    waits: bool = False
    """All that is left is the group."""
    failed: tuple[str, ...] = ()
    """Ids of runs that failed, also of one that is still on its way back."""
    message: str = ""


class Moved(msgspec.Struct, frozen=True):
    """The status to write, and what to say of it: (warning, reason, note)."""

    status: ReleaseGroupStatus
    said: tuple[tuple[bool, str, str], ...] = ()


def fact_of(canary: CanaryDeployment) -> Fact:
    status = canary.status or CanaryDeploymentStatus()
    failed = tuple(run.id for run in status.history or () if run.outcome == "Failed")
    run = status.run
    if isinstance(run, UnsetType):
        message = next((run.message or "" for run in status.history or ()), "")
        return Fact(stable=status.stable_revision or "", failed=failed, message=message)
    if run.result == "Failed":
        failed = (run.id, *failed)
    return Fact(
        stable=status.stable_revision or "",
        run=run.id,
        revision=run.revision,
        before=run.before,
        analysed=status.phase in _ANALYSED and isinstance(run.promotion, UnsetType),
        waits=status.phase == "WaitingPromotion" and run.waiting_for == f"{run.id}/promotion-group",
        failed=failed,
        message=run.message or "",
    )


def advance(spec: ReleaseGroupSpec, status: ReleaseGroupStatus, facts: Mapping[str, Fact], now: datetime) -> Moved:
    """The next move. `facts` has the members that exist."""
    release = status.release
    names = [member.name for member in spec.members]
    if isinstance(release, UnsetType):
        return _begun(status, names, facts, now)
    if release.state == "Gathering":
        return _gathering(spec, status, release, names, facts, now)
    if release.state == "Promoting":
        return _promoting(status, release, facts, now)
    return _rolling_back(status, release, facts, now)


def _begun(status: ReleaseGroupStatus, names: Sequence[str], facts: Mapping[str, Fact], now: datetime) -> Moved:
    members = tuple(_member(name, facts[name]) for name in names if name in facts and facts[name].analysed)
    if not members:
        return Moved(status)
    release_id = f"{now:%Y%m%dt%H%M%S}-{members[0].name[:40]}"
    release = Release(id=release_id, state="Gathering", started=format_time(now), members=members)
    entry = Run(id=release_id, trigger="Revision", started=format_time(now), outcome="Running")
    begun = status.replace(release=release, history=(entry, *(status.history or ())))
    return Moved(begun, ((False, "ReleaseBegan", f"with {_named(members)}"),))


def _gathering(
    spec: ReleaseGroupSpec,
    status: ReleaseGroupStatus,
    release: Release,
    names: Sequence[str],
    facts: Mapping[str, Fact],
    now: datetime,
) -> Moved:
    for member in release.members:
        fact = facts.get(member.name, Fact())
        if member.run in fact.failed:
            return _failed(status, release, member, fact)
    members = tuple(_member(name, facts[name]) for name in names if name in facts and facts[name].analysed)
    if not members:
        return _over(status, release, "Cancelled", "Withdrawn", "no member has a new revision any more", now)
    complete = spec.together == "Changed" or len(members) == len(names)
    if complete and all(member.state == "Ready" for member in members):
        first = (members[0].replace(state="Promoting"), *members[1:])
        promoting = status.replace(release=release.replace(state="Promoting", members=first))
        return Moved(promoting, ((False, "ReleasePromoting", f"all are ready; {members[0].name} is first"),))
    if members == release.members:
        return Moved(status)
    return Moved(status.replace(release=release.replace(members=members)))


def _promoting(status: ReleaseGroupStatus, release: Release, facts: Mapping[str, Fact], now: datetime) -> Moved:
    members = [member for member in release.members if member.name in facts]  # who left the group is on its own
    if not members:
        return _over(status, release, "Cancelled", "Withdrawn", "no member is left", now)
    for place, member in enumerate(members):
        fact = facts[member.name]
        over, there = fact.run != member.run, fact.stable == member.revision
        if member.run in fact.failed or (member.state != "Promoted" and over and not there):
            return _failed(status, release, member, fact)
        if member.state == "Promoted":
            continue
        if over:
            members[place] = member.replace(state="Promoted")
            continue
        if member.state == "Promoting":
            break
        members[place] = member.replace(state="Promoting")
        break
    if all(member.state == "Promoted" for member in members):
        done = status.replace(release=release.replace(members=tuple(members)))
        return _over(done, release, "Succeeded", "Promoted", f"{_named(members)} are promoted", now)
    if tuple(members) == release.members:
        return Moved(status)
    return Moved(status.replace(release=release.replace(members=tuple(members))))


def _rolling_back(status: ReleaseGroupStatus, release: Release, facts: Mapping[str, Fact], now: datetime) -> Moved:
    members = list(release.members)
    for place, member in enumerate(members):
        fact = facts.get(member.name)
        if fact is None or member.revision not in (fact.stable, fact.revision):
            members[place] = member.replace(state="RolledBack")
        elif member.state not in ("Promoted", "RollingBack", "RolledBack"):
            members[place] = member.replace(state="RollingBack")
    going = any(member.state == "RollingBack" and facts[member.name].stable == member.revision for member in members)
    if not going:
        for place in reversed(range(len(members))):
            if members[place].state == "Promoted":
                members[place] = members[place].replace(state="RollingBack")
                break
    if all(member.state == "RolledBack" for member in members):
        return _over(status, release, "Failed", release.reason or "MemberFailed", release.message or "", now)
    if tuple(members) == release.members:
        return Moved(status)
    return Moved(status.replace(release=release.replace(members=tuple(members))))


def _failed(status: ReleaseGroupStatus, release: Release, member: MemberStatus, fact: Fact) -> Moved:
    message = f"{member.name}: {fact.message or 'its run ended without promotion'}"[:1024]
    back = release.replace(state="RollingBack", reason="MemberFailed", message=message)
    return Moved(status.replace(release=back), ((True, "ReleaseFailed", message),))


def _over(
    status: ReleaseGroupStatus, release: Release, outcome: str, reason: str, message: str, now: datetime
) -> Moved:
    history = finished(status.history, release.id, outcome, now=now, reason=reason, message=message)  # type: ignore[arg-type]
    over = status.replace(release=UNSET, history=bounded(history, LIMIT))
    return Moved(over, ((outcome == "Failed", f"Release{outcome}", message),))


def _member(name: str, fact: Fact) -> MemberStatus:
    state: MemberState = "Ready" if fact.waits else "Analysing"
    return MemberStatus(name=name, revision=fact.revision, before=fact.before, run=fact.run, state=state)


def _named(members: Sequence[MemberStatus]) -> str:
    return ", ".join(member.name for member in members)
