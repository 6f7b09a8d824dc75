"""Addons that are on a cluster and no longer meant to be. They are found on the cluster itself, by their anchors.

A blueprint is changed by others than those who have the cluster, and for many clusters at once. So what would go by it is
guarded as in an addon whose manifests change, and is counted over all addons that leave: until the Cluster has the
annotation. What the Cluster's own spec says is done at once, and so is its deletion.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trimtab.client.api import ApiClient
from trimtab.client.transport import FAILURES
from trimtab.runtime.events import Recorder
from trimtab.runtime.inventory.plan import Step, held
from trimtab.systems.platform import anchors
from trimtab.systems.platform.anchors import Holder
from trimtab.systems.platform.applying import listed
from trimtab.systems.platform.blueprints import Whole
from trimtab.systems.platform.faults import Fault, counted, cut, of_call
from trimtab.systems.platform.ground import ALLOW_MASS_DELETE, Ground
from trimtab.systems.platform.kinds import LATEST, Cluster, ClusterStatus, Part

KIND = "Cluster"
MASS_DELETE = "MassDelete"


class Leaving:
    def __init__(self, ground: Ground, events: Recorder) -> None:
        self._ground, self._events = ground, events

    async def unwanted(
        self, cluster: Cluster, target: ApiClient, status: ClusterStatus, wanted: Whole | None
    ) -> dict[str, Part]:
        """Removes what is not in `wanted`; the parts of what could not go yet, or may not."""
        names = [chosen.name for chosen in wanted.addons] if wanted else []
        leaving = await self._leaving(cluster, target, names)
        before = {part.name: part for part in status.addons or ()}
        if wanted is None or not leaving or _is_said(cluster, status, wanted):
            return await self._removed(cluster, target, leaving)
        try:
            steps = {name: await self._ground.applier.leaving(target, own) for name, own in leaving.items()}
        except Fault as fault:  # nobody knows how many there are
            return {
                name: _part(before, name).replace(phase="Removing", reason=fault.reason, message=fault.message)
                for name in leaving
            }
        kept = self._held(cluster, before, steps, wanted)
        return kept | await self._removed(cluster, target, {n: own for n, own in leaving.items() if n not in kept})

    async def everything(self, cluster: Cluster, target: ApiClient) -> dict[str, Part]:
        """The cluster is let go; the parts of what could not go yet."""
        return await self._removed(cluster, target, await self._leaving(cluster, target, ()))

    async def _leaving(self, cluster: Cluster, target: ApiClient, wanted: Collection[str]) -> dict[str, Holder]:
        try:
            there = await anchors.parts(target, await self._ground.holder(KIND, cluster.namespace, cluster.name))
        except FAILURES as error:
            raise of_call(error) from None
        names = sorted(there.keys() - set(wanted), reverse=True)
        return {name: await self._ground.holder(KIND, cluster.namespace, cluster.name, name) for name in names}

    async def _removed(self, cluster: Cluster, target: ApiClient, leaving: Mapping[str, Holder]) -> dict[str, Part]:
        left: dict[str, Part] = {}
        for name, own in leaving.items():
            try:
                gone = await self._ground.applier.remove(target, own)
                self._events.normal(cluster, "AddonRemoved", f"removed addon {name} with {counted(gone, 'object')}")
            except Fault as fault:
                left[name] = Part(name=name, phase="Removing", reason=fault.reason, message=fault.message)
        return left

    def _held(
        self, cluster: Cluster, before: Mapping[str, Part], steps: Mapping[str, tuple[Step, ...]], wanted: Whole
    ) -> dict[str, Part]:
        """All addons with anything to lose, or none."""
        together = [step for own in steps.values() for step in own]
        why = {refusal.entry: str(refusal) for refusal in held(together, len(together), bool(wanted.addons))}
        kept: dict[str, Part] = {}
        for name, own in steps.items():
            if not own or not why:
                continue
            entries = {step.entry for step in own}
            message = cut(
                f"is no longer in the blueprint. To let so much go, annotate the Cluster with {ALLOW_MASS_DELETE}: "
                f"{wanted.digest}. " + listed([told for entry, told in why.items() if entry in entries])
            )
            known = _part(before, name)
            if known.reason != MASS_DELETE:
                self._events.warning(cluster, MASS_DELETE, f"addon {name}: {message}")
            kept[name] = known.replace(phase="Failed", reason=MASS_DELETE, message=message)
        return kept


def _part(before: Mapping[str, Part], name: str) -> Part:
    return before.get(name) or Part(name=name)


def _is_said(cluster: Cluster, status: ClusterStatus, wanted: Whole) -> bool:
    """Whether a person said it of the Cluster: by naming another blueprint or version than it has, or by the annotation."""
    if (cluster.metadata.annotations or {}).get(ALLOW_MASS_DELETE) == wanted.digest:
        return True
    meant, had = cluster.spec.blueprint, status.blueprint
    if not meant or not had:
        return False
    return meant.name != had.name or meant.version not in (LATEST, had.version)
