"""What a CanaryDeployment wants to be there, from its spec and its status; and how the world then is.

`wanted` is pure: whoever has the status knows which objects there should be. Weights are those of the status, so that
whatever is put back is put back to the current weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.clock import parse_time
from trimtab.model.duration import Duration
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import Deployment
from trimtab.runtime.owners import owned_by
from trimtab.systems.delivery.kinds import Analysis, CanaryDeployment, CanaryDeploymentStatus, RunStatus
from trimtab.systems.delivery.kinds.canary import Phase
from trimtab.systems.delivery.kinds.fields import REVISION
from trimtab.systems.delivery.machine.facts import Pods
from trimtab.systems.delivery.machine.runs import analysis_of, short, step_of
from trimtab.systems.delivery.objects import routing
from trimtab.systems.delivery.objects.enforcing import MANAGER
from trimtab.systems.delivery.objects.facts import readiness, verified
from trimtab.systems.delivery.objects.names import canary_name, stable_name
from trimtab.systems.delivery.objects.routes import Traffic
from trimtab.systems.delivery.objects.services import canary_service, stable_service
from trimtab.systems.delivery.objects.workloads import canary_deployment, canary_replicas, stable_deployment

if TYPE_CHECKING:
    from trimtab.runtime.cached import CachedClient
    from trimtab.systems.delivery.revisions.snapshots import Snapshot

Document = Mapping[str, Any]

WITH_CANARY: tuple[Phase, ...] = ("Starting", "Progressing", "WaitingPromotion")
"""Phases in which a canary that is gone is made again."""
UNSTOPPABLE: tuple[Phase, ...] = ("Promoting", "Returning", "RollingBack", "Finalising", "Terminating")
"""Phases that are finished although someone says stop."""


def stable_revision(status: CanaryDeploymentStatus) -> str:
    """What stable should run."""
    if status.phase == "Promoting" and not isinstance(status.run, UnsetType):
        return status.run.revision
    return status.stable_revision or ""


def traffic(canary: CanaryDeployment, status: CanaryDeploymentStatus) -> Traffic:
    """What the canary should get now."""
    run = status.run
    if isinstance(run, UnsetType):
        return Traffic(weight=0, affinity=_affinity(canary.spec.analysis))
    analysis, step = analysis_of(run), step_of(run)
    affinity = _affinity(analysis)
    if isinstance(analysis, UnsetType) or step is None:
        return Traffic(weight=run.weight)
    if step.matched and run.weight:
        return Traffic(weight=run.weight, match=analysis.match)
    mirror = step.mirror if status.phase in ("Progressing", "WaitingPromotion") else 0
    return Traffic(weight=run.weight, mirror=mirror, affinity=affinity, cookie=short(run.revision))


def _affinity(analysis: Analysis | UnsetType) -> Any:
    return UNSET if isinstance(analysis, UnsetType) else analysis.session_affinity


def wanted(
    canary: CanaryDeployment,
    status: CanaryDeploymentStatus,
    stable: Snapshot | None,
    run: Snapshot | None,
    stable_replicas: int,
) -> list[dict[str, Any]]:
    """All objects of our own, in the order in which they are made: a route last, when what it leads to is there."""
    documents = [stable_service(canary), canary_service(canary)]
    if stable is not None:
        documents.append(stable_deployment(canary, stable.template, stable.revision))
    if run is not None and status.phase in WITH_CANARY and not isinstance(status.run, UnsetType):
        replicas = canary_replicas(canary, analysis_of(status.run), stable_replicas)
        documents.append(canary_deployment(canary, run.template, run.revision, replicas))
    documents += routing.destination_rules(canary)
    if not routing.is_reference(canary):
        documents.append(routing.owned_virtual_service(canary, traffic(canary, status)))
    return documents


def pods(document: Document | None, revision: str, threshold: int) -> Pods:
    """How a Deployment is. `ready` counts what its status last said, of whatever template: they answer requests."""
    if document is None:
        return Pods(message="its Deployment does not exist")
    found = readiness(document, threshold)
    counted = (document.get("status") or {}).get("readyReplicas")
    labels = (((document.get("spec") or {}).get("template") or {}).get("metadata") or {}).get("labels") or {}
    same = labels.get(REVISION) == short(revision)
    return Pods(
        exists=True,
        ok=found.ok and same,
        ready=counted if isinstance(counted, int) else 0,
        wanted=found.wanted,
        failed=found.failed and same,
        message=found.message,
    )


def live(
    virtual_service: Document | None, analysis: Analysis | UnsetType, now: datetime, run: RunStatus | None = None
) -> tuple[bool, float | None]:
    """Whether the routes are live; else when to look again, or None: when it says so."""
    settle = Duration("5s") if isinstance(analysis, UnsetType) else analysis.settle
    mode = "Auto" if isinstance(analysis, UnsetType) else analysis.verification
    since = written(virtual_service, now)
    if run is not None:  # the server's clock may be behind ours: they were not written before they were wanted
        since = max(since, parse_time(run.since))
    found = verified(virtual_service, settle, since, now, mode)
    return found.ok, None if found.ok or math.isinf(found.wait) else found.wait


def written(virtual_service: Document | None, now: datetime) -> datetime:
    """When we last changed it, by what the server noted; whole seconds, so counted as late as it may have been."""
    entries = ((virtual_service or {}).get("metadata") or {}).get("managedFields") or ()
    times = [str(entry.get("time", "")) for entry in entries if str(entry.get("manager", "")).startswith(MANAGER)]
    try:
        return max(parse_time(time) for time in times if time) + timedelta(seconds=1)
    except ValueError:
        return now


async def documents_of(client: CachedClient, canary: CanaryDeployment) -> tuple[Document | None, Document | None]:
    """The two Deployments as they are."""
    found = []
    for name in (stable_name(canary), canary_name(canary)):
        deployment = await client.find(Deployment, name, canary.namespace)
        if name == canary_name(canary) and deployment is not None and not owned_by(deployment, canary):
            deployment = None  # of someone else
        found.append(None if deployment is None else deployment.raw)
    return found[0], found[1]


async def virtual_service_of(client: CachedClient, canary: CanaryDeployment) -> VirtualService | None:
    name = canary.spec.virtual_service.name
    return await client.find(VirtualService, canary.name if isinstance(name, UnsetType) else name, canary.namespace)


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What enforcing found and left."""

    stable: Pods
    canary: Pods
    live: bool
    wait: float | None
    drifted: bool
    routes: int = 0
    drifts: tuple[str, ...] = ()
    """Each in a sentence."""


def run_of(status: CanaryDeploymentStatus) -> RunStatus | None:
    return None if isinstance(status.run, UnsetType) else status.run
