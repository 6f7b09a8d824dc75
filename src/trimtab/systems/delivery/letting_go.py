"""Before a CanaryDeployment goes: traffic back to stable, and nothing taken along that is not its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from trimtab.client.protocol import Query
from trimtab.model.clock import Clock
from trimtab.model.errors import StatusError
from trimtab.model.istio import DestinationRule, VirtualService
from trimtab.model.kubernetes import ConfigMap, ControllerRevision, Deployment, Secret, Service
from trimtab.model.logs import log
from trimtab.runtime.objects import uid_of, with_metadata
from trimtab.runtime.owners import owned_by
from trimtab.runtime.status import write_status
from trimtab.systems.delivery import world
from trimtab.systems.delivery.checking import pin_of
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus
from trimtab.systems.delivery.kinds.fields import OWNER
from trimtab.systems.delivery.machine.runs import analysis_of, stamp
from trimtab.systems.delivery.objects import routing
from trimtab.systems.delivery.objects.driving import drive, release
from trimtab.systems.delivery.objects.enforcing import enforce

if TYPE_CHECKING:
    from trimtab.runtime.cached import CachedClient
    from trimtab.storage.blobs import Blobs

PATIENCE = 60.0
"""Seconds that the data plane is waited for: an object must not stay for ever because nothing answers."""
LOOK = 1.0
_MADE = (Deployment, Service, VirtualService, DestinationRule, ControllerRevision, ConfigMap, Secret)


class LettingGo:
    def __init__(self, client: CachedClient, clock: Clock, blobs: Blobs | None) -> None:
        self._client, self._clock, self._blobs = client, clock, blobs

    async def seconds(self, canary: CanaryDeployment) -> float | None:
        """To wait before it may go; None when it may. Nothing is made any more."""
        status = canary.status or CanaryDeploymentStatus()
        if status.phase is UNSET:
            return None
        if status.phase != "Terminating":
            run = status.run
            if not isinstance(run, UnsetType):
                run = run.replace(weight=0, since=stamp(self._clock.now()))
            ending = status.replace(phase="Terminating", run=run, canary_weight=0)
            canary = await write_status(self._client, canary, ending)
            status = ending
        patient = self._waited(canary) < PATIENCE
        try:
            wait = await self._traffic(canary, status)
            if wait is not None and patient:
                return wait
            await release(self._client, canary)
        except (
            StatusError,
            TypeError,
            ValueError,
            LookupError,
        ) as error:  # refused, or a spec that no route can be made of
            if patient or (isinstance(error, StatusError) and error.code in (409, 429, 500, 502, 503, 504)):
                return LOOK
            log.warning("a canary goes, and its routes stay as they are", canary=canary.name, error=str(error)[:256])
        if canary.spec.deletion_policy == "Orphan":
            await self._orphaned(canary)
        if self._blobs is not None:
            for ended in status.history or ():
                await self._blobs.unpin(pin_of(canary, ended.id))
        return None

    async def _traffic(self, canary: CanaryDeployment, status: CanaryDeploymentStatus) -> float | None:
        """All of it to stable; None when it is so."""
        found = await world.virtual_service_of(self._client, canary)
        if found is None or found.raw is None or isinstance(status.run, UnsetType):
            return None
        nothing = world.traffic(canary, status)
        if routing.is_reference(canary):
            await drive(self._client, canary, nothing)
        elif owned_by(found, canary):
            await enforce(self._client, canary, [routing.owned_virtual_service(canary, nothing)], adopt=False)
        found = await world.virtual_service_of(self._client, canary)
        live, wait = world.live(found.raw if found else None, analysis_of(status.run), self._clock.now())
        return None if live else (wait if wait is not None else LOOK)

    def _waited(self, canary: CanaryDeployment) -> float:
        began = canary.metadata.deletion_timestamp
        return (self._clock.now() - began).total_seconds() if began else 0.0

    async def _orphaned(self, canary: CanaryDeployment) -> None:
        """What was made stays, and nobody owns it."""
        query = Query(namespace=canary.namespace, labels=f"{OWNER}={canary.name}")
        for kind in _MADE:
            for found in (await self._client.list(kind, query)).items:
                left = tuple(each for each in found.metadata.owner_references or () if each.uid != uid_of(canary))
                if len(left) != len(found.metadata.owner_references or ()):
                    await self._client.patch(found, with_metadata(found, owner_references=left))
