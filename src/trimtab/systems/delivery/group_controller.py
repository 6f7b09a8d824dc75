"""The controller of ReleaseGroups. What a release does is in `groups.release`; members read their orders from its status."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UnsetType

from trimtab.runtime import Controller, Request, Result, Watch
from trimtab.runtime.changes import Change
from trimtab.runtime.index import Index
from trimtab.runtime.objects import is_deleting
from trimtab.runtime.status import ready, write_status
from trimtab.systems.delivery.groups.release import advance, fact_of
from trimtab.systems.delivery.kinds import CanaryDeployment, ReleaseGroup, ReleaseGroupStatus


def _members(group: ReleaseGroup) -> Iterable[str]:
    for member in group.spec.members:
        yield f"{group.namespace}/{member.name}"


def _of_member(change: Change) -> list[Request]:
    return change.informers.indexed(ReleaseGroup, "members", str(change.request))


class GroupController(Controller[ReleaseGroup]):
    indexes = (Index("members", _members),)
    watches = (Watch(kind=CanaryDeployment, to=_of_member),)

    async def reconcile(self, request: Request) -> Result | None:
        group = await self.client.find(ReleaseGroup, request.name, request.namespace)
        if group is None or is_deleting(group):
            return None
        facts = {}
        for member in group.spec.members:
            canary = await self.client.find(CanaryDeployment, member.name, request.namespace)
            if canary is not None:
                facts[member.name] = fact_of(canary)
        moved = advance(group.spec, group.status or ReleaseGroupStatus(), facts, self.clock.now())
        missing = [member.name for member in group.spec.members if member.name not in facts]
        status = self._told(group, moved.status, missing)
        await write_status(self.client, group, status)
        for warning, reason, note in moved.said:
            (self.events.warning if warning else self.events.normal)(group, reason, note)
        return None

    def _told(self, group: ReleaseGroup, status: ReleaseGroupStatus, missing: list[str]) -> ReleaseGroupStatus:
        release = status.release
        if not isinstance(release, UnsetType):
            states = ", ".join(f"{member.name} {member.state}" for member in release.members)
            said: tuple[bool, str, str] = (
                False,
                release.state,
                f"{states}{f'; {release.message}' if release.message else ''}",
            )
        elif missing:
            said = (False, "MembersMissing", f"there is no CanaryDeployment {', '.join(missing)}")
        elif status.history and status.history[0].outcome == "Failed":
            said = (False, "RolledBack", status.history[0].message or "")
        else:
            said = (True, "Stable", f"{len(group.spec.members)} members")
        generation = group.metadata.generation
        return status.replace(conditions=ready(status.conditions, self.clock, generation, *said))
