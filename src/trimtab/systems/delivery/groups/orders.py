"""What a group says to one of its members. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UnsetType

from trimtab.runtime.objects import is_deleting
from trimtab.systems.delivery.kinds import CanaryDeploymentStatus, ReleaseGroup, ReleaseGroupStatus
from trimtab.systems.delivery.kinds.group import MemberStatus
from trimtab.systems.delivery.machine.facts import Order


def order(name: str, status: CanaryDeploymentStatus, groups: Iterable[ReleaseGroup]) -> tuple[Order, str]:
    """The order, and what to go back to. It is only about the revision that was released together: a newer one waits."""
    for group in sorted(groups, key=lambda each: each.name):
        if is_deleting(group) or all(member.name != name for member in group.spec.members):
            continue
        release = (group.status or ReleaseGroupStatus()).release
        if isinstance(release, UnsetType):
            return Order.WAIT, ""
        member = next((each for each in release.members if each.name == name), None)
        if member is None:
            return Order.WAIT, ""
        return _of(member, status, back=release.state == "RollingBack")
    return Order.FREE, ""


def _of(member: MemberStatus, status: CanaryDeploymentStatus, *, back: bool) -> tuple[Order, str]:
    run = None if isinstance(status.run, UnsetType) else status.run
    runs = run is not None and run.revision == member.revision
    serves = status.stable_revision == member.revision
    if member.state == "RollingBack" and (runs or serves):
        return Order.ROLL_BACK, member.before or ""
    if back and member.state == "Promoted" and serves:
        return Order.HOLD, ""
    if member.state == "Promoting" and runs:
        return Order.PROMOTE, ""
    return Order.WAIT, ""
