"""The states of a container, and how long one waits before it is started again. Pure.

Waiting ──start──▶ Running ──exit──▶ Terminated ──pause──▶ Waiting (CrashLoopBackOff) ──▶ Running …
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

FIRST, LONGEST = 1.0, 300.0  # seconds
STEADY = 600.0  # a process that lived as long begins anew


class Waiting(msgspec.Struct, frozen=True):
    """Not started, and why."""

    reason: str
    message: str = ""


class Running(msgspec.Struct, frozen=True):
    """Since a moment, as the API writes it."""

    since: str
    pid: int = 0


class Terminated(msgspec.Struct, frozen=True, kw_only=True):
    """It has ended. A code over 128 is a signal's number and 128."""

    code: int
    reason: str = ""
    message: str = ""
    began: str = ""
    finished: str = ""


State = Waiting | Running | Terminated


def pause(failures: int) -> float:
    """Seconds before the next start, after so many ends one after another."""
    return min(LONGEST, FIRST * 2.0 ** min(max(failures - 1, 0), 16))


def written(state: State | None) -> dict[str, Any]:
    """As `state` and `lastState` of a container's status."""
    if isinstance(state, Waiting):
        return {"waiting": _told(reason=state.reason, message=state.message)}
    if isinstance(state, Running):
        return {"running": {"startedAt": state.since}}
    if isinstance(state, Terminated):
        signal = {"signal": state.code - 128} if 128 < state.code < 160 else {}
        times = _told(startedAt=state.began, finishedAt=state.finished)
        reason = state.reason or ("Completed" if state.code == 0 else "Error")
        return {
            "terminated": {"exitCode": state.code, **signal, **_told(reason=reason, message=state.message), **times}
        }
    return {}


def read(document: Mapping[str, Any] | None) -> State | None:
    """What `written` wrote; None for nothing."""
    document = document or {}
    if found := document.get("terminated"):
        return Terminated(
            code=found.get("exitCode", 0),
            reason=found.get("reason", ""),
            message=found.get("message", ""),
            began=found.get("startedAt", ""),
            finished=found.get("finishedAt", ""),
        )
    if found := document.get("running"):
        return Running(found.get("startedAt", ""))
    if found := document.get("waiting"):
        return Waiting(found.get("reason", ""), found.get("message", ""))
    return None


def _told(**fields: str) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}
