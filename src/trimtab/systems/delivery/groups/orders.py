"""What a group says to one of its members. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UnsetType

from trimtab.systems.delivery.kinds import CanaryDeploymentStatus, ReleaseGroup, ReleaseGroupStatus
from trimtab.systems.delivery.machine.facts import Order


def order(name: str, status: CanaryDeploymentStatus, groups: Iterable[ReleaseGroup]) -> tuple[Order, str]:
    """The order, and what to go back to. It is only about the revision that was released together: a newer one waits."""
    for group in sorted(groups, key=lambda each: each.name):
        if all(member.name != name for member in group.spec.members):
            continue
        release = (group.status or ReleaseGroupStatus()).release
        member = next((each for each in release.members if each.name == name), None) if release else None
        if member is None:
            return Order.WAIT, ""
        run = status.run
        ours = status.stable_revision if isinstance(run, UnsetType) else run.revision
        if member.state == "RollingBack" and ours == member.revision:
            return Order.ROLL_BACK, member.before or ""
        if member.state == "Promoting" and ours == member.revision:
            return Order.PROMOTE, ""
        return Order.WAIT, ""
    return Order.FREE, ""
