"""How much may go wrong: what a check's verdict does to the run. Pure.

Failures, checks without an answer and checks that could not be made have budgets of their own, and only failures speak
against the canary. Passes count for a step, the others for the run; whoever begins a step sets passes to 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UnsetType

from trimtab.systems.delivery.judging.judges import combine
from trimtab.systems.delivery.kinds.analysis import Analysis
from trimtab.systems.delivery.kinds.canary import Counters, MetricCheck, Verdict

RETRY = 10.0
"""Seconds after which a check that could not be made is made again, if the interval is not shorter."""
MESSAGE = 1024

Action = Literal["Advance", "Repeat", "Hold", "Rollback", "Freeze"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Advance: the step is passed. Repeat: passed, but the step wants more. Hold: stay. Rollback and Freeze have a
    reason, one CamelCase word: ChecksFailed, CriticalMetricFailed, NoTraffic, Undecided or MetricsUnavailable."""

    action: Action
    verdict: Verdict
    reason: str = ""
    message: str = ""


def settle(
    analysis: Analysis,
    counters: Counters,
    checks: Sequence[MetricCheck],
    refusals: Sequence[str] = (),
    *,
    passes: int | None = None,
) -> tuple[Counters, Outcome]:
    """Counts a check and says what follows. `refusals` are sentences of webhooks that said no; `passes` is what the
    step wants, analysis.passes if not given."""
    verdict = combine(checks, refusals)
    counted = _count(analysis, counters, verdict)
    message = _sentence(verdict, checks, refusals)
    action, reason = _follow(analysis, counted, verdict, checks, passes or analysis.passes)
    if reason and verdict != "Pass":
        message = f"{_because(reason, counted)}: {message}"
    return counted, Outcome(action=action, verdict=verdict, reason=reason, message=message[:MESSAGE])


def pause(analysis: Analysis, verdict: Verdict) -> float:
    """Seconds until the next check."""
    interval = analysis.interval.seconds
    return min(interval, RETRY) if verdict == "Error" else interval


def _count(analysis: Analysis, counters: Counters, verdict: Verdict) -> Counters:
    if verdict == "Error":  # nothing was learnt: what stood in a row still does
        return counters.replace(errors=counters.errors + 1)
    if verdict == "Inconclusive":
        return counters.replace(held=counters.held + 1, errors=0)
    if verdict == "Fail":
        return counters.replace(failed=counters.failed + 1, held=0, errors=0)
    forgiven = 0 if analysis.failure_mode == "Consecutive" else counters.failed
    return counters.replace(passes=counters.passes + 1, failed=forgiven, held=0, errors=0)


def _follow(
    analysis: Analysis, counters: Counters, verdict: Verdict, checks: Sequence[MetricCheck], passes: int
) -> tuple[Action, str]:
    if verdict == "Pass":
        return ("Advance" if counters.passes >= passes else "Repeat"), ""
    if verdict == "Fail":
        critical = {metric.name for metric in analysis.metrics if metric.critical}
        reason = ""
        if any(check.verdict == "Fail" and check.name in critical for check in checks):
            reason = "CriticalMetricFailed"
        elif counters.failed >= analysis.threshold:
            reason = "ChecksFailed"
        return (analysis.on_fail if reason else "Hold"), reason
    if verdict == "Error":
        over = 0 < analysis.error_limit <= counters.errors
        return ("Rollback", "MetricsUnavailable") if over else ("Hold", "")
    over = 0 < analysis.no_data_limit <= counters.held
    return ("Rollback", "Undecided" if _answered(checks) else "NoTraffic") if over else ("Hold", "")


def _answered(checks: Sequence[MetricCheck]) -> bool:
    """Whether there was traffic, so that it was not for want of it that nothing could be said."""
    return any(
        check.verdict == "Inconclusive" and not isinstance(check.samples, UnsetType) and check.samples > 0
        for check in checks
    )


def _sentence(verdict: Verdict, checks: Sequence[MetricCheck], refusals: Sequence[str]) -> str:
    """What the metrics say that decided it, and who refused."""
    said = [f"{each.name}: {each.message}" if each.message else each.name for each in checks if each.verdict == verdict]
    return "; ".join([*refusals, *said])


def _because(reason: str, counters: Counters) -> str:
    return {
        "CriticalMetricFailed": "a critical metric failed",
        "ChecksFailed": f"{counters.failed} checks failed" if counters.failed > 1 else "a check failed",
        "NoTraffic": f"{counters.held} checks in a row had no data",
        "Undecided": f"{counters.held} checks in a row could not tell",
        "MetricsUnavailable": f"{counters.errors} checks in a row could not be made",
    }[reason]
