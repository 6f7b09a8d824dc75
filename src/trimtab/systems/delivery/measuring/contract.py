"""What is measured, and where it comes from: the words that measuring, judging and the run share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec


class SourceError(Exception):
    """The metrics could not be had: not a word about the canary. The message is safe to show."""


class WindowLost(SourceError):  # noqa: N818 - it reads as what happened
    """The source did not look when the window began, so that nothing can be said of it. No failure: the next may do."""


class Window(msgspec.Struct, frozen=True):
    """What came after `start`, up to `end`. Windows of a run never overlap."""

    start: datetime
    end: datetime


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the numbers are about. `canary` and `stable` are workloads: names of Deployments."""

    namespace: str
    name: str
    canary: str
    stable: str
    service: str


class Series(msgspec.Struct, frozen=True):
    """Raw samples of one counter, oldest first: (seconds since 1970, value)."""

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


class Point(msgspec.Struct, frozen=True):
    """One element of an instant vector. The value may be NaN or infinite."""

    labels: Mapping[str, str]
    value: float


class Source(Protocol):
    """Where metrics are. Every method raises SourceError."""

    async def counters(self, name: str, labels: Mapping[str, str], window: Window) -> Sequence[Series]:
        """The raw samples of a counter within the window, both ends included, for all series with these labels; and of
        each series that was there earlier the last sample before it, so that one can tell it from a new one."""

    async def query(self, promql: str, at: datetime) -> Sequence[Point]:
        """An instant query."""


class Counts(msgspec.Struct, frozen=True):
    """Requests of one workload in a window."""

    total: float = 0.0
    failed: float = 0.0


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one metric was in one window. `value` is None when there is none; `problem` then says why. With `error` the
    metric could not be had at all. `values` are the parts of the window one by one, where the metric has such."""

    name: str
    value: float | None = None
    stable: float | None = None
    canary_counts: Counts | None = None
    stable_counts: Counts | None = None
    canary_values: tuple[float, ...] = ()
    stable_values: tuple[float, ...] = ()
    query: str = ""
    problem: str = ""
    error: bool = False
    lost: bool = False
    """The window can never be had, whoever asks again: the next one must begin anew."""
