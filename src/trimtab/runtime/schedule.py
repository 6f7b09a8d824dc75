"""When something runs next: by cron, by a period, or by both. Pure: the caller brings the time.

`next(after, last, since)` is the time of the next run, seen at `after`, when the last one began at `last`. What was
missed is made up for by one run, now: then `after` itself is the answer. Ask with the real time, run when `due`, store
the time at which the run began as `last` before acting, and sleep until `next`.

- Something that never ran: a period is due at once, because it says how often; cron waits for its time, because it says
  when. Its times count from `since`, which is when the object was created (or last given a schedule); without it, a
  caller that wakes just after a time would miss it.
- Times are those of `zone`. Cron is that of Debian: a job at fixed times that would fall into the gap of a change to
  summer time runs at the end of the gap; one that falls into an hour that comes twice runs in the first. A job whose
  minute or hour begins with `*` follows the real time, so it runs in both. On the day of a change at midnight, or by
  half an hour, as few zones have it, such a job may run once more or less.
- Nothing is due twice: times up to `last` have passed, also when the clock went back since. Who set the clock years
  ahead by mistake must clear `last`.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from msgspec import UNSET, Meta, UnsetType

from trimtab.model.duration import Duration
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.resource import Spec

MAX_CRONS = 16
MAX_LENGTH = 256

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

CronLine = Annotated[
    str, Meta(max_length=MAX_LENGTH, description="Minute, hour, day of month, month, day of week; or @daily.")
]


class InvalidSchedule(ValueError):  # noqa: N818 - it reads as what it is
    """A schedule that cannot be followed. `problems` names the fields and says what would be right."""

    def __init__(self, problems: tuple[FieldError, ...]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class Schedule(Spec):
    """Also a field of kinds: `schedule: Schedule`. With neither cron nor period it never runs."""

    cron: Annotated[tuple[CronLine, ...], Meta(max_length=MAX_CRONS, description="The earliest of these counts.")] = ()
    period: (
        Annotated[Duration, Meta(description="How long after the start of one run the next begins.")] | UnsetType
    ) = UNSET
    zone: Annotated[str, Meta(max_length=64, description="The time zone that cron means, such as Europe/Berlin.")] = (
        "UTC"
    )
    suspend: Annotated[bool, Meta(description="Run nothing until this is taken away.")] = False

    def next(self, after: datetime, last: datetime | None = None, since: datetime | None = None) -> datetime | None:
        """When to run next, in UTC, never before `after`; None for never. InvalidSchedule when that cannot be said."""
        if problems := self.problems():
            raise InvalidSchedule(problems)
        if self.suspend:
            return None
        after = after.astimezone(UTC)
        from_time = (last or since or after).astimezone(UTC)
        times = [_cron_after(line, from_time, self.zone) for line in self.cron]
        if not isinstance(self.period, UnsetType):
            times.append(_later(from_time, self.period) if last is not None else after)
        coming = [time for time in times if time is not None]
        return max(min(coming), after) if coming else None

    def due(self, now: datetime, last: datetime | None = None, since: datetime | None = None) -> bool:
        """Whether to run now."""
        time = self.next(now, last, since)
        return time is not None and time <= now

    def problems(self, path: str = "spec.schedule") -> tuple[FieldError, ...]:
        """All that is wrong; `path` is where the schedule is in its object."""
        return tuple(
            FieldError(f"{path}.{field}", FieldProblem.INVALID, value, detail)
            for field, value, detail in _problems(self.cron, self.period, self.zone)
        )


@functools.lru_cache(maxsize=1024)
def _problems(
    cron: tuple[str, ...], period: Duration | UnsetType, zone: str
) -> tuple[tuple[str, str | Duration, str], ...]:
    """Field, value and what is wrong with it."""
    found: list[tuple[str, str | Duration, str]] = []
    if len(cron) > MAX_CRONS:
        found.append(("cron", f"{len(cron)} lines", f"at most {MAX_CRONS} are allowed"))
    for i, line in enumerate(cron[:MAX_CRONS]):
        if wrong := _wrong(line):
            found.append((f"cron[{i}]", line[:MAX_LENGTH], wrong))
    if not isinstance(period, UnsetType) and period.seconds <= 0:
        found.append(("period", period, "must be longer than nothing, such as 15m or 24h"))
    if _zone(zone) is None:
        found.append(("zone", zone[:64], "must be a name of the time zone database, such as Europe/Berlin or UTC"))
    return tuple(found)


def _wrong(line: str) -> str:
    fields = NICKNAMES.get(line, line).split()
    if len(line) > MAX_LENGTH:
        return f"must have at most {MAX_LENGTH} characters"
    if len(fields) != 5:
        named = ", ".join(NICKNAMES)
        return f"must have five fields (minute, hour, day of month, month, day of week), or be one of {named}"
    try:
        CronSim(" ".join(fields), _EPOCH)
    except CronSimError as error:
        if _impossible(fields):
            return ""  # it is well formed, and its day never comes
        return f"{str(error).replace('Bad', 'bad')}; an example is `30 2 * * MON-FRI`, at 02:30 on working days"
    return ""


def _impossible(fields: list[str]) -> bool:
    """Whether the line is right but for a day that its months do not have, such as the 31st of February."""
    try:
        CronSim(" ".join((*fields[:3], "*", fields[4])), _EPOCH)
    except CronSimError:
        return False
    return True


@functools.lru_cache(maxsize=1024)
def _cron_after(line: str, moment: datetime, zone: str) -> datetime | None:
    """The first time of the line after the moment; None when there is none in fifty years."""
    place = _zone(zone)
    try:
        times = CronSim(NICKNAMES.get(line, line), moment.astimezone(place))
        for time in times:
            found: datetime = time.astimezone(UTC)
            if found > moment:  # not so in the second pass of an hour that comes twice
                return found
    except (CronSimError, OverflowError):
        return None
    return None


def _later(moment: datetime, period: Duration) -> datetime | None:
    try:
        return moment + timedelta(seconds=period.seconds)
    except OverflowError:
        return None


@functools.lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo | None:
    if name == "UTC":
        return UTC  # needs no database
    if name == "localtime":
        return None  # another one on each machine
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # no name, a folder of names, an unknown name
        return None


_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
