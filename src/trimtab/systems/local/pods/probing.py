"""What a probe asks and when, and what its answers come to. Pure: `probes` does the asking.

The times and thresholds are Kubernetes'. One thing is ours: until a startup or readiness probe first succeeds it is
asked again after a moment that grows up to its period, so that a fast process is ready at once. What fails in between
counts for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

EAGER = 0.05  # seconds; doubled each time


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One probe of a container. `ask` is its handler as the pod has it: httpGet, tcpSocket, exec or grpc."""

    ask: Mapping[str, Any]
    delay: float = 0.0
    period: float = 10.0
    timeout: float = 1.0
    failures: int = 3
    successes: int = 1
    grace: float | None = None
    """Seconds between SIGTERM and SIGKILL when it fails; the pod's when not given."""


class Tally(msgspec.Struct, frozen=True):
    """How it went so far: `verdict` is None until a threshold was reached; `row` answers of one sort came last."""

    verdict: bool | None = None
    last: bool | None = None
    row: int = 0


def probe_of(document: Mapping[str, Any] | None) -> Probe | None:
    """Of a container's field; None when it has none. The API has checked and defaulted it, mostly."""
    if not document:
        return None
    ask = {key: document[key] for key in HANDLERS if document.get(key) is not None}
    if not ask:
        return None

    def number(field: str, default: float, least: float) -> float:
        value = document.get(field)
        return max(least, float(default if value is None else value))

    return Probe(
        ask=ask,
        delay=number("initialDelaySeconds", 0, 0),
        period=number("periodSeconds", 10, 1),
        timeout=number("timeoutSeconds", 1, 1),
        failures=int(number("failureThreshold", 3, 1)),
        successes=int(number("successThreshold", 1, 1)),
        grace=document.get("terminationGracePeriodSeconds"),
    )


def counted(tally: Tally, probe: Probe, answer: bool) -> Tally:
    """The tally after one more answer."""
    row = tally.row + 1 if tally.last is answer else 1
    enough = row >= (probe.successes if answer else probe.failures)
    return Tally(verdict=answer if enough else tally.verdict, last=answer, row=row)


def eager_pauses(period: float) -> list[float]:
    """The moments to wait between attempts within one period, before the first success."""
    pauses, pause, spent = [], EAGER, 0.0
    while spent + pause < period:
        pauses.append(pause)
        spent += pause
        pause = min(pause * 2, 1.0)
    return [*pauses, period - spent]


HANDLERS = ("httpGet", "tcpSocket", "exec", "grpc")
