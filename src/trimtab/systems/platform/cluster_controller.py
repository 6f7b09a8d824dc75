"""The controller of Clusters: what wakes it, and when it lets one go. What it does with one is in `keeping`."""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.client.protocol import Query
from trimtab.model.kubernetes import Secret
from trimtab.runtime import Controller, Request, Result, Watch
from trimtab.runtime.changes import Change
from trimtab.runtime.finalizers import finalizer
from trimtab.runtime.index import Index
from trimtab.runtime.predicates import generation_changed
from trimtab.systems.platform.faults import Fault
from trimtab.systems.platform.ground import Ground
from trimtab.systems.platform.keeping import RETRY, Keeping
from trimtab.systems.platform.kinds import Addon, Blueprint, Cluster, Workload

FINALIZER = "infra.trimtab.dev/cluster"


def _secrets(cluster: Cluster) -> Iterable[str]:
    if imported := cluster.spec.config.imported:
        yield f"{cluster.namespace}/{imported.kubeconfig_secret_ref.name}"
    if cluster.status and cluster.status.kubeconfig_secret_ref:
        yield f"{cluster.namespace}/{cluster.status.kubeconfig_secret_ref.name}"


def _uses(cluster: Cluster) -> Iterable[str]:
    """What it follows, by name: in whichever project it is. What lies deeper is found at the next probe."""
    if cluster.spec.blueprint:
        yield f"Blueprint/{cluster.spec.blueprint.name}"
    if cluster.status:
        yield from (f"Addon/{part.name}" for part in cluster.status.addons or ())


def _of_secret(change: Change) -> list[Request]:
    return change.informers.indexed(Cluster, "secrets", str(change.request))


def _of_blueprint(change: Change) -> list[Request]:
    return change.informers.indexed(Cluster, "uses", f"Blueprint/{change.request.name}")


def _of_addon(change: Change) -> list[Request]:
    return change.informers.indexed(Cluster, "uses", f"Addon/{change.request.name}")


def _of_workload(change: Change) -> list[Request]:
    """The clusters that it has left: one may be waiting for that."""
    return sorted(_on(change.old) - _on(change.new))


def _on(workload: object) -> set[Request]:
    if not isinstance(workload, Workload) or not workload.status:
        return set()
    return {Request(part.project or workload.namespace, part.name) for part in workload.status.clusters or ()}


class ClusterController(Controller[Cluster]):
    """Reaches clusters, makes them, and keeps their blueprints on them."""

    concurrency = 8
    timeout = 1800.0  # there may be many, and each has a limit of its own
    echo = False
    indexes = (Index("secrets", _secrets), Index("uses", _uses))
    watches = (
        Watch(kind=Secret, to=_of_secret, query=Query(metadata_only=True)),
        Watch(kind=Blueprint, to=_of_blueprint, when=generation_changed),
        Watch(kind=Addon, to=_of_addon, when=generation_changed),
        Watch(kind=Workload, to=_of_workload),
    )

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def start(self) -> None:
        self._ground.enter()
        self._keeping = Keeping(self._ground, self.client, self.clock, self.events)

    async def stop(self) -> None:
        if hasattr(self, "_keeping"):
            await self._ground.leave()

    async def reconcile(self, request: Request) -> Result | None:
        cluster = await self.client.find(Cluster, request.name, request.namespace)
        if cluster is None:
            await self._ground.connections.forget(request.namespace, request.name)
            return None
        try:
            return await finalizer(
                self.client, cluster, FINALIZER, apply=self._keeping.keep, cleanup=self._keeping.leave
            )
        except Fault as fault:  # it cannot leave yet
            await self._keeping.tell(cluster, fault)
            return Result(requeue_after=RETRY)
