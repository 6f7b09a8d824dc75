"""A workload on its clusters: rendered once, applied to each, removed where it is no longer meant to be.

Order: a cluster is in the status before anything is put there, so whoever comes after a crash knows where to look; it is
taken from the status only when nothing is left there. One cluster's failure does not hold the others up, and is named.
Two Clusters may be one and the same: what is there stays while it is placed on either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.runtime import Result
from trimtab.runtime.events import Recorder
from trimtab.runtime.objects import is_deleting
from trimtab.runtime.status import condition, ready, write_status
from trimtab.systems.platform.applying import Outcome, Wish
from trimtab.systems.platform.faults import Fault, counted, cut
from trimtab.systems.platform.ground import ADOPT, ALLOW_MASS_DELETE, Ground, is_forced, was_reached
from trimtab.systems.platform.kinds import Cluster, Part, Workload, WorkloadStatus
from trimtab.systems.platform.placing import Placing, place
from trimtab.systems.platform.rendering.manifests import Manifests

SIDE_BY_SIDE = 8
RETRY, SOON = 15.0, 3.0
KIND = "Workload"
MESSAGES = 48 << 10


class Spreading:
    def __init__(self, ground: Ground, client: Client, clock: Clock, events: Recorder) -> None:
        self._ground, self._client, self._clock, self._events = ground, client, clock, events

    async def spread(self, workload: Workload) -> Result | None:
        placing = None
        try:
            placing = await place(self._client, workload)
            manifests = await self._ground.sources.manifests(self._ground.api, workload, workload.spec.namespace)
        except Fault as fault:
            parts = await self._staying(workload, placing) if placing else _parts(workload)
            await self._unrendered(workload, fault, parts)
            return Result(requeue_after=RETRY if fault.again else workload.spec.drift.interval.seconds)
        before = {part.name: part for part in _parts(workload)}
        moved = _moved(workload, placing, before)
        held = await self._left(workload, moved, Placing(clusters=placing.clusters))
        before = {name: part for name, part in before.items() if name not in moved}
        placing = _without(placing, held)
        workload = await self._announced(workload, placing, before, held, manifests)
        outcomes = await self._everywhere(workload, placing, before, manifests)
        leaving = {name: part for name, part in before.items() if name not in placing.clusters}
        left = await self._left(workload, leaving, placing) | held
        status = self._status(workload, placing, manifests, outcomes, left)
        await write_status(self._client, workload, status)
        if any(outcome.part.phase == "Failed" for outcome in outcomes.values()) or placing.faults or left:
            return Result(requeue_after=RETRY)
        if any(outcome.again for outcome in outcomes.values()):
            return Result(requeue_after=SOON)
        return Result(requeue_after=max(1.0, workload.spec.drift.interval.seconds))

    async def leave(self, workload: Workload) -> Result | None:
        """Fault while something is left on a cluster that cannot be reached, unless the user forces it."""
        left = await self._left(workload, {part.name: part for part in _parts(workload)}, Placing())
        if left and not is_forced(workload):
            named = "; ".join(f"{name}: {part.message}" for name, part in left.items())
            raise Fault(
                "RemovalWaits",
                f"its objects are still on {named}. If a cluster is gone for ever, annotate this workload with "
                'hub.trimtab.dev/force-delete: "true"',
            )
        for name in left:
            self._events.warning(workload, "LeftBehind", f"objects may be left on cluster {name}: deletion was forced")
        return None

    async def tell(self, workload: Workload, fault: Fault) -> None:
        status = workload.status or WorkloadStatus()
        generation = workload.metadata.generation or UNSET
        conditions = ready(status.conditions, self._clock, generation, False, fault.reason, fault.message)
        phase = "Removing" if is_deleting(workload) else "Failed"
        await write_status(self._client, workload, status.replace(conditions=conditions, phase=phase))

    async def _announced(
        self,
        workload: Workload,
        placing: Placing,
        before: Mapping[str, Part],
        held: Mapping[str, Part],
        manifests: Manifests,
    ) -> Workload:
        """With every cluster in the status that something, or something else, will be put on."""
        total = len(manifests.documents)
        parts = dict(before)
        for name, cluster in placing.clusters.items():
            known = before.get(name) or Part(name=name, project=_project(workload, cluster), objects=total)
            changing = known.digest and known.digest != manifests.mark
            parts[name] = known.replace(phase="Applying", digest=UNSET) if changing else known
        if parts == before:
            return workload
        parts |= held
        status = workload.status or WorkloadStatus()
        generation = workload.metadata.generation or UNSET
        message = f"goes to {counted(len(placing.clusters), 'cluster')}"
        status = status.replace(
            phase="Progressing",
            clusters=tuple(parts.values()),
            objects=total,
            placed=len(placing.clusters),
            conditions=ready(status.conditions, self._clock, generation, False, "Applying", message),
        )
        return await write_status(self._client, workload, status)

    async def _everywhere(
        self, workload: Workload, placing: Placing, before: Mapping[str, Part], manifests: Manifests
    ) -> dict[str, Outcome]:
        turns = asyncio.Semaphore(SIDE_BY_SIDE)
        holder = await self._ground.holder(KIND, workload.namespace, workload.name)
        wish = _wish(workload, manifests)

        async def one(name: str, cluster: Cluster) -> Outcome:
            known = before.get(name) or Part(name=name, objects=len(manifests.documents))
            known = known.replace(project=_project(workload, cluster), version=workload.version() or UNSET)
            async with turns:
                try:
                    target = await self._ground.reached(cluster)
                except Fault as fault:
                    part = known.replace(phase="Failed", reason=fault.reason, message=fault.message)
                    return Outcome(part=part, again=True)
                outcome = await self._ground.applier.apply(
                    target, holder, manifests, workload.spec.namespace, known, wish
                )
            self._tell(workload, known, outcome)
            return outcome

        found = await asyncio.gather(*(one(name, cluster) for name, cluster in placing.clusters.items()))
        return dict(zip(placing.clusters, found, strict=True))

    async def _left(self, workload: Workload, leaving: Mapping[str, Part], placing: Placing) -> dict[str, Part]:
        """Removes what is on clusters where it should not be; the parts of those where that could not be done."""
        holder = await self._ground.holder(KIND, workload.namespace, workload.name)

        async def one(part: Part) -> Part | None:
            if part.name in placing.faults:
                fault = placing.faults[part.name]
                if part.reason == fault.reason and not part.digest and not part.objects:
                    return None  # nothing was ever put there; the fault is told anew
                if fault.reason != "ClusterMissing" and not await self._is_going(workload, part):
                    return part.replace(phase="Failed", reason=fault.reason, message=fault.message)
            try:
                cluster = await self._cluster(workload, part)
                if cluster is None:
                    self._events.warning(
                        workload, "ClusterGone", f"Cluster {part.name} is gone: what was put there may still be there"
                    )
                    return None
                if not was_reached(cluster) and not part.digest:
                    return None
                if _stays(cluster, placing):
                    return None  # the objects are those of another name of the same cluster
                gone = await self._ground.applier.remove(await self._ground.reached(cluster), holder)
            except Fault as fault:
                return part.replace(phase="Removing", reason=fault.reason, message=fault.message)
            self._events.normal(workload, "Removed", f"removed {counted(gone, 'object')} from cluster {part.name}")
            return None

        parts = await asyncio.gather(*(one(part) for part in leaving.values()))
        return {part.name: part for part in parts if part is not None}

    async def _staying(self, workload: Workload, placing: Placing) -> tuple[Part, ...]:
        """The parts without those of clusters that wait for it to leave: for that nothing need be rendered."""
        going = {part.name: part for part in _parts(workload) if await self._is_going(workload, part)}
        left = await self._left(workload, going, Placing(clusters=placing.clusters))
        return tuple(
            left.get(part.name, part) for part in _parts(workload) if part.name in left or part.name not in going
        )

    async def _is_going(self, workload: Workload, part: Part) -> bool:
        """Whether the cluster that it is on waits for it to leave."""
        cluster = await self._cluster(workload, part)
        return cluster is not None and is_deleting(cluster)

    async def _cluster(self, workload: Workload, part: Part) -> Cluster | None:
        """Where it was put, also when it is shared no longer: what is ours there must go."""
        try:
            return await self._client.get(Cluster, part.name, part.project or workload.namespace)
        except StatusError as error:
            if error.code != 404:
                raise
            return None

    def _status(
        self,
        workload: Workload,
        placing: Placing,
        manifests: Manifests,
        outcomes: Mapping[str, Outcome],
        left: Mapping[str, Part],
    ) -> WorkloadStatus:
        status = workload.status or WorkloadStatus()
        generation = workload.metadata.generation or UNSET
        parts = {name: outcome.part for name, outcome in outcomes.items()} | dict(left)
        for name, fault in placing.faults.items():
            parts.setdefault(name, Part(name=name, phase="Failed", reason=fault.reason, message=fault.message))
        well = sum(part.phase == "Ready" for part in parts.values())
        ok, phase, reason, message = _verdict(parts, len(outcomes))
        told = counted(len(manifests.documents), "object")
        conditions = condition(status.conditions, self._clock, generation, "Rendered", True, "Rendered", told)
        applied = all(part.digest == manifests.mark for part in parts.values()) and bool(parts)
        where = _named({n: p for n, p in parts.items() if p.digest != manifests.mark})
        conditions = condition(
            conditions, self._clock, generation, "Applied", applied, "Applied" if applied else "NotEverywhere", where
        )
        conditions = ready(conditions, self._clock, generation, ok, reason, message)
        return status.replace(
            observed_generation=generation,
            phase=phase,
            revision=manifests.revision or UNSET,
            digest=manifests.digest,
            objects=len(manifests.documents),
            placed=len(outcomes) + len(placing.faults),
            ready=well,
            clusters=tuple(_short(parts[name], len(parts)) for name in sorted(parts)),
            conditions=conditions,
        )

    async def _unrendered(self, workload: Workload, fault: Fault, parts: tuple[Part, ...]) -> None:
        """What is on the clusters stays as it is until there is something to put there."""
        status = workload.status or WorkloadStatus()
        generation = workload.metadata.generation or UNSET
        conditions = status.conditions
        if fault.reason != "PlacementInvalid":
            conditions = condition(conditions, self._clock, generation, "Rendered", False, fault.reason, fault.message)
        conditions = ready(conditions, self._clock, generation, False, fault.reason, fault.message)
        if status.conditions != conditions:
            self._events.warning(workload, fault.reason, fault.message)
        phase = "Degraded" if parts else "Failed"
        if parts != _parts(workload):
            well = sum(part.phase == "Ready" for part in parts)
            status = status.replace(clusters=parts or UNSET, placed=len(parts), ready=well)
        await write_status(
            self._client,
            workload,
            status.replace(conditions=conditions, phase=phase, observed_generation=generation),
        )

    def _tell(self, workload: Workload, before: Part, outcome: Outcome) -> None:
        part = outcome.part
        where = f"on cluster {part.name}"
        if outcome.corrected:
            self._events.normal(workload, "DriftCorrected", f"put back {counted(outcome.corrected, 'object')} {where}")
        elif outcome.created or outcome.changed or outcome.pruned:
            done = f"created {outcome.created}, changed {outcome.changed}, removed {outcome.pruned} objects {where}"
            self._events.normal(workload, "Applied", done)
        if part.phase == "Failed" and (before.phase, before.reason) != (part.phase, part.reason):
            self._events.warning(workload, part.reason or "ApplyFailed", f"{where}: {part.message or ''}")
        if part.drifted and not before.drifted:
            self._events.warning(workload, "DriftDetected", f"{where}: {part.message or ''}")


def _verdict(parts: Mapping[str, Part], placed: int) -> tuple[bool, str, str, str]:
    """Whether it is ready; the phase; and why. Each cluster that is not well is named."""
    if not parts:
        return False, "Pending", "NoClusters", "no cluster is meant by spec.placement"
    for phases, phase, reason in (
        (("Failed", "Removing"), "Degraded", "ClustersFailed"),
        (("Degraded",), "Degraded", "Unhealthy"),
        (("Pending", "Waiting", "Applying", "Progressing"), "Progressing", "Progressing"),
    ):
        those = {name: part for name, part in parts.items() if part.phase in phases}
        if those:
            if phase == "Degraded" and len(those) == len(parts):
                phase = "Failed" if reason == "ClustersFailed" else phase
            elif reason == "ClustersFailed":
                reason = "PartlyApplied"
            return False, phase, reason, _named(those)
    return True, "Ready", "Healthy", f"well on {counted(placed, 'cluster')}"


def _named(parts: Mapping[str, Part]) -> str:
    told = [
        f"{name}: {part.reason or part.phase}{f' ({part.message})' if part.message else ''}"
        for name, part in parts.items()
    ]
    return cut("; ".join(told))


def _short(part: Part, of: int) -> Part:
    """A status has an end, and every cluster must find room in it."""
    room = max(60, MESSAGES // of)
    if not part.message or len(part.message) <= room:
        return part
    return part.replace(message=part.message[: room - 1] + "…")


def _wish(workload: Workload, manifests: Manifests) -> Wish:
    annotations = workload.metadata.annotations or {}
    action = workload.spec.drift.action
    return Wish(
        correct=action == "Correct",
        tell_drift=action != "Off",
        adopt=annotations.get(ADOPT) == "true",
        allow_mass_delete=annotations.get(ALLOW_MASS_DELETE) == manifests.digest,
    )


def _moved(workload: Workload, placing: Placing, before: Mapping[str, Part]) -> dict[str, Part]:
    """Parts on a cluster of another project than the one that the same name means now: what is there goes first."""
    return {
        name: part
        for name, part in before.items()
        if name in placing.clusters
        and (part.digest or part.objects)
        and (part.project or workload.namespace) != placing.clusters[name].namespace
    }


def _stays(cluster: Cluster, placing: Placing) -> bool:
    """Whether a cluster that it is placed on is the same one by another name. Fault while that is not known."""
    uid = cluster.status.cluster_uid if cluster.status else UNSET
    if not uid:
        return False
    for name, other in placing.clusters.items():
        if not other.status or not other.status.conditions:
            raise Fault("Waiting", f"Cluster {name} was not looked at yet: it may be the same one")
        if other.status.cluster_uid == uid:
            return True
    return False


def _without(placing: Placing, held: Mapping[str, Part]) -> Placing:
    """A name has one part: another cluster takes it over when the former is left."""
    clusters = {name: cluster for name, cluster in placing.clusters.items() if name not in held}
    return Placing(clusters=clusters, faults=placing.faults)


def _project(workload: Workload, cluster: Cluster) -> str | msgspec.UnsetType:
    return UNSET if cluster.namespace == workload.namespace else cluster.namespace


def _parts(workload: Workload) -> tuple[Part, ...]:
    return workload.status.clusters or () if workload.status else ()
