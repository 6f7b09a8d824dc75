"""What `kubectl get pods` says of a pod: how many containers are ready, in a word how it is, how often it restarted.

The rules are those of the real server's printer: the first init container that is not done speaks for the pod, else the
first container that has something to say.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.server.builtin.problems import at

Document = dict[str, Any]


class PodSummary(msgspec.Struct):
    ready: int
    total: int
    reason: str
    restarts: int
    last_restart: str  # "" is never


def summary(pod: Document) -> PodSummary:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    conditions = status.get("conditions") or []
    found = PodSummary(0, len(spec.get("containers") or ()), status.get("reason") or status.get("phase") or "", 0, "")
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in conditions):
        found.reason = "SchedulingGated"
    restartable = {c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    found.total += len(restartable)
    initializing, sidecars = _init_containers(spec, status, restartable, found)
    initialized = any(c.get("type") == "Initialized" and c.get("status") == "True" for c in conditions)
    if not initializing or initialized:
        found.restarts, found.last_restart = sidecars
        _containers(status, conditions, found)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            found.reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            found.reason = "Terminating"
    return found


def _init_containers(
    spec: Document, status: Document, restartable: set[Any], found: PodSummary
) -> tuple[bool, tuple[int, str]]:
    """Whether the pod is still initializing; and restarts and the last one of init containers that keep running."""
    restarts, last = 0, ""
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        sidecar = container.get("name") in restartable
        _count(container, found)
        if sidecar:
            restarts += container.get("restartCount") or 0
            last = max(last, at(container, "lastState", "terminated", "finishedAt") or "")
        terminated, waiting = at(container, "state", "terminated"), at(container, "state", "waiting")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            found.ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            found.reason = "Init:" + (terminated.get("reason") or _ending(terminated))
        elif waiting is not None and waiting.get("reason") and waiting["reason"] != "PodInitializing":
            found.reason = "Init:" + waiting["reason"]
        else:
            found.reason = f"Init:{index}/{len(spec.get('initContainers') or ())}"
        return True, (restarts, last)
    return False, (restarts, last)


def _containers(status: Document, conditions: list[Document], found: PodSummary) -> None:
    running = False
    for container in reversed(status.get("containerStatuses") or ()):
        _count(container, found)
        terminated, waiting = at(container, "state", "terminated"), at(container, "state", "waiting")
        if waiting is not None and waiting.get("reason"):
            found.reason = waiting["reason"]
        elif terminated is not None:
            found.reason = terminated.get("reason") or _ending(terminated)
        elif container.get("ready") and at(container, "state", "running") is not None:
            running = True
            found.ready += 1
    if found.reason == "Completed" and running:
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
        found.reason = "Running" if ready else "NotReady"


def _count(container: Document, found: PodSummary) -> None:
    found.restarts += container.get("restartCount") or 0
    found.last_restart = max(found.last_restart, at(container, "lastState", "terminated", "finishedAt") or "")


def _ending(terminated: Document) -> str:
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"
