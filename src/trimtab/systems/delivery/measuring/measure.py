"""One metric in one window: the canary's number, that of stable from the same window, and what they were made of.

A source that fails is an error, and says nothing about the canary; an answer without one plain number is a problem. No
number is ever made up.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from trimtab.systems.delivery.kinds.analysis import DURATION, SUCCESS_RATE, Metric
from trimtab.systems.delivery.measuring import counting
from trimtab.systems.delivery.measuring.contract import (
    Counts,
    Measured,
    Point,
    Source,
    SourceError,
    Target,
    Window,
    WindowLost,
)
from trimtab.systems.delivery.measuring.names import DURATION_BUCKETS, REQUESTS, workload
from trimtab.systems.delivery.measuring.rendering import RenderError, quoted, rendered, values


async def measure(source: Source, metric: Metric, target: Target, window: Window, query: str = "") -> Measured:
    """Never raises for what a source does. `query` is the text of the metric's template, where it has one."""
    query = query or (metric.query if metric.query is not UNSET else "")
    if query:
        return await _by_query(source, metric, target, window, query)
    if metric.name == SUCCESS_RATE:
        return await _built_in(source, metric, target, window, REQUESTS, _success)
    if metric.name == DURATION:
        return await _built_in(source, metric, target, window, DURATION_BUCKETS, _duration)
    return Measured(name=metric.name, problem=f"{metric.name} is not built in and has no query")


class _Side(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one workload."""

    value: float | None = None
    counts: Counts | None = None
    values: tuple[float, ...] = ()
    problem: str = ""
    error: bool = False
    lost: bool = False
    query: str = ""


_Reading = Callable[[Metric, Sequence[counting.Growth]], _Side]


async def _built_in(
    source: Source, metric: Metric, target: Target, window: Window, counter: str, read: _Reading
) -> Measured:
    canary, stable = await asyncio.gather(
        _counted(source, metric, target.namespace, target.canary, window, counter, read),
        _counted(source, metric, target.namespace, target.stable, window, counter, read),
    )
    return _measured(metric, canary, stable)


async def _counted(
    source: Source, metric: Metric, namespace: str, name: str, window: Window, counter: str, read: _Reading
) -> _Side:
    labels = workload(namespace, name)
    query = f"{counter}{{{','.join(f'{label}={quoted(value)}' for label, value in labels.items())}}}"
    try:
        grown = counting.growths(await source.counters(counter, labels, window), window)
    except WindowLost as lost:
        return _Side(problem=str(lost), lost=True, query=query)
    except SourceError as error:
        return _Side(problem=str(error), error=True, query=query)
    except counting.NotCountable as why:
        return _Side(problem=f"{counter} of {name}: {why}", query=query)
    side = read(metric, grown)
    problem = side.problem and f"{side.problem} to {name}"
    return msgspec.structs.replace(side, problem=problem, query=query)


def _success(metric: Metric, grown: Sequence[counting.Growth]) -> _Side:
    """The share of requests that did not fail, in percent."""
    counts = counting.requests(grown)
    if not counts.total:
        return _Side(counts=counts, problem="no requests")
    parts = tuple(_percent(part) for part in counting.request_parts(grown) if part.total > 0)
    return _Side(value=_percent(counts), counts=counts, values=parts)


def _percent(counts: Counts) -> float:
    return 100.0 * (counts.total - counts.failed) / counts.total


def _duration(metric: Metric, grown: Sequence[counting.Growth]) -> _Side:
    """A quantile, in milliseconds. Parts are told by their mean: the P99 of three requests is lower than that of thirty,
    and the canary has fewer."""
    histogram = counting.buckets(grown)
    counts = Counts(counting.observed(histogram))
    if not counts.total:
        return _Side(counts=counts, problem="no requests")
    found = counting.quantile(histogram, metric.quantile)
    if found is None:
        return _Side(counts=counts, problem="no histogram with an upper bound +Inf of requests")
    parts = (counting.mean(part) for part in counting.bucket_parts(grown))
    return _Side(value=found, counts=counts, values=tuple(part for part in parts if part is not None))


async def _by_query(source: Source, metric: Metric, target: Target, window: Window, query: str) -> Measured:
    canary = await _queried(source, metric, target, window, query, target.canary)
    stable = _Side()
    if metric.compare.judge != "Threshold":
        stable = await _queried(source, metric, target, window, query, target.stable)
    return _measured(metric, canary, stable)


async def _queried(source: Source, metric: Metric, target: Target, window: Window, query: str, of: str) -> _Side:
    given = metric.variables if metric.variables is not UNSET else {}
    known = values(target, window, metric.interval.seconds, given, workload=of)
    try:
        text = rendered(query, known)
    except RenderError as error:
        return _Side(problem=str(error), query=query)
    try:
        points = await source.query(text, window.end)
    except SourceError as error:
        return _Side(problem=str(error), error=True, query=text)
    problem = _not_one_number(points)
    if problem:
        return _Side(problem=problem, query=text)
    return _Side(value=points[0].value, values=(points[0].value,), query=text)


def _not_one_number(points: Sequence[Point]) -> str:
    if not points:
        return "the query found nothing"
    if len(points) > 1:
        return f"the query gave {len(points)} series, and one is wanted: sum them, or choose one by its labels"
    value = points[0].value
    return "" if math.isfinite(value) else f"the query gave {'NaN' if math.isnan(value) else f'{value:+}'}, no number"


def _measured(metric: Metric, canary: _Side, stable: _Side) -> Measured:
    """Stable is of matter only to those who compare."""
    problem, error, lost = canary.problem, canary.error, canary.lost
    if not problem and metric.compare.judge != "Threshold" and stable.problem:
        problem, error, lost = f"stable: {stable.problem}", stable.error, stable.lost
    return Measured(
        name=metric.name,
        value=canary.value,
        stable=stable.value,
        canary_counts=canary.counts,
        stable_counts=stable.counts,
        canary_values=canary.values,
        stable_values=stable.values,
        query=canary.query,
        problem=problem,
        error=error,
        lost=lost,
    )
