"""The controller of DiscoveryJobs: what wakes it. What it then does is in `conducting`.

A server that only defines the kinds and judges writes imports this too, so nothing heavy is loaded before `start`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trimtab.runtime import Context, Controller, Request, Result, Watch, annotations_changed, generation_changed
from trimtab.runtime.changes import Change
from trimtab.runtime.index import Index
from trimtab.systems.images.applying import BY_REGISTRY
from trimtab.systems.images.kinds import SBOM, DiscoveryJob, DiscoveryJobStatus, Image, Registry, VulnerabilityReport
from trimtab.systems.images.kinds.job import REGISTRY_LABEL
from trimtab.systems.images.runs.states import State, state_of

if TYPE_CHECKING:
    from trimtab.systems.images.conducting import Conductor
    from trimtab.systems.images.working import Working


def _registry(job: DiscoveryJob) -> Iterable[str]:
    yield f"{job.namespace}/{job.spec.registry}"


def _settling(job: DiscoveryJob) -> Iterable[str]:
    """Under the uid of its registry, while its members are waited for."""
    if state_of(job.status or DiscoveryJobStatus()) is State.SETTLING:
        yield (job.metadata.labels or {}).get(REGISTRY_LABEL, "")


def _of_registry(change: Change) -> list[Request]:
    return change.informers.indexed(DiscoveryJob, "registry", str(change.request))


def _waiting_for(change: Change) -> list[Request]:
    """The job that waits for an Image, SBOM or report."""
    head = change.heads[1] or change.heads[0]
    uid = (head.labels or {}).get(REGISTRY_LABEL, "") if head is not None else ""
    return change.informers.indexed(DiscoveryJob, "settling", uid) if uid else []


class JobController(Controller[DiscoveryJob]):
    timeout = 1800.0
    indexes = (Index("registry", _registry), Index("settling", _settling))
    watches = (
        Watch(kind=Registry, to=_of_registry, when=annotations_changed | generation_changed),
        Watch(kind=Image, to=_waiting_for, indexes=(BY_REGISTRY,)),
        Watch(kind=SBOM, to=_waiting_for),
        Watch(kind=VulnerabilityReport, to=_waiting_for),
    )

    conductor: Conductor
    working: Working

    def __init__(self, context: Context, *, work: bool = True) -> None:
        """Without `work` there is no worker in this process."""
        self._context, self._work = context, work
        self._uids: dict[Request, str] = {}

    async def start(self) -> None:
        from trimtab.systems.images.conducting import Conductor
        from trimtab.systems.images.working import Working

        self.conductor = Conductor(self._context, self.client, self.clock, self.events)
        self.working = Working(self._context)

    async def pause(self) -> None:
        if hasattr(self, "working"):
            await self.working.stop()

    async def reconcile(self, request: Request) -> Result | None:
        from trimtab.systems.images.runs.telling import Superseded

        if self._work:
            self.working.ensure()
        job = await self.client.find(DiscoveryJob, request.name, request.namespace)
        uid = (job.metadata.uid if job is not None else "") or ""
        if (before := self._uids.pop(request, uid)) != uid:
            self.conductor.forget(before)
        if job is None:
            return None
        self._uids[request] = uid
        try:
            return await self.conductor.conduct(job)
        except Superseded:
            return Result(requeue_after=0.2)  # a later change brings the truth; this is only to be safe
