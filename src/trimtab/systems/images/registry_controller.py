"""The controller of Registries: what wakes it. What it then does is in `keeping`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.runtime import Context, Controller, Request, Result, Watch
from trimtab.runtime.changes import Change
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.objects import is_deleting
from trimtab.systems.images.applying import BY_REGISTRY
from trimtab.systems.images.kinds import DiscoveryJob, DiscoveryJobStatus, Image, Registry
from trimtab.systems.images.runs.states import State, state_of

if TYPE_CHECKING:
    from trimtab.systems.images.keeping import Keeper

FINALIZER = "images.trimtab.dev/registry"


def _when_it_matters(change: Change) -> list[Request]:
    """A job that came, went, or whose run began or ended. Progress is not our matter."""
    old, new = change.old, change.new
    job = new or old
    if not isinstance(job, DiscoveryJob):
        return []
    if isinstance(old, DiscoveryJob) and isinstance(new, DiscoveryJob) and _run(old) == _run(new):
        return []
    return [Request(job.namespace, job.spec.registry)]


def _run(job: DiscoveryJob) -> tuple[object, bool, bool]:
    status = job.status or DiscoveryJobStatus()
    return status.run_id, state_of(status) is State.ENDED, is_deleting(job)


class RegistryController(Controller[Registry]):
    watches = (
        Watch(kind=DiscoveryJob, to=_when_it_matters),
        Watch(kind=Image, to=lambda change: (), indexes=(BY_REGISTRY,)),  # only to count them
    )

    keeper: Keeper

    def __init__(self, context: Context) -> None:
        self._context = context

    async def start(self) -> None:
        from trimtab.systems.images.keeping import Keeper

        self.keeper = Keeper(self._context, self.client, self.clock, self.events)

    async def reconcile(self, request: Request) -> Result | None:
        registry = await self.client.find(Registry, request.name, request.namespace)
        if registry is None:
            return None
        return await finalizer(self.client, registry, FINALIZER, apply=self.keeper.keep_up, cleanup=self.keeper.let_go)
