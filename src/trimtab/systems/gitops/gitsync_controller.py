"""The controller of GitSyncs: what wakes it. When a sync runs is in `conducting`, what a run does in `running`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec import UnsetType

from trimtab.runtime import Context, Controller, Request, Result, Watch
from trimtab.runtime.changes import Change
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.index import Index
from trimtab.systems.gitops.kinds import GitSync, Repository, SyncConflict

if TYPE_CHECKING:
    from trimtab.systems.gitops.conducting import Conductor

FINALIZER = "hub.trimtab.dev/gitsync"
AHEAD = ("isal.isal_zlib", "trimtab.model.schema.native", "trimtab.model.schema.compiler")
"""What others import when they first need it, which would be in the first run of a sync."""


def _repositories(sync: GitSync) -> Iterable[str]:
    names = {sync.spec.repository}
    if not isinstance(sync.spec.destination, UnsetType):
        names.add(sync.spec.destination.repository)
    return [f"{sync.namespace}/{name}" for name in names]


BY_REPOSITORY = Index("repository", lambda sync: _repositories(sync) if isinstance(sync, GitSync) else ())


def _users(change: Change) -> Iterable[Request]:
    """The syncs of a Repository whose spec changed, or that came or went."""
    old, new = change.heads
    if old is not None and new is not None and old.generation == new.generation and new.generation:
        return ()
    at = change.request
    return change.informers.indexed(GitSync, BY_REPOSITORY.name, f"{at.namespace}/{at.name}")


def _decided(change: Change) -> Iterable[Request]:
    new = change.new
    if isinstance(new, SyncConflict) and not isinstance(new.spec.resolution, UnsetType):
        return [Request(new.namespace, new.spec.git_sync)]
    return ()


class GitSyncController(Controller[GitSync]):
    watches = (Watch(kind=Repository, to=_users), Watch(kind=SyncConflict, to=_decided))
    indexes = (BY_REPOSITORY,)
    echo = False
    concurrency = 8
    timeout = None  # each sync says its own
    quiet = 1.0
    """Seconds without another change before changes of the system are written."""

    conductor: Conductor

    def __init__(self, context: Context) -> None:
        self._context = context

    async def start(self) -> None:
        from trimtab.systems.gitops.conducting import Conductor

        if self._context.manager is None:
            raise ValueError(
                "Git sync needs the manager that runs it: it follows kinds that it learns of while it works"
            )
        for name in AHEAD:
            import_module(name)
        informers = self._context.manager.informers
        self.conductor = Conductor(
            self._context, self.client, self.events, informers, lambda request: self.wake(request), quiet=self.quiet
        )

    async def stop(self) -> None:
        if hasattr(self, "conductor"):
            await self.conductor.close()

    async def reconcile(self, request: Request) -> Result | None:
        sync = await self.client.find(GitSync, request.name, request.namespace)
        if sync is None:
            return None
        return await finalizer(self.client, sync, FINALIZER, apply=self.conductor.conduct, cleanup=self._let_go)

    async def _let_go(self, sync: GitSync) -> Result | None:
        await self.conductor.let_go(sync)
        return None
