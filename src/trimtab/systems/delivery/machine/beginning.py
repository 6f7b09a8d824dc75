"""From nothing to stable, and from a change to a canary that is ready. Pure."""

from __future__ import annotations

from msgspec import UnsetType

from trimtab.systems.delivery.kinds import CanaryDeploymentStatus, RunStatus
from trimtab.systems.delivery.kinds.canary import Promotion
from trimtab.systems.delivery.kinds.fields import APPROVE, PAUSE, PROMOTE_NOW
from trimtab.systems.delivery.machine.analysing import entered_step
from trimtab.systems.delivery.machine.facts import Facts, Move, Order, Outcome, Said
from trimtab.systems.delivery.machine.runs import (
    analysis_of,
    entered,
    later,
    left,
    seconds_until,
    short,
    since,
    started,
    token,
)
from trimtab.systems.delivery.plan import steps

PODS = 5.0
"""Seconds after which pods that are not ready are asked again why."""
LOOK = 1.0
"""Seconds after which something is looked at again that no watch tells."""


def initializing(status: CanaryDeploymentStatus, facts: Facts) -> Move:
    """Until stable serves for the first time. Nothing is proven yet: a better spec simply takes the place of a bad one."""
    if facts.target != status.stable_revision:
        note = f"revision {short(facts.target)}: nothing was stable yet"
        return Move(status=status.replace(stable_revision=facts.target), said=(Said(False, "Replaced", note),))
    if facts.stable.ok and facts.live:
        note = f"revision {short(facts.target)} serves"
        return Move(status=status.replace(phase="Stable"), said=(Said(False, "Initialized", note),))
    return Move(status=status, after=facts.wait if facts.stable.ok else PODS)


def stable(status: CanaryDeploymentStatus, facts: Facts) -> Move:
    """Nothing runs. A new revision begins, one way or the other."""
    if facts.spec.suspend or PAUSE in facts.annotations or facts.fighting:
        return Move(status=status)
    back = facts.order_revision
    if facts.order is Order.ROLL_BACK and back and back != status.stable_revision:
        return _out(status, facts, back, Promotion(reason="Group"))
    if facts.order is Order.HOLD:
        return Move(status=status)
    if facts.target == status.stable_revision:
        return Move(status=status)
    failed_before = facts.target == status.failed_revision and token(facts) == status.failed_token
    if facts.spec.abort or (failed_before and not facts.spec.skip_analysis):
        return Move(status=status)
    way = _straight(facts)
    if way is not None:
        return _out(status, facts, facts.target, way)
    analysis = facts.spec.analysis
    assert not isinstance(analysis, UnsetType)  # noqa: S101 - else it goes straight out
    gated = "Rollout" in analysis.manual or any(hook.type == "ConfirmRollout" for hook in analysis.webhooks)
    moved = started(status, facts, facts.target, phase="WaitingRollout" if gated else "Starting", trigger="Revision")
    return Move(status=moved, said=(Said(False, "NewRevision", f"revision {short(facts.target)} is to be proven"),))


def _straight(facts: Facts) -> Promotion | None:
    """Why a revision needs no analysis; None when it does."""
    if facts.spec.skip_analysis:
        return Promotion(reason="SkipAnalysis", generation=facts.generation)
    if facts.annotations.get(PROMOTE_NOW) == facts.target:
        return Promotion(reason="PromoteNow")
    asleep = facts.spec.deployment.get("replicas") == 0 and isinstance(facts.spec.autoscaler_ref, UnsetType)
    if not steps(facts.spec.analysis) or asleep:  # without pods nobody is served, and nothing can be proven
        return Promotion(reason="NoAnalysis")
    if facts.target in facts.earlier[: facts.spec.rollback_window]:
        return Promotion(reason="RollbackWindow")
    return None


def _out(status: CanaryDeploymentStatus, facts: Facts, revision: str, way: Promotion) -> Move:
    moved = started(status, facts, revision, phase="Promoting", trigger=way.reason, promotion=way)
    return Move(status=moved, said=(Said(False, way.reason, f"revision {short(revision)} goes straight out"),))


def waiting_rollout(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, outcome: Outcome | None) -> Move:
    """Until those who are asked agree."""
    analysis = analysis_of(run)
    assert not isinstance(analysis, UnsetType)  # noqa: S101 - there is no gate without one
    gate = f"{run.id}/rollout"
    by_hand = "Rollout" not in analysis.manual or facts.annotations.get(APPROVE) == gate or gate in run.approved
    asked = any(hook.type == "ConfirmRollout" for hook in analysis.webhooks)
    confirmed = not asked or "ConfirmRollout" in run.hooks_done
    if outcome is not None:
        confirmed = outcome.allowed
        done = (*run.hooks_done, "ConfirmRollout") if confirmed else run.hooks_done
        run = run.replace(hooks_done=done, next_check_time=later(facts.now, analysis.interval.seconds))
    if by_hand and confirmed:
        return Move(status=entered(status, run, "Starting", facts.now, approved=(*run.approved, gate)))
    waiting = run.replace(waiting_for=gate if not by_hand else f"{gate}-webhook")
    said = () if waiting.waiting_for == run.waiting_for else (Said(False, "Waiting", f"at the gate {gate}"),)
    after = None if confirmed else seconds_until(waiting.next_check_time, facts.now) or LOOK
    return Move(status=status.replace(run=waiting), said=said, after=after)


def starting(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, outcome: Outcome | None) -> Move:
    """Until the canary's pods are ready, and those who are asked before it gets traffic agree."""
    analysis = analysis_of(run)
    assert not isinstance(analysis, UnsetType)  # noqa: S101 - what needs none is promoted at once
    deadline = facts.spec.progress_deadline.seconds
    if not facts.canary.ok:
        if facts.canary.failed or since(run, facts.now) >= deadline:
            why = facts.canary.message or "its pods did not become ready"
            return left(status, run, facts, "Failed", "CanaryNotReady", why)
        return Move(status=status, after=min(max(deadline - since(run, facts.now), LOOK), PODS))
    if any(hook.type == "PreRollout" for hook in analysis.webhooks) and "PreRollout" not in run.hooks_done:
        if outcome is None:
            return Move(status=status, after=seconds_until(run.next_check_time, facts.now) or LOOK)
        if not outcome.allowed:
            failed = run.counters.failed + 1
            if failed >= analysis.threshold:
                return left(status, run, facts, "Failed", "PreRolloutRefused", outcome.message)
            again = run.replace(
                counters=run.counters.replace(failed=failed),
                next_check_time=later(facts.now, analysis.interval.seconds),
            )
            said = Said(True, "PreRolloutRefused", outcome.message)
            return Move(status=status.replace(run=again), said=(said,), after=analysis.interval.seconds)
        run = run.replace(hooks_done=(*run.hooks_done, "PreRollout"))
    return entered_step(status, run, facts, run.step)
