"""Step by step: give weight, see that it is live, check, go on or back. Pure."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from trimtab.model.clock import parse_time
from trimtab.systems.delivery.kinds import Analysis, CanaryDeploymentStatus, RunStatus
from trimtab.systems.delivery.kinds.fields import APPROVE
from trimtab.systems.delivery.machine.facts import Facts, Move, Order, Outcome, Said
from trimtab.systems.delivery.machine.runs import (
    analysis_of,
    entered,
    later,
    left,
    seconds_until,
    short,
    since,
    stamp,
    steps_of,
)

CHECKS = 10
RECREATIONS = 3
WINDOWS = 10
"""A window that holds too little may grow to so many intervals."""


def entered_step(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, step: int) -> Move:
    """The canary is to get the weight of this step; what it does counts from when it has it."""
    planned = steps_of(run)[step]
    moved = entered(
        status,
        run,
        "Progressing",
        facts.now,
        step=step,
        weight=planned.weight,
        verified=UNSET,
        window_start=UNSET,
        counters=run.counters.replace(passes=0),
    )
    what = f"{planned.weight} % of the traffic"
    if planned.matched:
        what = "the traffic that matches"
    elif planned.mirror:
        what = f"copies of {planned.mirror} % of the traffic"
    note = f"step {step + 1} of {run.steps}: {what} to revision {short(run.revision)}"
    return Move(status=moved, said=(Said(False, "Step", note),))


def progressing(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, outcome: Outcome | None) -> Move:
    """At a step."""
    analysis = _analysis(run)
    served = _served(status, run, facts, analysis)
    if isinstance(served, Move):
        return served
    run = served
    gate = f"{run.id}/step-{run.step + 2}"
    if outcome is None or outcome.check is None:
        asked = any(hook.type == "ConfirmTrafficIncrease" for hook in analysis.webhooks)
        if run.waiting_for == gate and _approved(run, facts, gate) and _good(run) and not asked:
            return entered_step(status, _passed(run, gate), facts, run.step + 1)
        # A check that is due and is not made waits for pods, or for routes that are not live: their watch tells.
        wait = _until_blamed(run, facts, analysis) or facts.wait
        return Move(status=status.replace(run=run), after=seconds_until(run.next_check_time, facts.now) or wait)
    checked = _checked(run, facts, analysis, outcome)
    bad = _judged(status, checked, facts, outcome)
    if bad is not None:
        return bad
    if outcome.settled != "Advance":
        return Move(status=status.replace(run=checked), after=seconds_until(checked.next_check_time, facts.now))
    if run.step + 1 >= run.steps:
        return _to_promotion(status, checked, facts, analysis, outcome.allowed)
    by_hand = "Step" not in analysis.manual or _approved(checked, facts, gate)
    if outcome.allowed and by_hand:
        return entered_step(status, _passed(checked, gate), facts, run.step + 1)
    return _wait(status, checked, facts, f"{gate}-webhook" if by_hand else gate)


def waiting_promotion(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, outcome: Outcome | None) -> Move:
    """All steps are passed; the checks go on until those who are asked agree."""
    analysis = _analysis(run)
    served = _served(status, run, facts, analysis)
    if isinstance(served, Move):
        return served
    run = served
    if outcome is not None and outcome.check is not None:
        run = _checked(run, facts, analysis, outcome)
        bad = _judged(status, run, facts, outcome)
        if bad is not None:
            return bad
    asked = any(hook.type == "ConfirmPromotion" for hook in analysis.webhooks)
    agreed = not asked or (outcome is not None and outcome.check is not None and outcome.allowed)
    return _to_promotion(status, run, facts, analysis, agreed)


def _served(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, analysis: Analysis) -> RunStatus | Move:
    """The run, when its canary has the traffic that it should have and may be judged; else the move that sees to it."""
    gone = lost(status, run, facts)
    if gone is not None:
        return gone
    seen = _verified(status, run, facts, analysis)
    return _frozen(status, seen, facts) if isinstance(seen, RunStatus) and seen.frozen else seen


def _to_promotion(
    status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, analysis: Analysis, agreed: bool
) -> Move:
    gate = f"{run.id}/promotion"
    by_hand = "Promotion" not in analysis.manual or _approved(run, facts, gate)
    alone = facts.order in (Order.FREE, Order.PROMOTE)
    if by_hand and agreed and alone and _good(run):
        moved = entered(status, _passed(run, gate), "Promoting", facts.now)
        note = f"revision {short(run.revision)} becomes stable"
        return Move(status=moved, said=(Said(False, "Promoting", note),))
    waits = (
        gate if not by_hand else f"{gate}-webhook" if not agreed else f"{gate}-group" if not alone else f"{gate}-check"
    )
    return _wait(status.replace(phase="WaitingPromotion"), run, facts, waits)


def _wait(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, gate: str) -> Move:
    said = () if run.waiting_for == gate else (Said(False, "Waiting", f"at the gate {gate}"),)
    run = run.replace(waiting_for=gate)
    return Move(status=status.replace(run=run), said=said, after=seconds_until(run.next_check_time, facts.now) or None)


def _frozen(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts) -> Move:
    gate = _frozen_gate(run)
    if facts.annotations.get(APPROVE) != gate:
        return Move(status=status.replace(run=run.replace(waiting_for=gate)))
    thawed = _passed(run, gate).replace(
        frozen=False,
        waiting_for=UNSET,
        counters=run.counters.replace(failed=0),
        window_start=stamp(facts.now),
        next_check_time=later(facts.now, _analysis(run).interval.seconds),
    )
    return Move(status=status.replace(run=thawed), said=(Said(False, "Resumed", "the failures are forgiven"),))


def _frozen_gate(run: RunStatus) -> str:
    """Another one each time: what was forgiven once is not forgiven again."""
    before = sum(gate.startswith(f"{run.id}/frozen-") for gate in run.approved)
    return f"{run.id}/frozen-{before + 1}"


def lost(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts) -> Move | None:
    """A canary without ready pods gets no traffic. It may come back a few times, and then the step begins anew; each time
    is a failed check, unless it was not its own doing."""
    if facts.canary.ready:
        return _short_of_pods(status, run, facts)
    blamed = not facts.canary.excused
    counters = run.counters
    if (
        blamed and facts.canary.exists and not facts.drifted
    ):  # what others deleted, and was just made again, did not fail
        counters = counters.replace(failed=counters.failed + 1)
    why = facts.canary.message or ("its pods are not ready" if facts.canary.exists else "its Deployment was deleted")
    over = run.recreated + 1 >= RECREATIONS or counters.failed >= _analysis(run).threshold
    if (blamed and over) or facts.canary.failed:
        return left(status, run, facts, "Failed", "CanaryLost", why)
    moved = entered(
        status,
        run,
        "Starting",
        facts.now,
        weight=0,
        verified=UNSET,
        window_start=UNSET,
        short_since=UNSET,
        counters=counters,
        recreated=run.recreated + blamed,
    )
    return Move(status=moved, said=(Said(True, "CanaryLost", f"{why}: no traffic until it is ready again"),))


def _short_of_pods(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts) -> Move | None:
    """Some pods are ready, and fewer than there should be: they have as long as new ones to come back."""
    if facts.canary.ok:
        back = status.replace(run=run.replace(short_since=UNSET))
        return None if isinstance(run.short_since, UnsetType) else Move(status=back)
    if isinstance(run.short_since, UnsetType):
        return Move(status=status.replace(run=run.replace(short_since=stamp(facts.now))))
    if (facts.now - parse_time(run.short_since)).total_seconds() < facts.spec.progress_deadline.seconds:
        return None
    why = facts.canary.message or "too few of its pods are ready"
    return left(status, run, facts, "Failed", "CanaryNotReady", why)


def forgiven(run: RunStatus, facts: Facts, interval: float) -> bool:
    """Whether too few pods are ready, and only just: more of them may be on their way."""
    if facts.canary.ok or isinstance(run.short_since, UnsetType):
        return not facts.canary.ok
    return (facts.now - parse_time(run.short_since)).total_seconds() < interval


def _until_blamed(run: RunStatus, facts: Facts, analysis: Analysis) -> float | None:
    """Seconds until a check says so; None when enough are ready."""
    if facts.canary.ok or isinstance(run.short_since, UnsetType):
        return None
    passed = (facts.now - parse_time(run.short_since)).total_seconds()
    return max(analysis.interval.seconds - passed, 0.1)


def _verified(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, analysis: Analysis) -> RunStatus | Move:
    """The run once its weight is live; else the move that waits for it. Routes that were touched start a new window."""
    if touched(run, facts) and not isinstance(run.verified, UnsetType):
        run = run.replace(verified=UNSET, window_start=UNSET, next_check_time=UNSET, since=stamp(facts.now))
        return Move(status=status.replace(run=run), after=facts.wait)
    if not isinstance(run.verified, UnsetType):
        if seconds_until(run.next_check_time, facts.now) <= 2 * analysis.interval.seconds + 1.0:
            return run
        now = stamp(facts.now)  # the clock was set back: what was to come is a long way off
        run = run.replace(since=now, window_start=now, next_check_time=later(facts.now, analysis.interval.seconds))
        return Move(status=status.replace(run=run), after=analysis.interval.seconds)
    if not facts.live:
        deadline = facts.spec.progress_deadline.seconds
        if since(run, facts.now) >= deadline:
            return left(status, run, facts, "Failed", "TrafficNotVerified", "the data plane did not take the weights")
        return Move(status=status, after=facts.wait if facts.wait is not None else deadline - since(run, facts.now))
    interval = analysis.interval.seconds
    run = run.replace(
        verified=stamp(facts.now),
        verified_weight=run.weight,
        routes=facts.routes or UNSET,
        window_start=stamp(facts.now),
        next_check_time=later(facts.now, interval),
    )
    return Move(status=status.replace(run=run), after=interval)


def touched(run: RunStatus, facts: Facts) -> bool:
    """Whether the routes were others for a while, also when nobody looked and they are right again."""
    return facts.drifted or (
        not isinstance(run.routes, UnsetType) and bool(facts.routes) and run.routes != facts.routes
    )


def _checked(run: RunStatus, facts: Facts, analysis: Analysis, outcome: Outcome) -> RunStatus:
    assert outcome.check is not None  # noqa: S101 - who calls has looked
    interval = analysis.interval.seconds
    used = outcome.moved
    if not used and not isinstance(run.window_start, UnsetType):
        used = (facts.now - parse_time(run.window_start)).total_seconds() > WINDOWS * interval
    return run.replace(
        checks=(outcome.check, *run.checks)[:CHECKS],
        counters=outcome.counters,
        evidence=outcome.evidence,
        window_start=outcome.check.time if used else run.window_start,
        next_check_time=later(parse_time(outcome.check.time), outcome.pause or interval),
        record=outcome.record,
        crashes=outcome.crashes,
    )


def _judged(status: CanaryDeploymentStatus, run: RunStatus, facts: Facts, outcome: Outcome) -> Move | None:
    """The move that a check forces; None when the run may go on."""
    if outcome.settled == "Rollback":
        return left(status, run, facts, "Failed", outcome.reason or "ChecksFailed", outcome.message)
    if outcome.settled == "Freeze":
        frozen = run.replace(frozen=True, waiting_for=_frozen_gate(run), next_check_time=UNSET)
        return Move(status=status.replace(run=frozen), said=(Said(True, "Frozen", outcome.message),))
    return None


def _good(run: RunStatus) -> bool:
    """Whether the last check speaks for going on."""
    return not run.checks or run.checks[0].verdict == "Pass"


def _approved(run: RunStatus, facts: Facts, gate: str) -> bool:
    return gate in run.approved or facts.annotations.get(APPROVE) == gate


def _passed(run: RunStatus, gate: str) -> RunStatus:
    return run if gate in run.approved else run.replace(approved=(*run.approved, gate)[-128:])


def _analysis(run: RunStatus) -> Analysis:
    analysis = analysis_of(run)
    assert not isinstance(analysis, UnsetType)  # noqa: S101 - there are no steps without one
    return analysis
