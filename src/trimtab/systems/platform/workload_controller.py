"""The controller of Workloads: what wakes it, and when it lets one go. What it does with clusters is in `spreading`."""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.runtime import Controller, Request, Result, Watch
from trimtab.runtime.changes import Change
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.index import Index
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.ground import Ground
from trimtab.systems.platform.kinds import Cluster, Workload
from trimtab.systems.platform.spreading import RETRY, Spreading

FINALIZER = "apps.trimtab.dev/workload"
BY_LABELS = "*"


def _clusters(workload: Workload) -> Iterable[str]:
    """The clusters that it names or is on; `*` for one that goes by labels."""
    if workload.spec.placement.labels:
        yield BY_LABELS
    yield from (entry.name for entry in workload.spec.placement.clusters or ())
    yield from (part.name for part in (workload.status.clusters or () if workload.status else ()))


def _of_cluster(change: Change) -> list[Request]:
    """Probes write a status every now and then: only what decides about placement and access counts."""
    if not _matters(change):
        return []
    found = change.informers.indexed(Workload, "clusters", change.request.name)
    return [*found, *change.informers.indexed(Workload, "clusters", BY_LABELS)]


def _matters(change: Change) -> bool:
    before, after = change.old, change.new
    if not isinstance(before, Cluster) or not isinstance(after, Cluster):
        return True
    if before.metadata.generation != after.metadata.generation or before.metadata.labels != after.metadata.labels:
        return True
    if bool(before.metadata.deletion_timestamp) != bool(after.metadata.deletion_timestamp):
        return True
    return _reached(before) != _reached(after)


def _reached(cluster: Cluster) -> tuple[str, ...]:
    conditions = cluster.status.conditions or () if cluster.status else ()
    return tuple(each.status for each in conditions if each.type == "Reachable")


class WorkloadController(Controller[Workload]):
    """Keeps manifests on clusters."""

    concurrency = 8
    timeout = 1800.0  # there may be many, and each has a limit of its own
    echo = False
    indexes = (Index("clusters", _clusters),)
    watches = (Watch(kind=Cluster, to=_of_cluster),)

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def start(self) -> None:
        self._ground.enter()
        self._spreading = Spreading(self._ground, self.client, self.clock, self.events)

    async def stop(self) -> None:
        if hasattr(self, "_spreading"):
            await self._ground.leave()

    async def reconcile(self, request: Request) -> Result | None:
        workload = await self.client.find(Workload, request.name, request.namespace)
        if workload is None:
            return None
        try:
            return await finalizer(
                self.client, workload, FINALIZER, apply=self._spreading.spread, cleanup=self._spreading.leave
            )
        except Fault as fault:  # it cannot leave yet
            await self._spreading.tell(workload, fault)
            return Result(requeue_after=RETRY)
