"""The status of a Deployment, exactly as Kubernetes has it, so that `kubectl rollout status` and others can go by it. Pure.

Progressing is True while something moves, and with the reason NewReplicaSetAvailable when all is done; it becomes False
with ProgressDeadlineExceeded when nothing has moved for `progressDeadlineSeconds`. Its reasons speak of ReplicaSets, which
there are none of here, because programs know them by these names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from trimtab.model.clock import format_time, parse_time
from trimtab.systems.local.pods.status import condition_of
from trimtab.systems.local.rolling import Facts, Wanted

Document = Mapping[str, Any]

COMPLETE = "NewReplicaSetAvailable"
EXCEEDED = "ProgressDeadlineExceeded"
DEADLINE = 600  # seconds
FOREVER = 2**31 - 1


def deployment_status(
    before: Document,
    wanted: Wanted,
    pods: Sequence[Facts],
    *,
    generation: int,
    deadline: int | None,
    now: datetime,
    created: int = 0,
    refused: str = "",
) -> dict[str, Any]:
    """`created` new pods were made just now; `refused` is why others could not be."""
    counts = counted(wanted, pods)
    status: dict[str, Any] = {"observedGeneration": generation}
    status |= {name: number for name, number in counts.items() if number}
    if before.get("collisionCount") is not None:
        status["collisionCount"] = before["collisionCount"]
    least = wanted.replicas - wanted.unavailable
    enough = counts["availableReplicas"] >= least
    available = _condition(
        before,
        "Available",
        enough,
        "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        f"{counts['availableReplicas']} of {wanted.replicas} pods are available, {least} are the least",
        now=now,
    )
    conditions = [available, _progressing(before, wanted, counts, generation, deadline, now, created)]
    if refused:
        conditions.append(_condition(before, "ReplicaFailure", True, "FailedCreate", refused, now=now))
    status["conditions"] = [each for each in conditions if each]
    return status


def counted(wanted: Wanted, pods: Sequence[Facts]) -> dict[str, int]:
    """The numbers of the status."""
    staying = [pod for pod in pods if not pod.deleting]
    available = sum(pod.available for pod in staying)
    return {
        "replicas": len(staying),
        "updatedReplicas": sum(pod.new for pod in staying),
        "readyReplicas": sum(pod.ready for pod in staying),
        "availableReplicas": available,
        "unavailableReplicas": max(0, max(len(staying), wanted.replicas) - available),
    }


def is_complete(wanted: Wanted, counts: Mapping[str, int]) -> bool:
    """All pods are new and available, and no others are left."""
    fields = ("replicas", "updatedReplicas", "availableReplicas")
    return all(counts.get(field, 0) == wanted.replicas for field in fields)


def deadline_in(status: Document, deadline: int | None, now: datetime) -> float | None:
    """Seconds until the deadline of a rollout that is under way; None when there is none."""
    progressing = condition_of(status, "Progressing")
    seconds = DEADLINE if deadline is None else deadline
    if progressing.get("reason") in (None, COMPLETE, EXCEEDED) or seconds >= FOREVER:
        return None
    if progressing.get("status") != "True":  # paused
        return None
    return (parse_time(progressing["lastUpdateTime"]) + timedelta(seconds=seconds) - now).total_seconds()


def _progressing(
    before: Document,
    wanted: Wanted,
    counts: Mapping[str, int],
    generation: int,
    deadline: int | None,
    now: datetime,
    created: int,
) -> dict[str, Any]:
    old = condition_of(before, "Progressing")
    if deadline == FOREVER and not old:
        return {}
    done = f"{counts['updatedReplicas']} of {wanted.replicas} pods are new, {counts['availableReplicas']} available"

    def said(ok: bool | None, reason: str, *, fresh: bool = False) -> dict[str, Any]:
        return _condition(before, "Progressing", ok, reason, done, now=now, fresh=fresh)

    if wanted.paused:
        return said(None, "DeploymentPaused")
    if is_complete(wanted, counts):
        return said(True, COMPLETE)
    reason = old.get("reason")
    if created and not before.get("updatedReplicas"):
        return said(True, "NewReplicaSetCreated", fresh=True)
    if reason == "DeploymentPaused":
        return said(True, "DeploymentResumed", fresh=True)
    others = counts["replicas"] > counts["updatedReplicas"] or not counts["updatedReplicas"]
    begins = generation != before.get("observedGeneration") and others
    if not old or (begins and reason in (COMPLETE, EXCEEDED)):
        return said(True, "FoundNewReplicaSet", fresh=True)
    if reason == COMPLETE:  # what fails later is no rollout
        return dict(old)
    if _moved(before, counts):
        return said(True, "ReplicaSetUpdated", fresh=True)
    left = deadline_in(before, deadline, now)
    if left is not None and left <= 0:
        return said(False, EXCEEDED)
    return dict(old)


def _moved(before: Document, counts: Mapping[str, int]) -> bool:
    """More new pods, fewer old ones, or more that are ready or available."""

    def grew(field: str) -> bool:
        return counts[field] > int(before.get(field, 0))

    old_before = int(before.get("replicas", 0)) - int(before.get("updatedReplicas", 0))
    fewer = counts["replicas"] - counts["updatedReplicas"] < old_before
    return fewer or grew("updatedReplicas") or grew("readyReplicas") or grew("availableReplicas")


def _condition(
    before: Document, kind: str, ok: bool | None, reason: str, message: str, *, now: datetime, fresh: bool = False
) -> dict[str, Any]:
    truth = "Unknown" if ok is None else "True" if ok else "False"
    old, moment = condition_of(before, kind), format_time(now)
    same = old.get("status") == truth
    updated = fresh or not same or old.get("reason") != reason
    return {
        "type": kind,
        "status": truth,
        "lastUpdateTime": moment if updated else old.get("lastUpdateTime", moment),
        "lastTransitionTime": old.get("lastTransitionTime", moment) if same else moment,
        "reason": reason,
        "message": message,
    }
