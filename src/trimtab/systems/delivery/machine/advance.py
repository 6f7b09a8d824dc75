"""The life of a canary: from a status and the facts to the next status. Pure; one move at a time.

    Initializing → Stable → (WaitingRollout) → Starting → Progressing → (WaitingPromotion) → Promoting → Returning
                     ↑                                        │                                             │
                     └───────────── Finalising ←── RollingBack ┘ (from any of them)       Finalising ←──────┘

Rules that hold in every phase: the status is written before it is acted on; a canary gets traffic only while it is
ready; weights count only when the data plane was seen to have them; pods go only when traffic has left them; what is
promoted is the snapshot that was analysed. A change of the spec never jumps a weight: whatever replaces a run rolls it
back first.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET, UnsetType

from trimtab.systems.delivery.kinds import CanaryDeploymentStatus, RunStatus
from trimtab.systems.delivery.kinds.canary import Promotion
from trimtab.systems.delivery.kinds.fields import ABORT, PAUSE, PROMOTE_NOW
from trimtab.systems.delivery.machine.analysing import forgiven, lost, progressing, touched, waiting_promotion
from trimtab.systems.delivery.machine.beginning import initializing, stable, starting, waiting_rollout
from trimtab.systems.delivery.machine.clocks import rebased
from trimtab.systems.delivery.machine.ending import finalising, promoting, returning, rolling_back
from trimtab.systems.delivery.machine.facts import Facts, Move, Need, Order, Outcome, Said
from trimtab.systems.delivery.machine.runs import analysis_of, entered, left, seconds_until, short, stamp

Handler = Callable[[CanaryDeploymentStatus, RunStatus, Facts, Outcome | None], Move]

_BEFORE_PROMOTION = ("WaitingRollout", "Starting", "Progressing", "WaitingPromotion")
_HANDLERS: dict[str, Handler] = {
    "WaitingRollout": waiting_rollout,
    "Starting": starting,
    "Progressing": progressing,
    "WaitingPromotion": waiting_promotion,
    "Promoting": promoting,
    "Returning": returning,
    "RollingBack": rolling_back,
    "Finalising": finalising,
}


def advance(status: CanaryDeploymentStatus, facts: Facts, outcome: Outcome | None = None) -> Move:
    """The next move. `outcome` is what came of what `needed` said."""
    status = rebased(status, facts.now)
    run = status.run
    if isinstance(run, UnsetType):
        return initializing(status, facts) if status.phase == "Initializing" else stable(status, facts)
    leaves = interrupted(status, run, facts)
    if leaves is not None:
        return leaves
    if held(facts) and status.phase in _BEFORE_PROMOTION:
        # A pause changes nothing, but for traffic at pods that are gone.
        moves = not facts.spec.suspend and not facts.fighting and run.weight and not facts.canary.ready
        return (lost(status, run, facts) if moves else None) or Move(status=status)
    if not held(facts) and _stood_still(status):
        run = run.replace(since=stamp(facts.now), short_since=UNSET)
        status = status.replace(run=run)
    return _HANDLERS[status.phase or "RollingBack"](status, run, facts, outcome)


def needed(status: CanaryDeploymentStatus, facts: Facts) -> Need:
    """What must be asked before `advance`. Nothing is asked for a run that is about to be left."""
    status = rebased(status, facts.now)
    run = status.run
    if isinstance(run, UnsetType) or interrupted(status, run, facts) is not None:
        return Need.NOTHING
    if held(facts) and status.phase in _BEFORE_PROMOTION:
        return Need.NOTHING
    analysis = analysis_of(run)
    if isinstance(analysis, UnsetType) or seconds_until(run.next_check_time, facts.now) > 0:
        return Need.NOTHING
    hooks = {hook.type for hook in analysis.webhooks}
    match status.phase:
        case "WaitingRollout" if "ConfirmRollout" in hooks and "ConfirmRollout" not in run.hooks_done:
            return Need.CONFIRM_ROLLOUT
        case "Starting" if facts.canary.ok and "PreRollout" in hooks and "PreRollout" not in run.hooks_done:
            return Need.PRE_ROLLOUT
        case "Progressing" | "WaitingPromotion" if (
            not isinstance(run.next_check_time, UnsetType)
            and facts.live
            and not touched(run, facts)
            and facts.canary.ready
        ):
            # Pods that are scaled up have an interval to come; then the check says that they did not.
            return Need.NOTHING if forgiven(run, facts, analysis.interval.seconds) else Need.CHECK
        case "Finalising" if not facts.canary.exists and "PostRollout" in hooks and "PostRollout" not in run.hooks_done:
            return Need.POST_ROLLOUT
    return Need.NOTHING


def held(facts: Facts) -> bool:
    """Whether nothing may begin or go on: a user said so, or others fight over our objects. What is on its way back to
    stable, or has been proven, is finished nevertheless."""
    return facts.spec.suspend or PAUSE in facts.annotations or facts.fighting


def _stood_still(status: CanaryDeploymentStatus) -> bool:
    """Whether nothing could be done until now, by what it last said: that time counts for no deadline."""
    said = {each.type: each for each in status.conditions or ()}
    stopped = any(kind in said for kind in ("Suspended", "DriftConflict"))
    invalid = "Valid" in said and said["Valid"].status == "False"
    return stopped or invalid or ("Ready" in said and said["Ready"].reason in ("Conflict", "SnapshotMissing"))


def interrupted(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts) -> Move | None:
    """What ends a run from outside, or sends it straight out."""
    phase = status.phase
    if phase not in (*_BEFORE_PROMOTION, "Promoting"):
        return None
    if facts.spec.abort or facts.annotations.get(ABORT) == run.id:
        return left(status, run, facts, "Failed", "Aborted", "it was aborted")
    if facts.order is Order.ROLL_BACK and run.revision != facts.order_revision:
        ours = run.before == facts.order_revision  # else a newer one: it runs again when the group is back
        why = "another member of its group failed"
        return left(status, run, facts, "Failed" if ours else "Cancelled", "GroupRolledBack", why)
    if phase == "Promoting":
        return None  # what was analysed is finished first; a newer revision runs after it
    if held(facts):
        return None
    if facts.target == run.before:
        return left(status, run, facts, "Cancelled", "Reverted", "the spec went back to what is stable")
    if facts.target != run.revision:
        return left(status, run, facts, "Cancelled", "Superseded", f"revision {short(facts.target)} came")
    if facts.spec.skip_analysis:
        way = Promotion(reason="SkipAnalysis", generation=facts.generation)
    elif facts.annotations.get(PROMOTE_NOW) == run.revision:
        way = Promotion(reason="PromoteNow")
    else:
        return None
    moved = entered(status, run, "Promoting", facts.now, promotion=way, frozen=False)
    return Move(status=moved, said=(Said(False, way.reason, f"revision {short(run.revision)} goes straight out"),))
