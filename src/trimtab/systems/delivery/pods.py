"""What the pods of a workload say: why they are not ready, whether that is their own doing, and how often they crashed.

Pure. A container that ended because its machine or its runtime did (reason Unknown) is not to blame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]

COMING = ("ContainerCreating", "PodInitializing")
ENDED_BY_OTHERS = ("Unknown", "ContainerStatusUnknown")


def why(pods: Iterable[Document]) -> str:
    """Why one of them does not run, as its containers say it."""
    for each in _containers(pods):
        if each.get("ready"):
            continue
        state, before = each.get("state") or {}, each.get("lastState") or {}
        ended = before.get("terminated") or state.get("terminated") or {}
        for found in (state.get("waiting"), ended):
            if found and found.get("reason") not in (None, *COMING):
                code = f" (exit code {ended['exitCode']})" if "exitCode" in ended else ""
                said = str(ended.get("message") or found.get("message") or "")[:256]
                text = f"{each.get('name')}: {found['reason']}{code}"
                return f"{text}: {said}" if said else text
    return ""


def excused(pods: Iterable[Document]) -> bool:
    """Whether those that are not ready are on their way, and none of them ended by itself. Where there are none to ask,
    nothing excuses them."""
    found = [each for each in _containers(pods) if not each.get("ready")]
    return bool(found) and all(_is_excused(each) for each in found)


def crashes(pods: Iterable[Document]) -> int:
    """How often containers ended by themselves."""
    return sum(int(each.get("restartCount") or 0) for each in _containers(pods) if not _ended_by_others(each))


def _is_excused(container: Document) -> bool:
    state = container.get("state") or {}
    waiting = (state.get("waiting") or {}).get("reason")
    if state.get("running") and container.get("lastState") and _ended_by_others(container):
        return True  # it was started anew, and its probe has not answered yet
    return waiting in COMING or (_ended_by_others(container) and not state.get("running"))


def _ended_by_others(container: Document) -> bool:
    ends = [(container.get(field) or {}).get("terminated") for field in ("state", "lastState")]
    reasons = [end.get("reason") for end in ends if end]
    return bool(reasons) and all(reason in ENDED_BY_OTHERS for reason in reasons)


def _containers(pods: Iterable[Document]) -> Iterator[Document]:
    for pod in pods:
        status = pod.get("status") or {}
        yield from status.get("initContainerStatuses") or ()
        yield from status.get("containerStatuses") or ()
