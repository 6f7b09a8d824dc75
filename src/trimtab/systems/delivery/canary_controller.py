"""The controller of CanaryDeployments: what wakes it. What it then does is in `releasing`.

A server that only defines the kinds and judges writes imports this too, so nothing heavy is loaded before `start`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType

from trimtab.client.protocol import Query
from trimtab.model.istio import DestinationRule, VirtualService
from trimtab.model.kubernetes import ConfigMap, ControllerRevision, Deployment, Pod, Secret, Service
from trimtab.runtime import Context, Controller, Request, Result, Watch
from trimtab.runtime.changes import Change
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.index import Index
from trimtab.runtime.objects import is_deleting
from trimtab.systems.delivery.kinds import CanaryDeployment, ReleaseGroup
from trimtab.systems.delivery.kinds.fields import BY_REVISION, CANARY, OWNER, REVISION, ROLE

if TYPE_CHECKING:
    from trimtab.systems.delivery.releasing import Releaser

FINALIZER = "delivery.trimtab.dev/traffic"
UNDER_WAY = 1
"""The priority of a run that goes on: its check comes before what is yet to begin."""


def _configs(canary: CanaryDeployment) -> Iterable[str]:
    """Each ConfigMap and Secret that its template names, whether or not it is there."""
    from trimtab.systems.delivery.revisions.configs import references

    for reference in references(canary.spec.deployment.get("template") or {}):
        yield f"{reference.kind}/{canary.namespace}/{reference.name}"


def _driven(canary: CanaryDeployment) -> Iterable[str]:
    """The VirtualService that is not its own."""
    if not isinstance(canary.spec.virtual_service.name, UnsetType):
        yield f"{canary.namespace}/{canary.spec.virtual_service.name}"


def _of_config_map(change: Change) -> list[Request]:
    return change.informers.indexed(CanaryDeployment, "configs", f"ConfigMap/{change.request}") + _of_copy(change)


def _of_secret(change: Change) -> list[Request]:
    return change.informers.indexed(CanaryDeployment, "configs", f"Secret/{change.request}") + _of_copy(change)


def _of_copy(change: Change) -> list[Request]:
    """Of a copy that somebody deleted: pods of stable may need it at any time."""
    copy = change.old if change.new is None else None
    owner = (copy.metadata.labels or {}).get(OWNER) if copy is not None else None
    return [Request(change.request.namespace, owner)] if owner else []


def _of_virtual_service(change: Change) -> list[Request]:
    return change.informers.indexed(CanaryDeployment, "driven", str(change.request))


def _revision(pod: Pod) -> Iterable[str]:
    yield f"{pod.namespace}/{(pod.metadata.labels or {}).get(REVISION, '')}"


def _of_group(change: Change) -> list[Request]:
    groups = [each for each in (change.old, change.new) if isinstance(each, ReleaseGroup)]
    return [Request(group.namespace, member.name) for group in groups for member in group.spec.members]


class CanaryController(Controller[CanaryDeployment]):
    """One reconcile enforces the objects, asks what is due, and moves the run by one step; then it goes on with the next,
    until there is something to wait for."""

    concurrency = 64
    timeout = 300.0
    echo = False
    owns = (Deployment, Service, VirtualService, DestinationRule, ControllerRevision)
    indexes = (Index("configs", _configs), Index("driven", _driven))
    watches = (
        Watch(kind=ConfigMap, to=_of_config_map, query=Query(metadata_only=True)),
        Watch(kind=Secret, to=_of_secret, query=Query(metadata_only=True)),
        Watch(kind=VirtualService, to=_of_virtual_service),
        Watch(kind=ReleaseGroup, to=_of_group),
        # Only to ask them: their Deployment tells when they are ready and when not.
        Watch(
            kind=Pod,
            to=lambda change: (),
            query=Query(labels=f"{ROLE}={CANARY}"),
            indexes=(Index(BY_REVISION, _revision),),
        ),
    )

    releaser: Releaser

    def __init__(self, context: Context) -> None:
        self._context = context

    async def start(self) -> None:
        from trimtab.systems.delivery.releasing import Releaser

        self.releaser = Releaser(self._context, self.client, self.clock, self.events)

    async def stop(self) -> None:
        if hasattr(self, "releaser"):
            await self.releaser.close()

    async def reconcile(self, request: Request) -> Result | None:
        canary = await self.client.find(CanaryDeployment, request.name, request.namespace)
        if canary is None:
            return None
        if is_deleting(canary):
            wait = await self.releaser.let_go(canary) if FINALIZER in (canary.metadata.finalizers or ()) else None
            if wait is not None:
                return Result(requeue_after=wait)
        result = await finalizer(self.client, canary, FINALIZER, apply=self.releaser.release, cleanup=_gone)
        if result is None or result.requeue_after is None:
            return result
        under_way = bool(canary.status and canary.status.run)
        return msgspec.structs.replace(result, priority=UNDER_WAY if under_way else 0)


async def _gone(canary: CanaryDeployment) -> Result | None:
    """Traffic is back at stable: what was made goes with its owner."""
    return None
