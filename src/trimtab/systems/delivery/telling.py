"""What a CanaryDeployment says of itself: its conditions, from its status and the facts. Pure but for the clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import UnsetType

from trimtab.model.clock import Clock
from trimtab.model.conditions import Condition, without_condition
from trimtab.runtime.runs import last
from trimtab.runtime.status import condition
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus, RunStatus
from trimtab.systems.delivery.kinds.fields import PAUSE
from trimtab.systems.delivery.machine.runs import short, step_of

if TYPE_CHECKING:
    from trimtab.systems.delivery.machine.facts import Facts


class Trouble(msgspec.Struct, frozen=True):
    """Why nothing can be done: an invalid spec, an object of someone else, something that is missing."""

    reason: str
    message: str


def told(
    canary: CanaryDeployment,
    status: CanaryDeploymentStatus,
    clock: Clock,
    facts: Facts | None = None,
    trouble: Trouble | None = None,
) -> CanaryDeploymentStatus:
    """The status with its conditions. Without facts nothing was looked at, and what was known of the world stays."""
    generation = canary.metadata.generation
    conditions: tuple[Condition, ...] | UnsetType = status.conditions

    def say(kind: str, ok: bool | None, reason: str, message: str = "") -> None:
        nonlocal conditions
        conditions = condition(conditions, clock, generation, kind, ok, reason, message)

    invalid = trouble is not None and trouble.reason == "InvalidSpec"
    say("Valid", not invalid, "InvalidSpec" if invalid else "Valid", trouble.message if trouble and invalid else "")
    if trouble is not None:
        say("Ready", False, trouble.reason, trouble.message)
    elif facts is not None:
        say("Ready", *_ready(canary, status, facts))
        say("Progressing", *_progressing(status))
        say("Promoted", *_promoted(status))
    conditions = _sometimes(conditions or (), canary, status, facts, say_generation=(clock, generation))
    return status.replace(conditions=conditions, observed_generation=generation)


def _ready(canary: CanaryDeployment, status: CanaryDeploymentStatus, facts: Facts) -> tuple[bool, str, str]:
    run = status.run
    if status.phase == "Initializing":
        return False, "Initializing", facts.stable.message or "the pods of stable are not ready yet"
    if not isinstance(run, UnsetType):
        return False, status.phase or "Progressing", _of_run(status, run)
    target, stable = facts.target, status.stable_revision
    if target == stable:
        if facts.stable.ok:
            return True, "Stable", f"revision {short(target)} serves"
        return False, "StableNotReady", facts.stable.message or "the pods of stable are not ready"
    if target == status.failed_revision:
        failed = last(status.history, "Failed")
        why = (failed.message or "") if failed else ""
        way = f"change the spec, or try it again: trimtab canary retry {canary.name}"
        return False, "RolledBack", f"revision {short(stable or '')} serves; {why}; {way}"
    return False, "Waiting", f"revision {short(target)} waits"


def _of_run(status: CanaryDeploymentStatus, run: RunStatus) -> str:
    text = f"revision {short(run.revision)}"
    step = step_of(run)
    if status.phase in ("Progressing", "WaitingPromotion") and step is not None:
        share = "the traffic that matches" if step.matched else f"{run.weight} % of the traffic"
        text += f" at step {run.step + 1} of {run.steps} with {share}"
        if isinstance(run.verified, UnsetType):
            text += ", which is not live yet"
    if run.waiting_for:
        text += f"; it waits at {run.waiting_for}"
    if run.message:
        text += f"; {run.message}"
    return text


def _progressing(status: CanaryDeploymentStatus) -> tuple[bool, str, str]:
    if isinstance(status.run, UnsetType):
        return False, "NoRun", ""
    return True, status.phase or "Progressing", _of_run(status, status.run)


def _promoted(status: CanaryDeploymentStatus) -> tuple[bool | None, str, str]:
    if not isinstance(status.run, UnsetType) and not status.run.result:
        return None, "Running", f"run {status.run.id}"
    ended = next((run for run in status.history or () if run.outcome != "Running"), None)
    if ended is None:
        first = status.phase == "Initializing"
        return None if first else True, "Initializing" if first else "Initialized", ""
    return ended.outcome == "Succeeded", ended.reason or ended.outcome, ended.message or ""


def _sometimes(
    conditions: tuple[Condition, ...],
    canary: CanaryDeployment,
    status: CanaryDeploymentStatus,
    facts: Facts | None,
    say_generation: tuple[Clock, int | UnsetType],
) -> tuple[Condition, ...]:
    """Conditions that are there only while they are true, and MetricsAvailable once something was measured."""
    clock, generation = say_generation
    reason = (canary.metadata.annotations or {}).get(PAUSE)
    suspended = "spec.suspend is set" if canary.spec.suspend else reason
    if suspended is not None and facts is not None and facts.drifts:
        suspended = "; ".join((suspended or "it is paused", "not put back", *facts.drifts))[:1024]
    drift = status.drift
    fight = facts is not None and facts.fighting and not isinstance(drift, UnsetType)
    armed = canary.spec.skip_analysis and isinstance(status.run, UnsetType)
    sometimes: Sequence[tuple[str, bool, str, str]] = (
        ("Suspended", suspended is not None, "Suspended", suspended or "it is paused"),
        ("OverrideArmed", armed, "SkipAnalysis", "the next change goes straight out"),
        ("DriftConflict", fight, "Fought", (drift.last or "") if not isinstance(drift, UnsetType) else ""),
    )
    for kind, holds, why, message in sometimes:
        if holds:
            conditions = condition(conditions, clock, generation, kind, True, why, message)
        else:
            conditions = without_condition(conditions, kind)
    run = status.run
    checks = () if isinstance(run, UnsetType) else run.checks
    if checks:
        failing = [metric for metric in checks[0].metrics if metric.verdict == "Error"]
        message = "; ".join(f"{metric.name}: {metric.message or ''}" for metric in failing)
        ok = not failing
        conditions = condition(
            conditions, clock, generation, "MetricsAvailable", ok, "Measured" if ok else "SourceFailed", message
        )
    return conditions
