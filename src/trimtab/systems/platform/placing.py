"""Which clusters a workload is meant to be on. The project's own come before those that are shared with it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.client.protocol import Client, Query
from trimtab.model.selectors import LabelSelector
from trimtab.runtime.objects import is_deleting
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.kinds import Cluster, Workload
from trimtab.systems.platform.resolving import resolve
from trimtab.systems.platform.sharing import reaches


class Placing(msgspec.Struct, frozen=True, kw_only=True):
    """Clusters by name, and why others that were named are not among them."""

    clusters: dict[str, Cluster] = {}
    faults: dict[str, Fault] = {}


async def place(client: Client, workload: Workload) -> Placing:
    """Clusters that are being deleted are not placed on: what is there leaves first."""
    placement = workload.spec.placement
    if placement.labels:
        try:
            selector = LabelSelector.parse(placement.labels)
        except ValueError as error:
            raise Fault("PlacementInvalid", f"spec.placement.labels: {error}", again=False) from None
        listed = (await client.list(Cluster, Query())).items
        return selected([item for item in listed if isinstance(item, Cluster)], selector, workload.namespace)
    clusters: dict[str, Cluster] = {}
    faults: dict[str, Fault] = {}
    for entry in placement.clusters or ():
        try:
            found = await resolve(client, Cluster, entry.name, workload.namespace)
        except Fault as fault:
            faults[entry.name] = fault
            continue
        if not is_deleting(found):
            clusters[entry.name] = found
    return Placing(clusters=clusters, faults=faults)


def selected(clusters: Sequence[Cluster], selector: LabelSelector, project: str) -> Placing:
    """Pure. An own cluster hides shared ones of its name; two shared ones of one name are a fault."""
    found: dict[str, list[Cluster]] = {}
    for cluster in clusters:
        if _is_open(cluster, project) and selector.matches(cluster.metadata.labels or {}) and not is_deleting(cluster):
            found.setdefault(cluster.name, []).append(cluster)
    chosen: dict[str, Cluster] = {}
    faults: dict[str, Fault] = {}
    for name, those in sorted(found.items()):
        own = [each for each in those if each.namespace == project]
        if own or len(those) == 1:
            chosen[name] = (own or those)[0]
        else:
            owners = ", ".join(sorted(each.namespace for each in those))
            faults[name] = Fault("ClusterAmbiguous", f"Cluster {name} is shared with {project} by several: {owners}")
    return Placing(clusters=chosen, faults=faults)


def _is_open(cluster: Cluster, project: str) -> bool:
    spec = (cluster.raw or {}).get("spec") or {}
    return reaches(spec.get("sharing"), cluster.namespace, project)
