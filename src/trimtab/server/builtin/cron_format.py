"""Whether a schedule is one that CronJobs understand: five fields, or a name such as `@daily` or `@every 1h`.

Only the form is judged, in the words of the parser that the real server uses; nothing runs by it here. Fields that may be
`?` as well as `*`, and names of months and days, are that parser's own.
"""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

import msgspec

from trimtab.model.duration import nanoseconds

NAMES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
EVERY = "@every "
_ZONED = re.compile(r"(?:CRON_)?TZ=")


class WrongSchedule(ValueError):  # noqa: N818 - it reads as what it is
    """A schedule that cannot be read, and why."""


class Bounds(msgspec.Struct, frozen=True):
    """The least and the greatest number of a field, and the names that some numbers have."""

    least: int
    most: int
    names: dict[str, int] = {}


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
FIELDS = (
    Bounds(0, 59),
    Bounds(0, 23),
    Bounds(1, 31),
    Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


def check_schedule(text: str) -> None:
    """WrongSchedule when this is none."""
    if match := _ZONED.match(text):
        zone, _, text = text[match.end() :].partition(" ")
        if not known_zone(zone):
            raise WrongSchedule(f"provided bad location {zone}: unknown time zone {zone}")
        text = text.strip()
    if text.startswith("@"):
        return _check_name(text)
    parts = text.split()
    if len(parts) != len(FIELDS):
        raise WrongSchedule(f"expected exactly {len(FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]")
    for part, bounds in zip(parts, FIELDS, strict=True):
        for one in filter(None, part.split(",")):
            _check_range(one, bounds)
    return None


def known_zone(name: str) -> bool:
    if name in ("", "UTC", "Local"):
        return True
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return False
    return True


def _check_name(text: str) -> None:
    if text.startswith(EVERY):
        length = text.removeprefix(EVERY)
        try:
            nanoseconds(length)
        except ValueError:
            raise WrongSchedule(f'failed to parse duration {text}: time: invalid duration "{length}"') from None
    elif text not in NAMES:
        raise WrongSchedule(f"unrecognized descriptor: {text}")


def _check_range(text: str, bounds: Bounds) -> None:
    """`1`, `1-5`, `*/2`, `1-5/2`, `3/2`."""
    span, *steps = text.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        first, last = bounds.least, bounds.most
    else:
        first = last = _number(ends[0], bounds)
        if len(ends) == 2:
            last = _number(ends[1], bounds)
        elif len(ends) > 2:
            raise WrongSchedule(f"too many hyphens: {text}")
    if len(steps) > 1:
        raise WrongSchedule(f"too many slashes: {text}")
    step = _integer(steps[0]) if steps else 1
    if steps and len(ends) == 1:
        last = bounds.most
    if first < bounds.least:
        raise WrongSchedule(f"beginning of range ({first}) below minimum ({bounds.least}): {text}")
    if last > bounds.most:
        raise WrongSchedule(f"end of range ({last}) above maximum ({bounds.most}): {text}")
    if first > last:
        raise WrongSchedule(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise WrongSchedule(f"step of range should be a positive number: {text}")


def _number(text: str, bounds: Bounds) -> int:
    found = bounds.names.get(text.lower())
    return _integer(text) if found is None else found


def _integer(text: str) -> int:
    if not re.fullmatch("[+-]?[0-9]+", text):
        raise WrongSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if len(text) > 18:
        raise WrongSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range')
    if int(text) < 0:
        raise WrongSchedule(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)
