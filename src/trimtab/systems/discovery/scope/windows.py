"""When a sweep may begin: a period from start to start, and only within windows. Pure: the caller brings the time.

A window opens at the times of its cron line, in its own zone, and stays open for its duration; its end does not belong
to it. A sweep that began within a window may end after it. What a closed window kept back is done once, when one opens.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from trimtab.model.duration import Duration
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.runtime.schedule import Schedule
from trimtab.systems.discovery.kinds import Window


def opens(windows: Sequence[Window], period: Duration, last: datetime | None, now: datetime) -> datetime | None:
    """When the next sweep may begin, in UTC, never before `now`, where the last one began at `last`.

    None when no window ever opens. InvalidSchedule for what `problems` names.
    """
    earliest = _earliest(period, last, now.astimezone(UTC))
    if not windows:
        return earliest
    times = [time for window in windows if (time := _within(window, earliest)) is not None]
    return min(times, default=None)


def problems(windows: Sequence[Window], path: str = "spec.windows") -> list[FieldError]:
    """All that is wrong with them."""
    found = []
    for i, window in enumerate(windows):
        schedule = _schedule(window)
        wrong = schedule.problems(f"{path}[{i}]")
        found += [FieldError(e.path.replace("cron[0]", "start"), e.problem, e.value, e.detail) for e in wrong]
        if not wrong and schedule.next(_EPOCH, _EPOCH) is None:
            detail = "never comes: an example is `0 2 * * *`, each night at 02:00"
            found.append(FieldError(f"{path}[{i}].start", FieldProblem.INVALID, window.start, detail))
        if window.duration.seconds <= 0:
            detail = "must be longer than nothing, such as 4h"
            found.append(FieldError(f"{path}[{i}].duration", FieldProblem.INVALID, window.duration, detail))
    return found


def _earliest(period: Duration, last: datetime | None, now: datetime) -> datetime:
    length = timedelta(seconds=period.seconds)
    if last is None or last - now > length:  # the clock was far ahead when it began: that says nothing of today
        return now
    return max(now, last.astimezone(UTC) + length)


def _within(window: Window, earliest: datetime) -> datetime | None:
    """The first time from `earliest` on at which the window is open."""
    before = earliest - timedelta(seconds=window.duration.seconds)
    start = _schedule(window).next(before, before)  # the first one after `before`: it is open still, or the next
    return None if start is None else max(start, earliest)


def _schedule(window: Window) -> Schedule:
    return Schedule(cron=(window.start,), zone=window.zone)


_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
