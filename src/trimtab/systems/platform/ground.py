"""What the controllers of this system share: connections, sources, and who the hub is. Made once for a home."""

from __future__ import annotations

from trimtab.client.api import ApiClient
from trimtab.model.conditions import get_condition
from trimtab.runtime.system import Context
from trimtab.systems.platform.access import Connections, Dial
from trimtab.systems.platform.anchors import Holder, hub_identity
from trimtab.systems.platform.applying import Applier
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.kinds import Addon, Cluster, Workload
from trimtab.systems.platform.rendering.helm import Helm
from trimtab.systems.platform.rendering.sources import ReadFile, Sources
from trimtab.systems.platform.resolving import artifact

CLONES = 4 << 30
REACHABLE = "Reachable"
"""The condition of a Cluster whose API answers us."""

ADOPT = "hub.trimtab.dev/adopt"
"""Annotation of a Workload or an Addon: "true" takes over objects on clusters that belong to nobody."""
ALLOW_MASS_DELETE = "hub.trimtab.dev/allow-mass-delete"
"""Annotation: the digest of that for which many objects may go at once. Of a Workload or an Addon the manifests; of a
Cluster what its blueprint comes to."""
FORCE_DELETE = "hub.trimtab.dev/force-delete"
"""Annotation: "true" lets a resource go although a cluster cannot be reached; what is there stays there."""


class Ground:
    """One for all controllers of a process."""

    def __init__(
        self, context: Context, *, dial: Dial | None = None, read_file: ReadFile | None = None, helm: Helm | None = None
    ) -> None:
        self.api: ApiClient = context.client
        self.connections = Connections(context.clock, dial)
        self.applier = Applier(context.clock)
        folder = context.scratch.dir("platform", CLONES).path / "clones"
        self.sources = Sources(read_file or self._read, folder, helm or Helm())
        self._hub = ""
        self._users = 0

    async def holder(self, kind: str, project: str, name: str, part: str = "") -> Holder:
        if not self._hub:
            self._hub = await hub_identity(self.api)
        return Holder(hub=self._hub, kind=kind, project=project, name=name, part=part)

    async def target(self, cluster: Cluster) -> ApiClient:
        return await self.connections.client(self.api, cluster)

    async def reached(self, cluster: Cluster) -> ApiClient:
        """For workloads: what the cluster's own controller could not reach is not tried by each of them again."""
        known = get_condition(cluster.status.conditions, REACHABLE) if cluster.status else None
        if known is not None and known.status == "False" and known.observed_generation == cluster.metadata.generation:
            raise Fault(known.reason, known.message)
        return await self.target(cluster)

    def enter(self) -> None:
        self._users += 1

    async def leave(self) -> None:
        """The last one closes the connections."""
        self._users -= 1
        if self._users == 0:
            await self.connections.close()

    async def _read(self, owner: Addon | Workload, path: str) -> bytes:
        return await artifact(self.api, owner, path)


def is_forced(obj: Cluster | Workload) -> bool:
    return (obj.metadata.annotations or {}).get(FORCE_DELETE) == "true"


def was_reached(cluster: Cluster) -> bool:
    """Whether it ever answered: before that nothing can have been put there."""
    return bool(cluster.status and cluster.status.version)
