"""What a metric has shown in all windows of a run: counts add up, values are kept up to a number."""

from __future__ import annotations

import math

from trimtab.systems.delivery.kinds.canary import Evidence
from trimtab.systems.delivery.measuring.contract import Counts, Measured

VALUES = 120
LARGEST = 1e12
"""Requests in a window: no counter that says more can be believed."""


def extended(evidence: Evidence, measured: Measured) -> Evidence:
    """The evidence with one more window. Of values the latest are kept. A metric without parts gives one for a window."""
    canary, stable = sane(measured.canary_counts), sane(measured.stable_counts)
    return evidence.replace(
        canary_total=evidence.canary_total + canary.total,
        canary_failed=evidence.canary_failed + canary.failed,
        stable_total=evidence.stable_total + stable.total,
        stable_failed=evidence.stable_failed + stable.failed,
        canary_values=_values(evidence.canary_values, measured.canary_values, measured.value),
        stable_values=_values(evidence.stable_values, measured.stable_values, measured.stable),
    )


def sane(counts: Counts | None) -> Counts:
    """Counts that can be reckoned with, whatever a foreign counter said: no more failed than there were."""
    if counts is None or math.isnan(counts.failed) or not counts.total <= LARGEST:
        return Counts()
    total = max(0.0, counts.total)
    return Counts(total=total, failed=min(total, max(0.0, counts.failed)))


def _values(known: tuple[float, ...], parts: tuple[float, ...], whole: float | None) -> tuple[float, ...]:
    new = parts or (() if whole is None else (whole,))
    return (*known, *(value for value in new if math.isfinite(value)))[-VALUES:]
