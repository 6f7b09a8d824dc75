"""How an object does, whatever its kind: for `wait`, Git sync, platform and Terraform.

A pure function of the document, in the spirit of kstatus: the object is Current when the world matches its newest
generation, as far as the object itself tells. Kinds with a status of their own have a rule below; every other kind is
judged by its conditions. An object that tells nothing is Current.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Document = Mapping[str, Any]


class State(enum.Enum):
    """How far an object is on its way to what it declares."""

    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"
    UNKNOWN = "Unknown"


class Health(NamedTuple):
    """A state, and why."""

    state: State
    reason: str = ""  # a sentence for people


def health(obj: Document) -> Health:
    """Judge one document as the API serves it. One that is not an object at all is Unknown."""
    kind, metadata = obj.get("kind"), obj.get("metadata")
    if not isinstance(kind, str) or not isinstance(metadata, Mapping):
        return Health(State.UNKNOWN, "not an object of the API")
    if metadata.get("deletionTimestamp"):
        waiting = ", ".join(metadata.get("finalizers") or ())
        return Health(State.TERMINATING, f"waits for {waiting}" if waiting else "is being deleted")
    status = _mapping(obj, "status")
    generation, observed = metadata.get("generation"), status.get("observedGeneration")
    if isinstance(generation, int) and isinstance(observed, int) and observed < generation:
        return Health(State.IN_PROGRESS, f"generation {generation} was not observed yet")
    rule = _RULES.get((str(obj.get("apiVersion", "")).rpartition("/")[0], kind))
    return (rule(obj) if rule else None) or _by_conditions(obj)


def _by_conditions(obj: Document) -> Health:
    conditions = _conditions(obj)
    generation = _mapping(obj, "metadata").get("generation")
    for kind, truth, state in _VERDICTS:
        condition = conditions.get(kind)
        if condition is None or (condition.get("status") == "True") is not truth:
            continue
        observed = condition.get("observedGeneration")
        if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
            return Health(State.IN_PROGRESS, f"{kind} speaks of generation {observed}, not yet of {generation}")
        return Health(state, _said(condition))
    return Health(State.CURRENT)


_VERDICTS = (
    # in this order: what is stuck or under way says more than what was ready before
    ("Stalled", True, State.FAILED),
    ("Failed", True, State.FAILED),
    ("Reconciling", True, State.IN_PROGRESS),
    ("Ready", True, State.CURRENT),
    ("Ready", False, State.IN_PROGRESS),
    ("Available", True, State.CURRENT),
    ("Available", False, State.IN_PROGRESS),
    ("Completed", True, State.CURRENT),
    ("Completed", False, State.IN_PROGRESS),
    ("Complete", True, State.CURRENT),
    ("Complete", False, State.IN_PROGRESS),
    ("Established", False, State.IN_PROGRESS),
)


def _deployment(obj: Document) -> Health | None:
    status, wanted = _mapping(obj, "status"), _replicas(obj)
    progressing = _conditions(obj).get("Progressing")
    if progressing and progressing.get("reason") == "ProgressDeadlineExceeded":
        return Health(State.FAILED, _said(progressing))
    return _counted(
        (status.get("updatedReplicas", 0) >= wanted, f"{status.get('updatedReplicas', 0)} of {wanted} are updated"),
        (status.get("replicas", 0) <= status.get("updatedReplicas", 0), "old replicas are still to go"),
        (
            status.get("availableReplicas", 0) >= wanted,
            f"{status.get('availableReplicas', 0)} of {wanted} are available",
        ),
    )


def _replica_set(obj: Document) -> Health | None:
    status, wanted = _mapping(obj, "status"), _replicas(obj)
    failure = _conditions(obj).get("ReplicaFailure")
    if failure and failure.get("status") == "True":
        return Health(State.IN_PROGRESS, _said(failure))
    ready = status.get("readyReplicas", 0)
    return _counted(
        (status.get("replicas", 0) == wanted, f"{status.get('replicas', 0)} of {wanted} exist"),
        (ready >= wanted, f"{ready} of {wanted} are ready"),
    )


def _stateful_set(obj: Document) -> Health | None:
    spec, status, wanted = _mapping(obj, "spec"), _mapping(obj, "status"), _replicas(obj)
    ready, strategy = status.get("readyReplicas", 0), _mapping(spec, "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return _counted((ready >= wanted, f"{ready} of {wanted} are ready"))
    kept = _mapping(strategy, "rollingUpdate").get("partition", 0)
    updated, due = status.get("updatedReplicas", 0), max(wanted - kept, 0)
    return _counted(
        (status.get("replicas", 0) == wanted, f"{status.get('replicas', 0)} of {wanted} exist"),
        (ready >= wanted, f"{ready} of {wanted} are ready"),
        (
            kept > 0 or status.get("currentRevision") == status.get("updateRevision"),
            "old pods are still to be replaced",
        ),
        (kept == 0 or updated >= due, f"{updated} of {due} are updated"),
    )


def _daemon_set(obj: Document) -> Health | None:
    status = _mapping(obj, "status")
    if "desiredNumberScheduled" not in status:
        return Health(State.IN_PROGRESS, "no node was chosen yet")
    wanted = status["desiredNumberScheduled"]
    updated, available = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
    return _counted(
        (updated >= wanted, f"{updated} of {wanted} are updated"),
        (available >= wanted, f"{available} of {wanted} are available"),
    )


def _pod(obj: Document) -> Health | None:
    status = _mapping(obj, "status")
    phase, conditions = status.get("phase", ""), _conditions(obj)
    if phase == "Succeeded":
        return Health(State.CURRENT, "succeeded")
    if phase == "Failed":
        return Health(State.FAILED, status.get("message") or status.get("reason") or "failed")
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = _mapping(_mapping(container, "state"), "waiting")
        if waiting.get("reason") in _STUCK:
            return Health(State.FAILED, f"{container.get('name', '')}: {_said(waiting)}")
    ready = conditions.get("Ready")
    if phase == "Running" and ready and ready.get("status") == "True":
        return Health(State.CURRENT, "is ready")
    scheduled = conditions.get("PodScheduled")
    if scheduled and scheduled.get("status") == "False":
        return Health(State.IN_PROGRESS, _said(scheduled))
    return Health(State.IN_PROGRESS, _said(ready) if ready else phase or "was not seen by a node yet")


_STUCK = ("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError")


def _job(obj: Document) -> Health | None:
    status, conditions = _mapping(obj, "status"), _conditions(obj)
    for kind, state in (("Failed", State.FAILED), ("Complete", State.CURRENT), ("Suspended", State.CURRENT)):
        condition = conditions.get(kind)
        if condition and condition.get("status") == "True":
            return Health(state, _said(condition))
    wanted = _mapping(obj, "spec").get("completions", 1)
    return Health(State.IN_PROGRESS, f"{status.get('succeeded', 0)} of {wanted} completed")


def _claim(obj: Document) -> Health | None:
    phase = _mapping(obj, "status").get("phase", "Pending")
    state = {"Bound": State.CURRENT, "Lost": State.FAILED}.get(phase, State.IN_PROGRESS)
    return Health(state, f"is {phase}")


def _service(obj: Document) -> Health | None:
    if _mapping(obj, "spec").get("type") != "LoadBalancer":
        return Health(State.CURRENT)
    ingress = _mapping(_mapping(obj, "status"), "loadBalancer").get("ingress")
    return Health(State.CURRENT) if ingress else Health(State.IN_PROGRESS, "has no address yet")


def _definition(obj: Document) -> Health | None:
    conditions = _conditions(obj)
    refused = conditions.get("NamesAccepted", {})
    if refused.get("status") == "False":
        return Health(State.FAILED, _said(refused))
    if conditions.get("Established", {}).get("status") == "True":
        return Health(State.CURRENT, "is served")
    return Health(State.IN_PROGRESS, "is not served yet")


def _namespace(obj: Document) -> Health | None:
    if _mapping(obj, "status").get("phase") == "Terminating":
        return Health(State.TERMINATING, "is being deleted")
    return Health(State.CURRENT)


def _always(obj: Document) -> Health | None:
    return Health(State.CURRENT)


_RULES: dict[tuple[str, str], Callable[[Document], Health | None]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _always,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "ReplicationController"): _replica_set,
    ("", "Service"): _service,
    ("", "Namespace"): _namespace,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}


def _counted(*checks: tuple[bool, str]) -> Health:
    """The first check that does not hold says why it is not there yet."""
    lacking = next((reason for holds, reason in checks if not holds), None)
    return Health(State.CURRENT) if lacking is None else Health(State.IN_PROGRESS, lacking)


def _replicas(obj: Document) -> int:
    wanted = _mapping(obj, "spec").get("replicas")
    return wanted if isinstance(wanted, int) else 1


def _conditions(obj: Document) -> dict[str, Mapping[str, Any]]:
    found = _mapping(obj, "status").get("conditions")
    if not isinstance(found, list):
        return {}
    return {c["type"]: c for c in found if isinstance(c, Mapping) and isinstance(c.get("type"), str)}


def _mapping(obj: Document, field: str) -> Mapping[str, Any]:
    value = obj.get(field)
    return value if isinstance(value, Mapping) else {}


def _said(condition: Mapping[str, Any]) -> str:
    return str(
        condition.get("message") or condition.get("reason") or f"{condition.get('type')} is {condition.get('status')}"
    )
