"""One cluster: provisioned, reached, and brought to its blueprint.

Three conditions tell it apart: Reachable (its API answers us), BlueprintApplied (every addon is there and well) and Ready
(both). Per addon the status says how far it is. What no longer belongs to the blueprint is the work of `leaving`.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Client, Query
from trimtab.model.clock import Clock
from trimtab.model.conditions import Condition
from trimtab.runtime import Result
from trimtab.runtime.events import Recorder
from trimtab.runtime.objects import is_deleting
from trimtab.runtime.status import condition, ready, write_status
from trimtab.systems.platform.applying import Outcome, Wish
from trimtab.systems.platform.blueprints import Chosen, Whole, whole
from trimtab.systems.platform.faults import Fault, counted, cut
from trimtab.systems.platform.ground import ADOPT, ALLOW_MASS_DELETE, REACHABLE, Ground, is_forced, was_reached
from trimtab.systems.platform.kinds import Cluster, ClusterStatus, Part, Workload
from trimtab.systems.platform.kinds.cluster import AppliedBlueprint
from trimtab.systems.platform.leaving import KIND, Leaving
from trimtab.systems.platform.managing import Managing
from trimtab.systems.platform.probing import probe

RETRY, SOON, LEAST = 15.0, 3.0, 1.0
APPLIED = "BlueprintApplied"


class Keeping:
    def __init__(self, ground: Ground, client: Client, clock: Clock, events: Recorder) -> None:
        self._ground, self._client, self._clock, self._events = ground, client, clock, events
        self._managing = Managing(client, clock, events)
        self._leaving = Leaving(ground, events)

    async def keep(self, cluster: Cluster) -> Result | None:
        flavour = cluster.spec.config.flavour()
        if flavour != "imported":
            cluster, wait = await self._managing.provision(cluster, flavour)
            if wait is not None:
                return Result(requeue_after=wait)
        try:
            target = await self._ground.target(cluster)
            status = await self._probed(cluster, target)
        except Fault as fault:
            await self._unreached(cluster, fault)
            return Result(requeue_after=max(LEAST, cluster.spec.probe_interval.seconds))
        if not was_reached(cluster):  # it must be known before anything is put there
            cluster = await write_status(self._client, cluster, status)
        try:
            status, soon = await self._brought(cluster, target, status)
        except Fault as fault:
            status, soon = self._unbrought(cluster, status, fault), RETRY
        await write_status(self._client, cluster, status)
        return Result(requeue_after=min(soon, max(LEAST, cluster.spec.probe_interval.seconds)))

    async def leave(self, cluster: Cluster) -> Result | None:
        """Workloads go first, then addons, then what a provisioner made. Fault while any of it is left."""
        if is_forced(cluster):
            self._events.warning(cluster, "LeftBehind", "deletion was forced: what is on the cluster stays there")
        else:
            await self._emptied(cluster)
        flavour = cluster.spec.config.flavour()
        if flavour != "imported":
            await self._managing.deprovision(cluster, flavour, forced=is_forced(cluster))
        await self._ground.connections.forget(cluster.namespace, cluster.name)
        return None

    async def tell(self, cluster: Cluster, fault: Fault) -> None:
        status = cluster.status or ClusterStatus()
        generation = cluster.metadata.generation or UNSET
        conditions = ready(status.conditions, self._clock, generation, False, fault.reason, fault.message)
        phase = "Removing" if is_deleting(cluster) else "Failed"
        await write_status(self._client, cluster, status.replace(conditions=conditions, phase=phase))

    async def _probed(self, cluster: Cluster, target: ApiClient) -> ClusterStatus:
        """The status with what the cluster tells of itself. Fault when it does not answer."""
        told, uid = await probe(target)
        status = cluster.status or ClusterStatus()
        generation = cluster.metadata.generation or UNSET
        if status.cluster_uid and uid and uid != status.cluster_uid:
            self._events.warning(cluster, "AnotherCluster", "the kubeconfig leads to another cluster than before")
        conditions = condition(status.conditions, self._clock, generation, REACHABLE, True, "Answers")
        if not _is(status.conditions, REACHABLE):
            self._events.normal(cluster, "Reachable", f"its API answers, Kubernetes {told}")
        return status.replace(
            observed_generation=generation, version=told or "unknown", cluster_uid=uid or UNSET, conditions=conditions
        )

    async def _unreached(self, cluster: Cluster, fault: Fault) -> None:
        status = cluster.status or ClusterStatus()
        generation = cluster.metadata.generation or UNSET
        if _is(status.conditions, REACHABLE) or not status.conditions:
            self._events.warning(cluster, fault.reason, fault.message)
        conditions = condition(
            status.conditions, self._clock, generation, REACHABLE, False, fault.reason, fault.message
        )
        unknown = "nobody knows while it cannot be reached"
        conditions = condition(conditions, self._clock, generation, APPLIED, None, "Unreachable", unknown)
        conditions = ready(conditions, self._clock, generation, False, fault.reason, fault.message)
        await write_status(
            self._client,
            cluster,
            status.replace(observed_generation=generation, phase="Unreachable", conditions=conditions),
        )

    async def _brought(self, cluster: Cluster, target: ApiClient, status: ClusterStatus) -> tuple[ClusterStatus, float]:
        """To its blueprint: addons in order, each when what it depends on is well; then what is no longer in it goes."""
        wanted = await self._wanted(cluster)
        before = {part.name: part for part in status.addons or ()}
        parts: dict[str, Part] = {}
        for chosen in wanted.addons if wanted else ():
            waits = [name for name in chosen.depends_on if parts[name].phase != "Ready"]
            known = before.get(chosen.name) or Part(name=chosen.name)
            known = known.replace(
                version=chosen.addon.version() or UNSET,
                project=UNSET if chosen.addon.namespace == cluster.namespace else chosen.addon.namespace,
            )
            if waits:
                message = f"waits for {', '.join(waits)}"
                parts[chosen.name] = known.replace(phase="Waiting", reason="DependencyNotReady", message=message)
                continue
            parts[chosen.name] = await self._addon(cluster, target, chosen, known)
        left = await self._leaving.unwanted(cluster, target, status, wanted)
        parts |= left
        ok, reason, message = _verdict(wanted, parts)
        generation = cluster.metadata.generation or UNSET
        conditions = condition(status.conditions, self._clock, generation, APPLIED, ok, reason, message)
        conditions = ready(conditions, self._clock, generation, ok, reason if not ok else "Ready", message)
        if ok and not _is(status.conditions, APPLIED) and wanted:
            self._events.normal(cluster, "BlueprintApplied", f"blueprint {wanted.blueprint.name} is there and well")
        status = status.replace(
            phase="Ready" if ok else "Progressing" if reason in ("Progressing", "Waiting") else "Degraded",
            blueprint=status.blueprint if left and status.blueprint else _applied(cluster, wanted),
            addons=tuple(parts[name] for name in sorted(parts)) if parts else UNSET,
            conditions=conditions,
        )
        failed = any(part.phase == "Failed" for part in parts.values())
        return status, RETRY if failed else SOON if not ok else RETRY * 1000

    def _unbrought(self, cluster: Cluster, status: ClusterStatus, fault: Fault) -> ClusterStatus:
        """A blueprint that means nothing changes nothing on the cluster."""
        generation = cluster.metadata.generation or UNSET
        conditions = condition(status.conditions, self._clock, generation, APPLIED, False, fault.reason, fault.message)
        if _reason(status.conditions, APPLIED) != fault.reason:
            self._events.warning(cluster, fault.reason, fault.message)
        conditions = ready(conditions, self._clock, generation, False, fault.reason, fault.message)
        return status.replace(phase="Degraded", conditions=conditions)

    async def _wanted(self, cluster: Cluster) -> Whole | None:
        if not cluster.spec.blueprint:
            return None
        chosen = cluster.spec.blueprint
        return await whole(self._client, self._ground.api, chosen.name, chosen.version, cluster.namespace)

    async def _addon(self, cluster: Cluster, target: ApiClient, chosen: Chosen, known: Part) -> Part:
        addon = chosen.addon
        try:
            manifests = await self._ground.sources.manifests(self._ground.api, addon, addon.spec.namespace)
        except Fault as fault:
            return known.replace(phase="Failed", reason=fault.reason, message=fault.message)
        annotations = addon.metadata.annotations or {}
        wish = Wish(
            adopt=annotations.get(ADOPT) == "true",
            allow_mass_delete=annotations.get(ALLOW_MASS_DELETE) == manifests.digest,
        )
        holder = await self._ground.holder(KIND, cluster.namespace, cluster.name, chosen.name)
        outcome = await self._ground.applier.apply(target, holder, manifests, addon.spec.namespace, known, wish)
        self._told(cluster, known, outcome)
        return outcome.part

    async def _emptied(self, cluster: Cluster) -> None:
        workloads = (await self._client.list(Workload, Query())).items
        on = sorted(f"{w.namespace}/{w.name}" for w in workloads if isinstance(w, Workload) and _is_on(w, cluster))
        if on:
            raise Fault("InUse", f"waits for workloads to leave it: {', '.join(on[:5])}")
        try:
            left = await self._leaving.everything(cluster, await self._ground.target(cluster))
        except Fault as fault:
            if not was_reached(cluster):
                return
            raise Fault(
                "RemovalWaits",
                f"its addons cannot be removed: {fault.message}. If the cluster is gone for ever, annotate it with "
                'hub.trimtab.dev/force-delete: "true"',
            ) from None
        if left:
            raise Fault("RemovalWaits", "; ".join(f"{name}: {part.message}" for name, part in left.items()))

    def _told(self, cluster: Cluster, before: Part, outcome: Outcome) -> None:
        part = outcome.part
        if outcome.corrected:
            self._events.normal(
                cluster, "DriftCorrected", f"addon {part.name}: put back {counted(outcome.corrected, 'object')}"
            )
        elif outcome.created or outcome.changed or outcome.pruned:
            done = f"created {outcome.created}, changed {outcome.changed}, removed {outcome.pruned} objects"
            self._events.normal(cluster, "AddonApplied", f"addon {part.name}: {done}")
        if part.phase == "Failed" and (before.phase, before.reason) != (part.phase, part.reason):
            self._events.warning(cluster, part.reason or "ApplyFailed", f"addon {part.name}: {part.message or ''}")


def _verdict(wanted: Whole | None, parts: Mapping[str, Part]) -> tuple[bool, str, str]:
    if wanted is None and not parts:
        return True, "NoBlueprint", "it follows no blueprint"
    for phases, reason in (
        (("Failed",), "AddonsFailed"),
        (("Degraded",), "AddonsUnhealthy"),
        (("Removing",), "Removing"),
        (("Pending", "Applying", "Progressing"), "Progressing"),
        (("Waiting",), "Waiting"),
    ):
        those = [f"{name}: {p.reason or p.phase}{_said(p)}" for name, p in parts.items() if p.phase in phases]
        if those:
            return False, reason, cut("; ".join(those))
    return True, "Applied", f"{counted(len(parts), 'addon')} well"


def _said(part: Part) -> str:
    return f" ({part.message})" if part.message else ""


def _applied(cluster: Cluster, wanted: Whole | None) -> AppliedBlueprint | UnsetType:
    """What it is brought to. While something of the former is left, that is still told: by it one sees what was said since."""
    if wanted is None:
        return UNSET
    found = wanted.blueprint
    return AppliedBlueprint(
        name=found.name,
        project=UNSET if found.namespace == cluster.namespace else found.namespace,
        version=found.version() or UNSET,
    )


def _is_on(workload: Workload, cluster: Cluster) -> bool:
    parts = workload.status.clusters or () if workload.status else ()
    return any(
        part.name == cluster.name and (part.project or workload.namespace) == cluster.namespace and _was_put(part)
        for part in parts
    )


def _was_put(part: Part) -> bool:
    """Not one that was only named: no such cluster was there then."""
    return part.reason not in ("ClusterMissing", "ClusterAmbiguous") or bool(part.digest or part.objects)


def _is(conditions: object, kind: str) -> bool:
    return any(isinstance(c, Condition) and c.type == kind and c.status == "True" for c in _all(conditions))


def _reason(conditions: object, kind: str) -> str:
    return next((c.reason for c in _all(conditions) if c.type == kind), "")


def _all(conditions: object) -> tuple[Condition, ...]:
    return conditions if isinstance(conditions, tuple) else ()
