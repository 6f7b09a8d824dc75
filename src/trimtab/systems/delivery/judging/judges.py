"""What a metric's numbers mean: Pass, Fail, Inconclusive or Error. Pure.

Nothing passes for want of numbers: what is empty, NaN, infinite or too little is Inconclusive (or what `onNoData`
says), and what could not be had at all is Error, which is no word about the canary.

Bayes and MannWhitney look at all windows of a run together, so a window must be taken into the evidence once only:
`judge_all` says whether the window was used up, and gives back the old evidence when it was not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.systems.delivery.judging.comparing import bayes, mann_whitney
from trimtab.systems.delivery.judging.evidence import extended, sane
from trimtab.systems.delivery.judging.opinion import Opinion, failed, held, passed
from trimtab.systems.delivery.judging.wording import number, range_wanted, reading, worded
from trimtab.systems.delivery.kinds.analysis import DURATION, SUCCESS_RATE, Analysis, Metric, NoData, Range
from trimtab.systems.delivery.kinds.canary import Evidence, MetricCheck, Verdict
from trimtab.systems.delivery.measuring.contract import Measured

MESSAGE = 1024


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What one check says of all metrics. When the window is not `used`, it goes on: what it held counts later."""

    checks: tuple[MetricCheck, ...]
    evidence: tuple[Evidence, ...]
    used: bool


def judge_all(
    analysis: Analysis, measured: Sequence[Measured], evidence: Sequence[Evidence], refusals: Sequence[str] = ()
) -> Judged:
    """Judges every metric of the analysis. One that was not measured could not be had. Evidence of others is kept."""
    found = {each.name: each for each in measured}
    known = {each.name: each for each in evidence}
    checks, grown, enough = [], dict(known), False
    for metric in analysis.metrics:
        one = found.get(metric.name) or Measured(name=metric.name, error=True, problem="it was not measured")
        check, learnt = judge(
            metric, one, known.get(metric.name, Evidence(name=metric.name)), on_no_data=analysis.on_no_data
        )
        checks.append(check)
        grown[metric.name] = learnt
        enough = enough or (check.verdict != "Error" and not lacking(metric, one))
    verdict = combine(checks, refusals)
    used = verdict in ("Pass", "Fail") or (verdict == "Inconclusive" and enough)
    return Judged(checks=tuple(checks), evidence=tuple(grown.values()) if used else tuple(evidence), used=used)


def judge(
    metric: Metric, measured: Measured, evidence: Evidence, *, on_no_data: NoData
) -> tuple[MetricCheck, Evidence]:
    """What the metric says, and the evidence with this window in it. The metric's own onNoData goes first."""
    if measured.error:
        return _check(metric, measured, Opinion("Error", f"could not be measured: {measured.problem}")), evidence
    wrong = problem(metric)
    if wrong:
        return _check(metric, measured, Opinion("Error", wrong)), evidence
    grown = extended(evidence, measured)
    lack = lacking(metric, measured)
    if lack:
        wanted = on_no_data if isinstance(metric.on_no_data, UnsetType) else metric.on_no_data
        return _check(metric, measured, _without(lack, wanted)), grown
    return _check(metric, measured, _JUDGES[metric.compare.judge](metric, measured, grown)), grown


def combine(checks: Sequence[MetricCheck], refusals: Sequence[str] = ()) -> Verdict:
    """The worst wins. A webhook that refuses is a failure. Without metrics there is nothing against it."""
    verdicts = {check.verdict for check in checks}
    if refusals or "Fail" in verdicts:
        return "Fail"
    return "Error" if "Error" in verdicts else "Inconclusive" if "Inconclusive" in verdicts else "Pass"


def problem(metric: Metric) -> str:
    """Why this metric can never be judged; empty when it can."""
    wanted = metric.threshold_range
    bounded = not isinstance(wanted, UnsetType) and (
        not isinstance(wanted.min, UnsetType) or not isinstance(wanted.max, UnsetType)
    )
    if metric.compare.judge in ("Threshold", "Ratio") and not bounded:
        return f"{metric.compare.judge} needs thresholdRange with min or max"
    if metric.compare.judge == "Bayes" and (metric.name == DURATION):
        return f"Bayes counts failures: it is for {SUCCESS_RATE}; use MannWhitney, Ratio or Threshold for {DURATION}"
    return ""


def lacking(metric: Metric, measured: Measured) -> str:
    """What is missing in this window to say anything; empty when nothing is."""
    counts = None if measured.canary_counts is None else sane(measured.canary_counts)
    if counts is not None and counts.total < max(metric.min_samples, 1):
        if counts.total <= 0:
            return "the canary got no requests"
        return f"the canary got {number(counts.total)} requests, fewer than {metric.min_samples}"
    if metric.compare.judge == "Bayes":
        return "" if counts is not None else (measured.problem or "requests were not counted")
    if metric.compare.judge == "MannWhitney" and measured.canary_values:
        return ""
    if measured.value is None or math.isnan(measured.value):
        return measured.problem or "there is no value"
    return ""


def _without(lack: str, wanted: NoData) -> Opinion:
    if wanted == "Fail":
        return failed(f"{lack}; onNoData is Fail")
    if wanted == "Pass":
        return passed(f"{lack}; onNoData is Pass")
    return held(lack)


def _threshold(metric: Metric, measured: Measured, _: Evidence) -> Opinion:
    value, wanted = measured.value, metric.threshold_range
    if value is None or isinstance(wanted, UnsetType):
        return held("there is no value")
    if not math.isfinite(value):
        return held(f"the value is {number(value)}")
    message = f"{reading(metric, measured)}; {range_wanted(metric, wanted)} wanted"
    return passed(message) if _within(value, wanted) else failed(message)


def _ratio(metric: Metric, measured: Measured, _: Evidence) -> Opinion:
    value, stable, wanted = measured.value, measured.stable, metric.threshold_range
    if value is None or isinstance(wanted, UnsetType):
        return held("there is no value")
    if stable is None or not math.isfinite(stable):
        return held("there is no value of stable to compare with")
    if not math.isfinite(value):
        return held(f"the value is {number(value)}")
    if stable == 0 and value != 0:
        return held(f"stable has 0, the canary {worded(metric, value)}: that is no ratio")
    ratio = value / stable if stable else 1.0
    message = (
        f"the canary has {worded(metric, value)}, stable {worded(metric, stable)}: {number(ratio)} times as much; "
        f"{range_wanted(None, wanted)} times wanted"
    )
    return passed(message) if _within(ratio, wanted) else failed(message)


def _within(value: float, wanted: Range) -> bool:
    """Asked so that NaN is within nothing."""
    low = isinstance(wanted.min, UnsetType) or value >= wanted.min
    high = isinstance(wanted.max, UnsetType) or value <= wanted.max
    return low and high and not math.isnan(value)


def _check(metric: Metric, measured: Measured, opinion: Opinion) -> MetricCheck:
    counts = measured.canary_counts
    return MetricCheck(
        name=metric.name,
        verdict=opinion.verdict,
        value=_finite(measured.value),
        stable=_finite(measured.stable),
        samples=UNSET if counts is None else round(sane(counts).total),
        message=opinion.message[:MESSAGE],
    )


def _finite(value: float | None) -> float | UnsetType:
    return value if value is not None and math.isfinite(value) else UNSET


_JUDGES: dict[str, Callable[[Metric, Measured, Evidence], Opinion]] = {
    "Threshold": _threshold,
    "Ratio": _ratio,
    "Bayes": bayes,
    "MannWhitney": mann_whitney,
}
