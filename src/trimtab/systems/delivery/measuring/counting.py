"""What counters say of a window, from their raw samples. Pure.

PromQL's rate() extrapolates, and cannot see what a series counted before its first sample: a burst of errors that makes
a new series is invisible to it. Here nothing is extrapolated:

- a series that was there before the window counts from its first sample within it;
- one that appears within the window counts from 0, for that is where counters begin;
- a value that falls is a restart, and what came after it counts in full.

What happened between the last sample of one window and the first of the next is in neither; nothing is ever in both.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from trimtab.systems.delivery.measuring.contract import Counts, Series, Window

MOST_PARTS = 60
"""Of one window. More would say more of noise than of the service."""

Buckets = Mapping[float, float]
"""By upper bound, how many were not above it, as `le` has it."""


class NotCountable(Exception):  # noqa: N818 - it reads as what happened
    """Why a window has no count, which is something else than a count of 0."""


class Growth(msgspec.Struct, frozen=True):
    """How a counter grew from the start of a window: (seconds since 1970, increase since then), oldest first."""

    labels: Mapping[str, str]
    steps: tuple[tuple[float, float], ...]

    @property
    def total(self) -> float:
        return self.steps[-1][1] if self.steps else 0.0

    def at(self, moment: float) -> float:
        place = bisect.bisect_right(self.steps, (moment, math.inf))
        return self.steps[place - 1][1] if place else 0.0


def growths(series: Iterable[Series], window: Window) -> tuple[Growth, ...]:
    """Of each series with samples in the window. NotCountable when they cannot tell a difference."""
    start, end = window.start.timestamp(), window.end.timestamp()
    grown: list[Growth] = []
    times: set[float] = set()
    older = False
    for one in series:
        samples = [sample for sample in one.samples if start <= sample[0] <= end and math.isfinite(sample[1])]
        if not samples:
            continue
        before = one.samples[0][1] if one.samples[0][0] <= start else math.inf  # the edge is of the window before
        known = samples[0][1] >= before  # if it fell, another began meanwhile
        older = older or known
        times.update(moment for moment, _ in samples)
        grown.append(Growth(one.labels, tuple(_steps(samples, known))))
    if not grown:
        raise NotCountable("no samples since the start of the window")
    if len(times) < 2 and older:
        raise NotCountable("only one scrape since the start of the window: it needs two to see a difference")
    return tuple(grown)


def _steps(samples: Sequence[tuple[float, float]], known: bool) -> Iterable[tuple[float, float]]:
    before = samples[0][1] if known else 0.0
    total = 0.0
    for moment, value in samples:
        total += value - before if value >= before else value
        before = value
        yield moment, total


def requests(grown: Sequence[Growth]) -> Counts:
    """All requests, and those that failed: 5xx, and of gRPC whatever is not OK."""
    return _counts([(one.labels, one.total) for one in by_one_reporter(grown)])


def request_parts(grown: Sequence[Growth]) -> tuple[Counts, ...]:
    """The same of each part of the window: from scrape to scrape."""
    chosen = by_one_reporter(grown)
    return tuple(_counts([(one.labels, one.at(end) - one.at(begin)) for one in chosen]) for begin, end in cuts(chosen))


def buckets(grown: Sequence[Growth]) -> Buckets:
    """A histogram of the window, of all series together."""
    return _summed((one.labels, one.total) for one in by_one_reporter(grown, bucket="+Inf"))


def bucket_parts(grown: Sequence[Growth]) -> tuple[Buckets, ...]:
    """The same of each part of the window."""
    chosen = by_one_reporter(grown, bucket="+Inf")
    return tuple(_summed((one.labels, one.at(end) - one.at(begin)) for one in chosen) for begin, end in cuts(chosen))


def observed(histogram: Buckets) -> float:
    """How many values it holds."""
    return max(histogram.values(), default=0.0)


def quantile(histogram: Buckets, q: float) -> float | None:
    """As histogram_quantile has it: linear within a bucket; above the highest finite bound, that bound. None when there
    is nothing to tell it from."""
    bounds = sorted(histogram)
    if len(bounds) < 2 or bounds[-1] != math.inf:
        return None
    cumulative: list[float] = []
    for bound in bounds:  # scrapes of several pods are not of the same moment, so that a sum may fall a little
        cumulative.append(max(histogram[bound], cumulative[-1] if cumulative else 0.0))
    if cumulative[-1] <= 0:
        return None
    rank = q * cumulative[-1]
    place = bisect.bisect_left(cumulative, rank, 0, len(cumulative) - 1)
    if place == len(bounds) - 1:
        return bounds[-2]
    if place == 0 and bounds[0] <= 0:
        return bounds[0]
    low, below = (bounds[place - 1], cumulative[place - 1]) if place else (0.0, 0.0)
    inside = cumulative[place] - below
    return low + (bounds[place] - low) * ((rank - below) / inside) if inside else low


def mean(histogram: Buckets) -> float | None:
    """By the middles of its buckets; what is above the highest finite bound counts as that. None when it is empty."""
    bounds, total, weighted, below, low = sorted(histogram), 0.0, 0.0, 0.0, 0.0
    for bound in bounds:
        inside = max(0.0, histogram[bound] - below)
        middle = low if math.isinf(bound) else (low + bound) / 2
        total, weighted = total + inside, weighted + inside * middle
        below, low = max(below, histogram[bound]), low if math.isinf(bound) else bound
    return weighted / total if total else None


def by_one_reporter(grown: Sequence[Growth], bucket: str | None = None) -> tuple[Growth, ...]:
    """Both ends of a call report it, and it must count once. The end that saw more is taken: the source also sees what
    never reached a pod, and the destination what came from outside of the mesh. On a tie it is the source."""
    totals: dict[str, float] = {}
    for one in grown:
        if bucket is None or _bound(one.labels) == float(bucket):
            reporter = one.labels.get("reporter", "")
            totals[reporter] = totals.get(reporter, 0.0) + one.total
    if not totals:
        return ()
    chosen = max(totals, key=lambda reporter: (totals[reporter], reporter == "source", reporter))
    return tuple(one for one in grown if one.labels.get("reporter", "") == chosen)


def cuts(grown: Sequence[Growth]) -> tuple[tuple[float, float], ...]:
    """Parts of the window, from one scrape to the next. Pods are scraped at moments of their own: those of the series
    with the most samples are taken for all."""
    clock = max(grown, key=lambda one: len(one.steps), default=None)
    if clock is None:
        return ()
    moments = [moment for moment, _ in clock.steps][1:]
    moments = [*moments, math.inf] if not moments else [*moments[:-1], math.inf]  # the rest belongs to the last part
    if len(moments) > MOST_PARTS:
        moments = [moments[(each + 1) * len(moments) // MOST_PARTS - 1] for each in range(MOST_PARTS)]
    return tuple(zip([-math.inf, *moments[:-1]], moments, strict=True))


def _counts(amounts: Iterable[tuple[Mapping[str, str], float]]) -> Counts:
    total = failed = 0.0
    for labels, amount in amounts:
        total += amount
        if _is_failure(labels):
            failed += amount
    return Counts(total, failed)


def _is_failure(labels: Mapping[str, str]) -> bool:
    return labels.get("response_code", "").startswith("5") or labels.get("grpc_response_status", "") not in ("", "0")


def _summed(amounts: Iterable[tuple[Mapping[str, str], float]]) -> Buckets:
    summed: dict[float, float] = {}
    for labels, amount in amounts:
        bound = _bound(labels)
        if bound is not None:
            summed[bound] = summed.get(bound, 0.0) + amount
    return summed


def _bound(labels: Mapping[str, str]) -> float | None:
    try:
        bound = float(labels["le"])
    except (KeyError, ValueError):
        return None
    return None if math.isnan(bound) else bound
