"""What the cluster says: whether a Deployment is ready, and whether routes are live."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from trimtab.model.duration import Duration

Document = Mapping[str, Any]


class Ready(msgspec.Struct, frozen=True):
    """`failed`: its controller gave up waiting for it."""

    ok: bool
    ready: int
    wanted: int
    updated: int
    message: str
    failed: bool = False


class Verified(msgspec.Struct, frozen=True):
    """Whether weights count. When not yet, `wait` says in how many seconds they will; infinite when only the status of
    the VirtualService can say so."""

    ok: bool
    wait: float = 0.0


def readiness(deployment: Document | None, threshold: int = 100, *, old: bool = False) -> Ready:
    """Whether `threshold` percent of the pods of the template as it is now are ready. Pods of a template before must be
    gone, unless `old`. A status that was written for an older spec says nothing."""
    if deployment is None:
        return Ready(False, 0, 0, 0, "does not exist")
    spec, status = _map(deployment, "spec"), _map(deployment, "status")
    wanted = spec["replicas"] if isinstance(spec.get("replicas"), int) else 1
    generation, observed = _map(deployment, "metadata").get("generation"), status.get("observedGeneration")
    if generation and (_number(observed) or 0) < generation:
        return Ready(False, 0, wanted, 0, "its status is not up to date yet")
    updated, present = _count(status, "updatedReplicas"), _count(status, "replicas")
    ready = _count(status, "availableReplicas" if spec.get("minReadySeconds") else "readyReplicas")
    before = max(0, present - updated)
    fresh = max(0, ready - before)  # of the ready ones, so many at least are of this template
    needed = math.ceil(wanted * threshold / 100)
    if updated >= wanted and fresh >= needed and (old or not before) and updated <= wanted:
        return Ready(True, fresh, wanted, updated, f"{fresh} of {wanted} pods are ready")
    conditions = _conditions(status)
    progressing, broken = conditions.get("Progressing", {}), conditions.get("ReplicaFailure", {})
    failed = progressing.get("status") == "False" and progressing.get("reason") == "ProgressDeadlineExceeded"
    message = f"{fresh} of {wanted} pods are ready"
    if updated < wanted:
        message += f", {updated} have the new template"
    elif before and not old:
        message += f", {before} of the template before are left"
    if broken.get("status") == "True" and broken.get("message"):
        message += f": {str(broken['message'])[:512]}"
    elif failed:
        message += ", and the Deployment's own deadline has passed"
    return Ready(False, fresh, wanted, updated, message, failed)


def verified(
    virtual_service: Document | None, settle: Duration, since: datetime, now: datetime, mode: str = "Auto"
) -> Verified:
    """Whether the routes as they are now are what requests meet.

    Status: `observedGeneration` is the generation and the condition Reconciled is true. Settle: `settle` has passed
    `since` they were written. Auto: by the status where something writes the condition, else by settling.
    """
    if virtual_service is None:
        return Verified(False, math.inf)
    status = _map(virtual_service, "status")
    reconciled = _conditions(status).get("Reconciled")
    if mode == "Status" or (mode != "Settle" and reconciled is not None):
        generation = _map(virtual_service, "metadata").get("generation")
        live = generation is not None and _number(status.get("observedGeneration")) == generation
        if live and reconciled is not None and reconciled.get("status") == "True":
            return Verified(True)
        return Verified(False, math.inf)
    left = settle.seconds - (now - since).total_seconds()
    return Verified(left <= 0, max(0.0, left))


def _map(document: Document, field: str) -> Document:
    value = document.get(field)
    return value if isinstance(value, Mapping) else {}


def _count(status: Document, field: str) -> int:
    value = status.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _number(value: Any) -> int | None:
    """Istio writes 64-bit numbers as texts."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _conditions(status: Document) -> dict[str, Document]:
    listed = status.get("conditions")
    found = [condition for condition in listed if isinstance(condition, Mapping)] if isinstance(listed, list) else []
    return {str(condition.get("type")): condition for condition in found}
