"""Make the objects as the status wants them, and say how the world then is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UnsetType

from trimtab.client.protocol import Query
from trimtab.model.clock import Clock
from trimtab.model.kubernetes import Pod
from trimtab.runtime.objects import uid_of
from trimtab.systems.delivery import pods, world
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus
from trimtab.systems.delivery.kinds.fields import BY_REVISION, CANARY, REVISION, ROLE, STABLE
from trimtab.systems.delivery.machine.facts import Pods
from trimtab.systems.delivery.machine.runs import analysis_of, short
from trimtab.systems.delivery.objects import routing
from trimtab.systems.delivery.objects.driving import drive
from trimtab.systems.delivery.objects.enforcing import Agreed, enforce
from trimtab.systems.delivery.objects.grounds import Grounds
from trimtab.systems.delivery.objects.names import canary_name, stable_name
from trimtab.systems.delivery.objects.tidying import tidy
from trimtab.systems.delivery.revisions import snapshots
from trimtab.systems.delivery.telling import Trouble

if TYPE_CHECKING:
    from trimtab.runtime.cached import CachedClient

Document = Mapping[str, Any]


class Enforcer:
    """Of all CanaryDeployments of a process."""

    def __init__(self, client: CachedClient, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._agreed: dict[str, Agreed] = {}
        self._tidied: dict[str, int] = {}  # at which generation; lost with the process, and then done once more

    def forget(self, uid: str) -> None:
        """It is gone."""
        self._tidied.pop(uid, None)
        self._agreed.pop(uid, None)

    async def enforced(
        self, canary: CanaryDeployment, status: CanaryDeploymentStatus, *, dry: bool = False
    ) -> world.Seen | Trouble:
        """With `dry` nothing is written: what differs is only told. Raises Overtaken."""
        revision = world.stable_revision(status)
        stable = await snapshots.load(self._client, canary, revision)
        if stable is None and status.phase not in ("RollingBack", "Finalising"):  # traffic can go back without it
            return Trouble(
                "SnapshotMissing", f"the ControllerRevision of {short(revision)} is gone: it must not be deleted"
            )
        run = world.run_of(status)
        running = await snapshots.load(self._client, canary, run.revision) if run is not None else None
        replicas = await self._replicas(canary)
        given = await self._given(canary, status)
        documents = world.wanted(canary, given, stable, running, replicas)
        grounds = Grounds(self._client, canary)
        enforced = await enforce(
            self._client,
            canary,
            documents,
            adopt=canary.spec.adopt,
            expected=_expected(canary, status, documents),
            dry=dry,
            agreed=self._agreed.setdefault(uid_of(canary), {}),
            confirm=grounds.confirm,
        )
        told, conflicts = list(enforced.drifts), list(enforced.conflicts)
        if routing.is_reference(canary):
            traffic = world.traffic(canary, given)
            driven = await drive(self._client, canary, traffic, dry=dry, confirm=grounds.confirm)
            told += driven.drifts
            conflicts += driven.conflicts
        refused = {each.name: each.why for each in conflicts if each.kind == "Deployment" and each.refused}
        if rest := [each for each in conflicts if each.name not in refused or each.kind != "Deployment"]:
            return Trouble("Conflict", "; ".join(map(str, rest)))
        seen = await self._seen(canary, status, tuple(map(str, told)), bool(told), refused)
        generation = canary.metadata.generation or 0
        if seen.live and not dry and self._tidied.get(uid_of(canary)) != generation:
            # What a spec before this one left behind.
            await tidy(self._client, canary, documents, confirm=grounds.confirm)
            self._tidied[uid_of(canary)] = generation
        return seen

    async def _seen(
        self,
        canary: CanaryDeployment,
        status: CanaryDeploymentStatus,
        drifts: tuple[str, ...],
        drifted: bool,
        refused: Mapping[str, str],
    ) -> world.Seen:
        run, analysis = world.run_of(status), canary.spec.analysis
        if run is not None:
            analysis = analysis_of(run)
        least = 100 if isinstance(analysis, UnsetType) else analysis.stable_ready_threshold
        least_canary = 100 if isinstance(analysis, UnsetType) else analysis.canary_ready_threshold
        stable, other = await world.documents_of(self._client, canary)
        stable_pods = await self._explained(canary, STABLE, world.stable_revision(status), stable, least)
        canary_pods = Pods(message="its Deployment does not exist")
        if run is not None:
            canary_pods = await self._explained(canary, CANARY, run.revision, other, least_canary)
        elif other is not None:
            canary_pods = Pods(exists=True)
        if stable_name(canary) in refused:
            stable_pods = msgspec.structs.replace(
                stable_pods, ok=False, failed=True, message=f"its Deployment {refused[stable_name(canary)]}"
            )
        if canary_name(canary) in refused:
            canary_pods = msgspec.structs.replace(
                canary_pods, ok=False, failed=True, message=f"its Deployment {refused[canary_name(canary)]}"
            )
        found = await world.virtual_service_of(self._client, canary)
        live, wait = world.live(found.raw if found is not None else None, analysis, self._clock.now(), run)
        return world.Seen(
            stable=stable_pods,
            canary=canary_pods,
            live=live,
            wait=wait,
            drifted=drifted,
            routes=(found.metadata.generation or 0) if found is not None else 0,
            drifts=drifts,
        )

    async def _explained(
        self, canary: CanaryDeployment, role: str, revision: str, document: Document | None, least: int
    ) -> Pods:
        """With what its pods say, when they are not ready: it is gone once they are."""
        found = world.pods(document, revision, least)
        if not found.exists or (found.ok and role == STABLE):
            return found
        said = await self._pods(canary, role, revision)
        if found.ok:
            return msgspec.structs.replace(found, crashes=pods.crashes(said))
        why = pods.why(said)
        return msgspec.structs.replace(
            found,
            message=f"{found.message}: {why}" if why else found.message,
            excused=pods.excused(said),
            crashes=pods.crashes(said),
        )

    async def _pods(self, canary: CanaryDeployment, role: str, revision: str) -> list[Document]:
        """Canaries' are watched, for each check asks them; those of stable are asked for when they are not ready."""
        if role == CANARY:
            found = await self._client.indexed(Pod, BY_REVISION, f"{canary.namespace}/{short(revision)}")
        else:
            labels = f"{ROLE}={role},{REVISION}={short(revision)}"
            found = list((await self._client.list(Pod, Query(namespace=canary.namespace, labels=labels))).items)
        return [pod.raw or {} for pod in found]

    async def _given(self, canary: CanaryDeployment, status: CanaryDeploymentStatus) -> CanaryDeploymentStatus:
        """The status whose traffic is set: no weight goes to pods that died since it was decided."""
        run = world.run_of(status)
        if run is None or not run.weight or status.phase not in world.WITH_CANARY:
            return status
        _, other = await world.documents_of(self._client, canary)
        ready = world.pods(other, run.revision, 1).ready
        return status if ready else status.replace(run=run.replace(weight=0))

    async def _replicas(self, canary: CanaryDeployment) -> int:
        """Of stable, as it is: an autoscaler may have changed it."""
        count = canary.spec.deployment.get("replicas", 1)
        if not isinstance(canary.spec.autoscaler_ref, UnsetType):
            stable, _ = await world.documents_of(self._client, canary)
            count = ((stable or {}).get("spec") or {}).get("replicas", count)
        return count if isinstance(count, int) else 1


def _expected(
    canary: CanaryDeployment, status: CanaryDeploymentStatus, documents: Sequence[Document]
) -> set[tuple[str, str]]:
    """Those that were there before: all, once there was a stable; the canary's, once it had traffic. A spec that was not
    seen before may want what never was."""
    if status.phase == "Initializing" or status.observed_generation != canary.metadata.generation:
        return set()
    keys = {(each["kind"], each["metadata"]["name"]) for each in documents}
    if status.phase == "Starting":
        keys -= {("Deployment", each["metadata"]["name"]) for each in documents[3:] if each["kind"] == "Deployment"}
    return keys
