"""The status of a pod, from what its containers are. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]


def pod_status(
    before: Document,
    *,
    address: str,
    init: Sequence[Document],
    containers: Sequence[Document],
    initialized: bool,
    deleting: bool,
    now: str,
) -> dict[str, Any]:
    """The whole status. Times of conditions move only when the conditions do."""
    unready = [each["name"] for each in containers if not each["ready"]]
    why = ("ContainersNotReady", f"not ready: {', '.join(unready)}") if unready else ("", "")
    going = ("Terminating", "the pod is being deleted") if deleting else ("", "")
    waits = [each["name"] for each in init if not _is_done(each)]
    uninitialized = ("ContainersNotInitialized", f"not done: {', '.join(waits)}")
    conditions = (
        ("PodScheduled", True, ("", "")),
        ("Initialized", initialized, ("", "") if initialized else uninitialized),
        ("ContainersReady", initialized and not unready, why),
        ("Ready", initialized and not unready and not deleting, going if deleting else why),
    )
    status: dict[str, Any] = {
        "phase": _phase(containers, initialized),
        "conditions": [_condition(before, kind, ok, *said, now=now) for kind, ok, said in conditions],
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": before.get("startTime") or now,
        "qosClass": before.get("qosClass") or "BestEffort",
        "containerStatuses": list(containers),
    }
    if init:
        status["initContainerStatuses"] = list(init)
    return status


def scheduled(before: Document, address: str, now: str) -> dict[str, Any]:
    """The first status of a pod: its address, before anything uses it."""
    return {
        **before,
        "phase": "Pending",
        "conditions": [_condition(before, "PodScheduled", True, "", "", now=now)],
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
    }


def condition_of(status: Document, kind: str) -> Document:
    """A condition; empty when it is not there."""
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), {})


def is_ready(pod: Document) -> bool:
    return condition_of(pod.get("status") or {}, "Ready").get("status") == "True"


def _is_done(status: Document) -> bool:
    terminated = status["state"].get("terminated")
    return terminated is not None and terminated["exitCode"] == 0


def _phase(containers: Sequence[Document], initialized: bool) -> str:
    begun = any("waiting" not in each["state"] or each["lastState"] for each in containers)
    return "Running" if initialized and begun else "Pending"


def _condition(before: Document, kind: str, ok: bool, reason: str, message: str, *, now: str) -> dict[str, Any]:
    truth = "True" if ok else "False"
    old = condition_of(before, kind)
    since = old["lastTransitionTime"] if old.get("status") == truth else now
    told = {name: value for name, value in (("reason", reason), ("message", message)) if value}
    # The API writes an empty lastProbeTime itself: with it a status that did not change is known as such.
    return {"type": kind, "status": truth, "lastTransitionTime": since, "lastProbeTime": None, **told}
