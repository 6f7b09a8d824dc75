"""What the last checks say of their metrics: whether they could be had, and whether they had anything to say. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UnsetType

from trimtab.systems.delivery.kinds import Check, RunStatus
from trimtab.systems.delivery.kinds.analysis import DURATION, SUCCESS_RATE
from trimtab.systems.delivery.machine.runs import analysis_of


def measured(run: RunStatus) -> tuple[bool | None, str, str] | None:
    """What the last check says of its metrics: whether they could be had, and had anything to say. None before it."""
    if not run.checks:
        return None
    check = run.checks[0]
    if any(metric.verdict == "Error" for metric in check.metrics):
        often = f"{run.counters.errors} checks in a row could not be made: " if run.counters.errors > 1 else ""
        return False, "SourceFailed", often + _those(check, "Error")
    if check.verdict != "Inconclusive":
        return True, "Measured", ""
    if _had_requests(check):
        return True, "Undecided", unanswered(run)
    return None, "NoData", f"{unanswered(run)}: {_those(check, 'Inconclusive')}"


def unanswered(run: RunStatus) -> str:
    """How long checks have said nothing, why, and what becomes of that; nothing when the last one said something."""
    if not run.checks or run.checks[0].verdict not in ("Inconclusive", "Error"):
        return ""
    check, counted, analysis = run.checks[0], run.counters, analysis_of(run)
    error = check.verdict == "Error"
    times = counted.errors if error else counted.held
    row = f"{times} checks in a row" if times > 1 else "the last check"
    if error:
        said = f"{row} could not be made: {_those(check, 'Error')}"
    elif _had_requests(check):
        said = f"{row} could not tell: {_those(check, 'Inconclusive')}"
    else:
        said = f"no {_lacks(check)} {'for' if times > 1 else 'in'} {row}"
    limit = 0 if isinstance(analysis, UnsetType) else analysis.error_limit if error else analysis.no_data_limit
    return f"{said}; {limit} of them roll it back" if limit else said


def _those(check: Check, verdict: str) -> str:
    """What the metrics of this verdict say."""
    return "; ".join(_sentences(check, verdict))


def _sentences(check: Check, verdict: str) -> Iterator[str]:
    for metric in check.metrics:
        if metric.verdict == verdict:
            yield f"{metric.name}: {metric.message}" if metric.message else metric.name


def _lacks(check: Check) -> str:
    """What is missing: requests, where they are what is counted."""
    missing = [metric for metric in check.metrics if metric.verdict == "Inconclusive"]
    counted = all(metric.samples == 0 or metric.name in (SUCCESS_RATE, DURATION) for metric in missing)
    return "requests" if counted else "data"


def _had_requests(check: Check) -> bool:
    """Whether there was traffic, or a value, so that it was not for want of it that nothing could be said."""
    missing = [metric for metric in check.metrics if metric.verdict == "Inconclusive"]
    return any(
        not isinstance(metric.value, UnsetType) if isinstance(metric.samples, UnsetType) else metric.samples > 0
        for metric in missing
    )
