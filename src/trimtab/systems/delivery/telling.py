"""What a CanaryDeployment says of itself: its conditions, from its status and the facts. Pure but for the clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.model.clock import Clock, format_time, parse_time
from trimtab.model.conditions import Condition, get_condition, without_condition
from trimtab.runtime.runs import last
from trimtab.runtime.status import condition
from trimtab.systems.delivery.answering import measured, unanswered
from trimtab.systems.delivery.kinds import CanaryDeployment, CanaryDeploymentStatus, RunStatus
from trimtab.systems.delivery.kinds.canary import Drift, Shown
from trimtab.systems.delivery.kinds.fields import PAUSE
from trimtab.systems.delivery.machine.facts import Order, Said
from trimtab.systems.delivery.machine.runs import short, step_of

if TYPE_CHECKING:
    from trimtab.systems.delivery.machine.facts import Facts

PEACE = 600.0
"""Seconds after the first correction of a fight until it is tried again."""
_HOLDABLE = ("WaitingRollout", "Starting", "Progressing", "WaitingPromotion")
_WITH_TRAFFIC = ("Progressing", "WaitingPromotion")


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
        say("Progressing", *_progressing(canary, status, facts))
        say("Promoted", *_promoted(status))
    conditions = _sometimes(conditions or (), canary, status, facts, say_generation=(clock, generation))
    if not isinstance(status.run, UnsetType):
        answer = measured(status.run)
        if answer is None:  # of another run
            conditions = without_condition(conditions, "MetricsAvailable")
        else:
            conditions = condition(conditions, clock, generation, "MetricsAvailable", *answer)
    return status.replace(conditions=conditions, observed_generation=generation, shown=shown(status))


def spells(before: CanaryDeploymentStatus, after: CanaryDeploymentStatus) -> tuple[Said, ...]:
    """Events for what has just begun and may last, once for each time that it begins: checks without data, checks that
    cannot be made, and a fight. Both statuses have been told."""
    said = []
    run = after.run
    now = None if isinstance(run, UnsetType) else measured(run)
    if now is not None and now[0] is not True and now[1] != _last_measured(before, after):
        said.append(Said(True, "NoData" if now[0] is None else "MetricsUnavailable", now[2]))
    fight = get_condition(after.conditions, "DriftConflict")
    if fight is not None and get_condition(before.conditions, "DriftConflict") is None:
        said.append(Said(True, "DriftConflict", fight.message))
    return tuple(said)


def _last_measured(before: CanaryDeploymentStatus, after: CanaryDeploymentStatus) -> str:
    """What the same run said of its metrics before."""
    if isinstance(before.run, UnsetType) or isinstance(after.run, UnsetType) or before.run.id != after.run.id:
        return ""
    return (measured(before.run) or (None, "", ""))[1]


def shown(status: CanaryDeploymentStatus) -> Shown | UnsetType:
    """For columns."""
    if not status.phase:
        return UNSET
    run = status.run
    ended = next((run.outcome for run in status.history or () if run.outcome != "Running"), UNSET)
    if isinstance(run, UnsetType):
        return Shown(traffic="0 %", last=ended)
    return Shown(
        traffic=share(status, run)[:63], step=f"{run.step + 1}/{run.steps}" if run.steps else UNSET, last=ended
    )


def share(status: CanaryDeploymentStatus, run: RunStatus) -> str:
    """What the canary should get, in a word or two."""
    step = step_of(run)
    if step is not None and step.matched and run.weight:
        return "all that match"
    if step is not None and step.mirror and status.phase in _WITH_TRAFFIC:
        return f"copies of {step.mirror} %"
    return f"{run.weight} %"


def _ready(canary: CanaryDeployment, status: CanaryDeploymentStatus, facts: Facts) -> tuple[bool, str, str]:
    run = status.run
    if status.phase == "Initializing":
        if facts.stable.ok:
            return False, "Initializing", "its pods are ready, and its routes are not live yet"
        return False, "Initializing", facts.stable.message or "the pods of stable are not ready yet"
    if not isinstance(run, UnsetType):
        return False, status.phase or "Progressing", _of_run(canary, status, run, facts)
    target, stable = facts.target, status.stable_revision
    if target == stable:
        if facts.stable.ok:
            return True, "Stable", f"revision {short(target)} serves"
        return False, "StableNotReady", facts.stable.message or "the pods of stable are not ready"
    if target == status.failed_revision:
        failed = last(status.history, "Failed")
        why = (failed.message or "") if failed else ""
        way = f"change the spec, or try it again: trimtab canary retry {canary.name}"
        return (
            False,
            "RolledBack",
            "; ".join(each for each in (f"revision {short(stable or '')} serves", why, way) if each),
        )
    why = _held(canary, status, facts) or ("spec.abort is set" if canary.spec.abort else "")
    return False, "Waiting", f"revision {short(target)} waits{f': {why}' if why else ''}"


def _of_run(canary: CanaryDeployment, status: CanaryDeploymentStatus, run: RunStatus, facts: Facts) -> str:
    text = f"revision {short(run.revision)}"
    step = step_of(run)
    if status.phase in _WITH_TRAFFIC and step is not None:
        some = "the traffic that matches" if step.matched else f"{run.weight} % of the traffic"
        if step.mirror:
            some = f"copies of {step.mirror} % of the traffic"
        text += f" at step {run.step + 1} of {run.steps} with {some}"
        if isinstance(run.verified, UnsetType):
            text += ", which is not live yet"
    held = _held(canary, status, facts) if status.phase in _HOLDABLE else ""
    said = [text, run.message or "", _standing(status, run, facts), unanswered(run) if not run.result else ""]
    said.append(f"it is held: {held}" if held else _gate(canary, run))
    return "; ".join(each for each in said if each)


def _standing(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts) -> str:
    """What is done with pods and routes, and what they still lack for the next move."""
    match status.phase:
        case "Starting" if not facts.canary.exists:
            return "its pods are being made"
        case "Starting" | "Progressing" | "WaitingPromotion" if facts.canary.exists and not facts.canary.ok:
            return facts.canary.message or "too few of its pods are ready"
        case "Promoting":
            return (
                f"stable gets it{f': {facts.stable.message}' if not facts.stable.ok and facts.stable.message else ''}"
            )
        case "RollingBack" if run.weight and not facts.stable.ready:
            return f"traffic stays until stable is ready: {facts.stable.message or 'its pods are not'}"
        case "Returning" | "RollingBack":
            return f"traffic returns to stable{'' if facts.live else ', which is not live yet'}"
        case "Finalising":
            return "its pods are removed"
    return ""


def _gate(canary: CanaryDeployment, run: RunStatus) -> str:
    if not run.waiting_for:
        return ""
    what = run.waiting_for.rpartition("/")[2]
    for ending, whom in (
        ("-webhook", "a webhook agrees"),
        ("-group", "the other members of its ReleaseGroup are as far"),
        ("-check", "a check passes"),
    ):
        if what.endswith(ending):
            return f"it waits at the gate {run.waiting_for} until {whom}"
    return f"it waits at the gate {run.waiting_for} for you: trimtab canary promote {canary.name}"


def _held(canary: CanaryDeployment, status: CanaryDeploymentStatus, facts: Facts) -> str:
    """Why nothing may begin or go on, and what ends that."""
    if canary.spec.suspend:
        return "spec.suspend is set"
    reason = (canary.metadata.annotations or {}).get(PAUSE)
    if reason is not None:
        return f"{reason or 'it is paused'} (until trimtab canary resume {canary.name})"
    if facts.fighting and not isinstance(status.drift, UnsetType):
        return f"others change its objects: {_fight(status.drift)}"
    if facts.order is Order.HOLD and isinstance(status.run, UnsetType):
        return f"{Order.HOLD.value} in its ReleaseGroup"
    return ""


def _fight(drift: Drift) -> str:
    again = ""
    if drift.since:
        again = f"; tried again at {format_time(parse_time(drift.since) + timedelta(seconds=PEACE))}"
    return f"{drift.last or 'what was put back was changed again'}{again}: stop what changes it"


def _progressing(canary: CanaryDeployment, status: CanaryDeploymentStatus, facts: Facts) -> tuple[bool, str, str]:
    if isinstance(status.run, UnsetType):
        return False, "NoRun", ""
    return True, status.phase or "Progressing", _of_run(canary, status, status.run, facts)


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
    """Conditions that are there only while they are true."""
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
        ("DriftConflict", fight, "Fought", "" if isinstance(drift, UnsetType) else _fight(drift)),
    )
    for kind, holds, why, message in sometimes:
        if holds:
            conditions = condition(conditions, clock, generation, kind, True, why, message)
        else:
            conditions = without_condition(conditions, kind)
    return conditions
