"""Timestamps and durations: RFC 3339, Go's duration strings, arithmetic with limits, parts by time zone."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

from trimtab.model.cel.errors import EvaluationError, no_such_overload
from trimtab.model.cel.values import INT_MAX, INT_MIN, Duration, Timestamp

SECOND = 1_000_000_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FIRST = -62135596800 * SECOND
_LAST = 253402300799 * SECOND + SECOND - 1
_STAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?(?:([Zz])|([+-])(\d\d):(\d\d))\Z", re.ASCII
)
_UNITS = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND,
}  # fmt: skip
_WORDS = {
    "n": 1, "u": 1_000, "mi": 60 * SECOND, "ms": 1_000_000, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND,
    "d": 86400 * SECOND, "w": 604800 * SECOND,
}  # fmt: skip
_PART = re.compile(r"(\d*)(?:\.(\d*))?([a-zµμ]+)", re.ASCII)
_LOOSE = re.compile(r"(?<!\d)(\d+)\s*([A-Za-zµ]+)")  # which looks at no digit twice


def timestamp(text: str) -> Timestamp:
    """RFC 3339. Raises ValueError."""
    match = _STAMP.match(text)
    if match is None:
        raise ValueError(f"cannot parse {text!r} as a timestamp")
    year, month, day, hour, minute, second, fraction, _, sign, hours, minutes = match.groups()
    moment = datetime.datetime(
        int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=datetime.UTC
    )
    seconds = int((moment - _EPOCH).total_seconds())
    if sign:
        if int(hours) > 24 or int(minutes) > 60:
            raise ValueError("time zone offset out of range")
        offset = int(hours) * 3600 + int(minutes) * 60
        seconds -= offset if sign == "+" else -offset
    return in_range(Timestamp(seconds * SECOND + int((fraction or "0").ljust(9, "0"))))


def date(text: str) -> Timestamp:
    """A day, at midnight UTC. Raises ValueError."""
    return timestamp(f"{text}T00:00:00Z")


def duration(text: str) -> Duration:
    """Go's form: `1h2m3.5s`. Raises ValueError."""
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return Duration(0)
    total, place = 0, 0
    while place < len(body):
        match = _PART.match(body, place)
        if match is None or not (match[1] or match[2]) or match[3] not in _UNITS or len(match[0]) > 40:
            raise ValueError(f"time: invalid duration {text!r}")
        unit = _UNITS[match[3]]
        total += int(match[1] or 0) * unit
        if match[2]:
            total += int(match[2]) * unit // 10 ** len(match[2])
        place = match.end()
    if not body or total > INT_MAX:
        raise ValueError(f"time: invalid duration {text!r}")
    return Duration(-total if text[0] == "-" else total)


def loose_duration(text: str) -> Duration:
    """What the OpenAPI format `duration` allows besides Go's form: `2 days`. Raises ValueError."""
    try:
        return duration(text)
    except ValueError:
        found = _LOOSE.findall(text)
        if not found:
            raise
        return Duration(sum(int(count[:20]) * _word(unit.lower()) for count, unit in found))


def _word(unit: str) -> int:
    for length in (2, 1):
        if unit[:length] in _WORDS and (length == 1 or unit.startswith(("mi", "ms"))):
            return 1_000_000 if unit.startswith("mil") else _WORDS[unit[:length]]
    raise ValueError(f"unknown unit {unit!r}")


def in_range(moment: Timestamp) -> Timestamp:
    if _FIRST <= moment.ns <= _LAST:
        return moment
    raise EvaluationError("timestamp overflow")


def long_enough(span: int) -> Duration:
    if INT_MIN <= span <= INT_MAX:
        return Duration(span)
    raise EvaluationError("integer overflow")


def shown(value: Timestamp) -> str:
    """A timestamp or a duration as `string()` gives it."""
    if isinstance(value, Duration):
        whole, rest = divmod(abs(value.ns), SECOND)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{'-' if value.ns < 0 else ''}{whole}{fraction}s"
    whole, rest = divmod(value.ns, SECOND)
    moment = _EPOCH + datetime.timedelta(seconds=whole)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}".zfill(19) + f"{fraction}Z"


def part(value: Any, name: str, zone: str | None = None) -> int:
    """A part of a timestamp in a time zone, or of a duration: `getHours` and its like."""
    if isinstance(value, Duration):
        if zone is not None or name not in _SPANS:
            raise no_such_overload()
        return int(abs(value.ns) // _SPANS[name]) * (-1 if value.ns < 0 else 1)
    if not isinstance(value, Timestamp):
        raise no_such_overload()
    whole, rest = divmod(value.ns, SECOND)
    moment = _EPOCH + datetime.timedelta(seconds=whole)
    if zone is not None:
        moment = moment.astimezone(_zone(zone))
    if name == "getMilliseconds":
        return rest // 1_000_000
    return _PARTS[name](moment)


_SPANS = {"getHours": 3600 * SECOND, "getMinutes": 60 * SECOND, "getSeconds": SECOND, "getMilliseconds": 1_000_000}
_PARTS: dict[str, Callable[[datetime.datetime], int]] = {
    "getFullYear": lambda t: t.year,
    "getMonth": lambda t: t.month - 1,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda t: t.day - 1,
    "getDate": lambda t: t.day,
    "getDayOfWeek": lambda t: t.isoweekday() % 7,
    "getHours": lambda t: t.hour,
    "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second,
}
PARTS = (*_PARTS, "getMilliseconds")


def _zone(name: str) -> datetime.tzinfo:
    import zoneinfo  # rarely needed

    match = re.fullmatch(r"([+-]?)(\d{1,2}):(\d\d)", name)
    try:
        if match:
            minutes = int(match[2]) * 60 + int(match[3])
            return datetime.timezone(datetime.timedelta(minutes=-minutes if match[1] == "-" else minutes))
        return zoneinfo.ZoneInfo(name or "UTC")
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise EvaluationError(f"unknown time zone {name}") from None
