"""When someone has set the clock back: what was noted as past lies in the future. Pure.

A run would stand still until the clock is there again. Instead it goes on as if the latest moment that it noted were now:
nothing is due any earlier than it was to be, and the window begins anew, for its samples are of another time.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import UnsetType

from trimtab.model.clock import format_time, parse_time
from trimtab.systems.delivery.kinds import CanaryDeploymentStatus, RunStatus
from trimtab.systems.delivery.machine.runs import analysis_of, later, stamp

SKEW = timedelta(seconds=2)
"""Clocks of two machines that took turns may differ by this much."""


def rebased(status: CanaryDeploymentStatus, now: datetime) -> CanaryDeploymentStatus:
    """The status, with no moment in the future that was noted as past."""
    drift = status.drift
    if not isinstance(drift, UnsetType) and drift.since and parse_time(drift.since) > now + SKEW:
        status = status.replace(drift=drift.replace(since=format_time(now)))
    run = status.run
    return status if isinstance(run, UnsetType) else _run(status, run, now)


def _run(status: CanaryDeploymentStatus, run: RunStatus, now: datetime) -> CanaryDeploymentStatus:
    noted = {"since": run.since, "verified": run.verified, "windowStart": run.window_start, "short": run.short_since}
    past = {name: parse_time(moment) for name, moment in noted.items() if not isinstance(moment, UnsetType)}
    latest = max(past.values())
    if latest <= now + SKEW:
        return status
    ahead = latest - now
    moved = run.replace(since=stamp(past["since"] - ahead))
    if "verified" in past:
        moved = moved.replace(verified=stamp(past["verified"] - ahead))
    if "short" in past:
        moved = moved.replace(short_since=stamp(past["short"] - ahead))
    if "windowStart" in past:
        moved = moved.replace(window_start=stamp(now))
    if not isinstance(run.next_check_time, UnsetType):
        analysis, due = analysis_of(run), (parse_time(run.next_check_time) - latest).total_seconds()
        if not isinstance(analysis, UnsetType):
            due = min(max(due, 0.0), analysis.interval.seconds)
        moved = moved.replace(next_check_time=later(now, due))
    return status.replace(run=moved)
