"""The judges that set the canary beside stable and say how sure they are: Bayes for failures, MannWhitney for values.

Both ask the same of all windows of the run: is the canary worse than stable by more than the margin, which is no harm?
Sure of yes is Fail, sure of no is Pass, and in between they wait for more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from msgspec import UnsetType

from trimtab.systems.delivery.judging.chances import Share, above, exceeds
from trimtab.systems.delivery.judging.opinion import Opinion, failed, held, passed
from trimtab.systems.delivery.judging.ranks import higher
from trimtab.systems.delivery.judging.wording import chance, number, share, worded
from trimtab.systems.delivery.kinds.analysis import DURATION, SUCCESS_RATE, Metric
from trimtab.systems.delivery.kinds.canary import Evidence
from trimtab.systems.delivery.measuring.contract import Measured

MARGIN = 0.005
"""Of Bayes: half a percentage point more failures is no harm."""
TOLERANCE = 0.1
"""Of MannWhitney: a tenth more of stable's median is no harm."""
PARTS = 4
"""Fewer values than these, on either side, say nothing: four and four, all in order, is one chance in seventy."""
PRIOR = 1.0
"""What is believed of a canary that differs from stable, before it has answered anything: one failure in as many
requests as it would have at the very edge of harm. So the first failure alone never condemns it."""


def bayes(metric: Metric, measured: Measured, evidence: Evidence) -> Opinion:
    """The chance that the canary's share of failures is above stable's by more than the margin. Where stable gets no
    requests, what thresholdRange allows takes its place."""
    margin = MARGIN if isinstance(metric.compare.margin, UnsetType) else metric.compare.margin
    sure = metric.compare.confidence
    said = _failures("the canary", evidence.canary_failed, evidence.canary_total)
    if evidence.stable_total > 0:
        harm = chance_of_harm(evidence, margin)
        said += f", {_failures('stable', evidence.stable_failed, evidence.stable_total)}"
        worse = f"it is worse by more than {share(margin)}"
    elif not isinstance(metric.threshold_range, UnsetType) and not isinstance(metric.threshold_range.min, UnsetType):
        edge = min(1.0, max(0.0, 1 - metric.threshold_range.min / 100))
        harm = above(_updated(_prior(edge), evidence), edge)
        worse = f"more than {share(edge)} fail"
    else:
        return held("stable got no requests to compare with")
    message = f"{said}: the chance that {worse} is {chance(harm)}"
    if harm >= sure:
        return failed(message)
    return passed(message) if harm <= 1 - sure else held(message)


def chance_of_harm(evidence: Evidence, margin: float) -> float:
    """The chance that the canary's share of failures is above stable's by more than the margin.

    Before anything is seen, that a change changes nothing is as likely as that it does. This is what lets a healthy
    canary pass on little traffic: its counts are just what stable's share foretells.
    """
    stable = Share(evidence.stable_failed + 0.5, evidence.stable_total - evidence.stable_failed + 0.5)
    prior = _prior(stable.failed / sum(stable) + margin)
    canary = _updated(prior, evidence)
    differs = _log_beta(canary) - _log_beta(prior)
    same = _log_beta(_updated(stable, evidence)) - _log_beta(stable)
    return exceeds(canary, stable, margin) / (1 + math.exp(min(700.0, same - differs)))


def mann_whitney(metric: Metric, measured: Measured, evidence: Evidence) -> Opinion:
    """Whether the canary's values are higher (or lower, where that is worse) than those of stable by more than the
    margin, a share of stable's median."""
    canary, stable = evidence.canary_values, evidence.stable_values
    if min(len(canary), len(stable)) < PARTS:
        few = f"{len(canary)} values of the canary and {len(stable)} of stable"
        return held(f"{few}: {PARTS} of each are needed")
    tolerance = TOLERANCE if isinstance(metric.compare.margin, UnsetType) else metric.compare.margin
    usual = median(stable)
    shift = tolerance * abs(usual)
    doubt = 1 - metric.compare.confidence
    rises, falls = worse_when(metric)
    harm, safe = 1.0, 0.0
    for asked, sign in ((rises, 1.0), (falls, -1.0)):
        if not asked:
            continue
        ours, theirs = [sign * value for value in canary], [sign * value + shift for value in stable]
        harm = min(harm, higher(ours, theirs))
        safe = max(safe, 0.0 if _no_worse(ours, theirs) else higher(theirs, ours))
    message = (
        f"the canary's median of {len(canary)} values is {worded(metric, median(canary))}, stable's of {len(stable)} "
        f"is {worded(metric, usual)}; up to {share(tolerance)} {_sense(rises, falls)} is no harm"
    )
    if harm <= doubt:
        return failed(f"{message} (p = {number(harm)})")
    if safe <= doubt:
        return passed(f"{message} (p = {number(safe)})")
    return held(f"{message}; too close to tell")


def worse_when(metric: Metric) -> tuple[bool, bool]:
    """Whether it is worse when it rises, and when it falls. thresholdRange tells it of a metric of one's own: with max
    it is worse when it rises, with min when it falls, with both either way; with neither, when it rises, as errors,
    durations and queues do."""
    if metric.name in (SUCCESS_RATE, DURATION):
        return metric.name == DURATION, metric.name == SUCCESS_RATE
    wanted = metric.threshold_range
    if isinstance(wanted, UnsetType):
        return True, False
    low, high = not isinstance(wanted.min, UnsetType), not isinstance(wanted.max, UnsetType)
    return (high, low) if low or high else (True, False)


def _prior(edge: float) -> Share:
    """Of a canary that differs from stable. `edge` is the share above which there is harm."""
    edge = min(0.5, max(edge, 1e-9))
    return Share(PRIOR, PRIOR * (1 - edge) / edge)


def _updated(known: Share, evidence: Evidence) -> Share:
    """What is known once the canary's counts are."""
    passes = evidence.canary_total - evidence.canary_failed
    return Share(known.failed + evidence.canary_failed, known.passed + passes)


def _log_beta(known: Share) -> float:
    return math.lgamma(known.failed) + math.lgamma(known.passed) - math.lgamma(sum(known))


def _no_worse(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Where all numbers are alike (no errors at all, say) ranks say nothing, and nothing is worse."""
    return max(ours) <= min(theirs)


def _failures(who: str, count: float, total: float) -> str:
    return f"{who} failed {number(count)} of {number(total)} requests"


def _sense(rises: bool, falls: bool) -> str:
    return "either way" if rises and falls else "more" if rises else "less"
