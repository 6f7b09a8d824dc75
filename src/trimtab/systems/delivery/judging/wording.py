"""Numbers and wishes in words, for the sentences that users read."""

from __future__ import annotations

import math

from msgspec import UnsetType

from trimtab.systems.delivery.kinds.analysis import DURATION, SUCCESS_RATE, Metric, Range
from trimtab.systems.delivery.measuring.contract import Measured


def number(value: float) -> str:
    """Four digits that count: 98.23, 0.004, 12346."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinite" if value > 0 else "-infinite"
    if value == round(value) and abs(value) < 1e15:
        return str(round(value))
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def worded(metric: Metric | None, value: float) -> str:
    """The value with its unit, where the metric is one of ours."""
    if metric is not None and metric.name == SUCCESS_RATE:
        return f"{number(value)} %"
    return f"{number(value)} ms" if metric is not None and metric.name == DURATION else number(value)


def share(value: float) -> str:
    """A share between 0 and 1, as people say it."""
    return f"{number(round(value * 100, 2))} %"


def chance(value: float) -> str:
    """Never quite certain."""
    if value > 0.999:
        return "above 99.9 %"
    return "below 0.1 %" if value < 0.001 else f"{number(round(value * 100, 1))} %"


def reading(metric: Metric, measured: Measured) -> str:
    """What was measured, as the first half of a sentence."""
    value, counts = measured.value, measured.canary_counts
    if value is None:
        return "there is no value"
    if metric.name == SUCCESS_RATE:
        of = "" if counts is None else f" of {number(counts.total)}"
        return f"{worded(metric, value)}{of} requests succeeded"
    if metric.name == DURATION:
        of = "" if counts is None else f" of {number(counts.total)}"
        return f"{number(metric.quantile * 100)} %{of} requests took at most {worded(metric, value)}"
    return f"the value is {number(value)}"


def range_wanted(metric: Metric | None, wanted: Range) -> str:
    low = None if isinstance(wanted.min, UnsetType) else worded(metric, wanted.min)
    high = None if isinstance(wanted.max, UnsetType) else worded(metric, wanted.max)
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"at least {low}" if low is not None else f"at most {high}"
