"""How a run begins, how it is left, and how it ends. Pure: statuses come in and go out."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import UNSET, UnsetType

from trimtab.model.clock import format_micro_time, format_time, parse_time
from trimtab.model.document import to_document
from trimtab.runtime.runs import Run, bounded, finished
from trimtab.systems.delivery.kinds import Analysis, CanaryDeploymentStatus, RunStatus
from trimtab.systems.delivery.kinds.canary import Override, Phase, Promotion, Result
from trimtab.systems.delivery.kinds.fields import PROMOTE_NOW, RETRY
from trimtab.systems.delivery.machine.facts import Facts, Move, Said
from trimtab.systems.delivery.plan import Step, steps

LIMIT = 10


def short(revision: str) -> str:
    """The first digits, for people and labels."""
    return revision.rpartition(":")[2][:12]


def analysis_of(run: RunStatus) -> Analysis | UnsetType:
    """As it was when the run began."""
    from trimtab.model.document import convert

    return UNSET if isinstance(run.analysis, UnsetType) else convert(run.analysis, Analysis)


def steps_of(run: RunStatus) -> tuple[Step, ...]:
    return steps(analysis_of(run))


def step_of(run: RunStatus) -> Step | None:
    """Where the run is; None when there is no such step."""
    planned = steps_of(run)
    return planned[run.step] if run.step < len(planned) else None


def since(run: RunStatus, now: datetime) -> float:
    """Seconds in this phase, or at this step."""
    return (now - parse_time(run.since)).total_seconds()


def seconds_until(moment: str | UnsetType, now: datetime) -> float:
    """0 when it has come, or was never set."""
    return 0.0 if isinstance(moment, UnsetType) else max(0.0, (parse_time(moment) - now).total_seconds())


def stamp(moment: datetime) -> str:
    """Where a second is too coarse: windows and checks."""
    return format_micro_time(moment)


def later(now: datetime, seconds: float) -> str:
    return stamp(now + timedelta(seconds=seconds))


def started(
    status: CanaryDeploymentStatus,
    facts: Facts,
    revision: str,
    *,
    phase: Phase,
    trigger: str,
    promotion: Promotion | UnsetType = UNSET,
) -> CanaryDeploymentStatus:
    """A new run, in the history too."""
    now = format_time(facts.now)
    run_id = f"{facts.now:%Y%m%dt%H%M%S}-{short(revision)[:8]}"
    analysis = facts.spec.analysis
    run = RunStatus(
        id=run_id,
        revision=revision,
        before=status.stable_revision or "",
        analysis=UNSET if isinstance(analysis, UnsetType) else to_document(analysis),
        started=now,
        since=stamp(facts.now),
        steps=len(steps(analysis)),
        promotion=promotion,
    )
    entry = Run(id=run_id, trigger=trigger, started=now, outcome="Running", message=f"revision {short(revision)}")
    return status.replace(phase=phase, run=run, canary_weight=0, history=(entry, *(status.history or ())))


def entered(
    status: CanaryDeploymentStatus, run: RunStatus, phase: Phase, now: datetime, **changes: object
) -> CanaryDeploymentStatus:
    """The run in another phase: its clock starts anew, and what was due in the last one is not."""
    moved = run.replace(since=stamp(now), next_check_time=UNSET, waiting_for=UNSET, **changes)
    return status.replace(phase=phase, run=moved, canary_weight=moved.weight)


def left(
    status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, result: Result, reason: str, message: str
) -> Move:
    """Back to stable, for this reason. The same way for what failed, was aborted, taken back or overtaken."""
    if result == "Failed":  # what is said from now on about trying again is heard
        status = _consumed(status, run, facts).replace(failed_revision=run.revision, failed_token=token(facts))
    moved = entered(status, run, "RollingBack", facts.now, result=result, reason=reason, message=message[:1024])
    note = f"revision {short(run.revision)}: {message}"
    return Move(status=moved, said=(Said(result == "Failed", reason, note),))


def promoted(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts) -> CanaryDeploymentStatus:
    """Stable runs the new revision. That skipAnalysis was used is written with it, before the flag is reset."""
    done = run.replace(result="Succeeded", reason="Promoted", message="it is stable")
    earlier = (run.before, *(each for each in status.earlier_revisions if each not in (run.before, run.revision)))
    status = _consumed(status, run, facts).replace(stable_revision=run.revision, earlier_revisions=earlier[:LIMIT])
    return entered(status, done, "Returning", facts.now, verified=UNSET)


def ended(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts) -> Move:
    """The run is history."""
    result = run.result or "Cancelled"
    now = facts.now
    message = run.message or ""
    counts = {
        "failed": run.counters.failed,
        "step": run.step + 1 if run.steps else 0,
        "steps": run.steps,
        "weight": max((check.weight for check in run.checks), default=0),
    }
    history = finished(
        status.history,
        run.id,
        result,
        now=now,
        reason=run.reason,
        message=f"revision {short(run.revision)}: {message}" if message else "",
        counts=counts,
        details=run.record,
    )
    status = status.replace(phase="Stable", run=UNSET, canary_weight=0, history=bounded(history, LIMIT))
    if result == "Succeeded":
        rolled_back = not isinstance(run.promotion, UnsetType) and run.promotion.reason == "Group"
        status = status.replace(
            failed_revision=run.before if rolled_back else UNSET, failed_token=token(facts) if rolled_back else ""
        )
    if result == "Failed":  # why was told when it turned back
        return Move(status=status, said=(Said(False, "RolledBack", f"run {run.id}: stable has all the traffic"),))
    return Move(status=status, said=(Said(False, run.reason or "Ended", f"run {run.id}: {message}"),))


def token(facts: Facts) -> str:
    """What a retry must change: the spec's token, that of the command, or that it is to go out whatever it does."""
    out = "now/" if facts.annotations.get(PROMOTE_NOW) == facts.target else ""
    return f"{out}{facts.spec.retry_token}/{facts.annotations.get(RETRY, '')}"[:128]


def _consumed(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts) -> CanaryDeploymentStatus:
    if isinstance(run.promotion, UnsetType) or run.promotion.reason != "SkipAnalysis":
        return status
    used = Override(revision=run.revision, generation=run.promotion.generation or 0, consumed=format_time(facts.now))
    return status.replace(override=used)


def only_waits(before: CanaryDeploymentStatus, after: CanaryDeploymentStatus) -> bool:
    """Whether nothing but the next check comes: the weight is verified, the same as before, and nobody is asked. All that
    such a status wants was enforced before it was written."""
    was, now = before.run, after.run
    if isinstance(was, UnsetType) or isinstance(now, UnsetType) or before.phase != "Progressing":
        return False
    same = (before.phase, was.step, was.weight) == (after.phase, now.step, now.weight)
    return same and bool(now.verified) and not now.waiting_for and not now.frozen
