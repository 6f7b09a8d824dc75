"""Promotion, the way back, and the end of a run. Pure."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from trimtab.systems.delivery.kinds import CanaryDeploymentStatus, RunStatus
from trimtab.systems.delivery.machine.facts import Facts, Move, Outcome
from trimtab.systems.delivery.machine.runs import (
    analysis_of,
    ended,
    entered,
    later,
    left,
    promoted,
    seconds_until,
    since,
    stamp,
)

LOOK, PODS = 1.0, 5.0


def promoting(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, outcome: Outcome | None) -> Move:
    """Stable gets the snapshot. The canary keeps its share meanwhile, while it is ready."""
    if facts.stable.ok:
        return Move(status=promoted(status, run, facts))
    deadline = facts.spec.progress_deadline.seconds
    if facts.stable.failed or since(run, facts.now) >= deadline:
        why = facts.stable.message or "the pods of stable did not become ready"
        override = not isinstance(run.promotion, UnsetType) and run.promotion.reason in ("SkipAnalysis", "PromoteNow")
        return left(status, run, facts, "Failed", "OverrideFailed" if override else "PromotionFailed", why)
    if run.weight and not facts.canary.ready and facts.stable.ready:
        run = run.replace(weight=0)
        return Move(status=status.replace(run=run, canary_weight=0))
    return Move(status=status, after=min(max(deadline - since(run, facts.now), LOOK), PODS))


def returning(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, outcome: Outcome | None) -> Move:
    """Traffic goes back to stable, which runs the new revision."""
    if not facts.live:
        return Move(status=status, after=facts.wait)
    if run.weight == 0:
        return Move(status=entered(status, run, "Finalising", facts.now, verified_weight=0))
    analysis = analysis_of(run)
    step = UNSET if isinstance(analysis, UnsetType) else analysis.step_weight_promotion
    if isinstance(step, UnsetType) or isinstance(analysis, UnsetType):
        weight = 0
    else:
        if isinstance(run.verified, UnsetType):
            waited = run.replace(
                verified=stamp(facts.now),
                verified_weight=run.weight,
                next_check_time=later(facts.now, analysis.interval.seconds),
            )
            return Move(status=status.replace(run=waited), after=analysis.interval.seconds)
        if (left_over := seconds_until(run.next_check_time, facts.now)) > 0 and facts.canary.ready:
            return Move(status=status, after=left_over)
        weight = max(0, run.weight - step) if facts.canary.ready else 0
    lowered = run.replace(weight=weight, verified=UNSET, next_check_time=UNSET)
    return Move(status=status.replace(run=lowered, canary_weight=weight))


def rolling_back(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, outcome: Outcome | None) -> Move:
    """Traffic goes to stable as soon as stable can take it: at once, unless none of its pods is ready and the canary's are."""
    if run.weight and (facts.stable.ready or facts.stable.ok or not facts.canary.ready):
        run = run.replace(weight=0, verified=UNSET)
        return Move(status=status.replace(run=run, canary_weight=0))
    if run.weight:
        return Move(status=status, after=PODS)
    if not facts.live:
        return Move(status=status, after=facts.wait)
    return Move(status=entered(status, run, "Finalising", facts.now, verified_weight=0))


def finalising(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, outcome: Outcome | None) -> Move:
    """No traffic reaches the canary. It stays a little for what is on its way, and goes; then the run is history."""
    analysis = analysis_of(run)
    delay = 0.0 if isinstance(analysis, UnsetType) else analysis.scale_down_delay.seconds
    if run.result == "Cancelled":
        delay = min(delay, LOOK)  # another revision waits
    if facts.canary.exists:
        if not facts.live:
            return Move(status=status, after=facts.wait)
        over = since(run, facts.now) >= delay
        return Move(status=status, remove=over, after=None if over else delay - since(run, facts.now))
    hooks = () if isinstance(analysis, UnsetType) else analysis.webhooks
    if any(hook.type == "PostRollout" for hook in hooks) and "PostRollout" not in run.hooks_done:
        if outcome is None:
            return Move(status=status, after=LOOK)
        run = run.replace(hooks_done=(*run.hooks_done, "PostRollout"))
    return ended(status, run, facts)
