"""Durations as Go and Kubernetes write them: `1h30m`, `500ms`; and periods, which also know days and weeks: `1d`, `2w`."""

from __future__ import annotations

import functools
import re
from fractions import Fraction
from typing import Any, Self

MAX_LENGTH = 64

PATTERN = r"^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$"
"""What a schema says of a duration: one that is not negative."""


class Duration(str):
    """A length of time that keeps the text it was given. ValueError when the text is not a duration.

    Two durations are equal when their texts are; compare `seconds` to ask whether they are equally long.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        nanoseconds(text)
        return super().__new__(cls, text)

    @classmethod
    def of(cls, seconds: float) -> Self:
        """The duration of so many seconds, written as Go does: `90` is `1m30s`."""
        return cls(_written(round(seconds * 1_000_000_000)))

    @property
    def seconds(self) -> float:
        return nanoseconds(self) / 1_000_000_000

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {"type": "string", "pattern": PATTERN, "maxLength": MAX_LENGTH}


class Period(Duration):
    """A duration of people's plans: what Go reads, and days of 24 hours (`1d`) and weeks (`2w`)."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        _period(text)
        return str.__new__(cls, text)

    @property
    def seconds(self) -> float:
        return _period(self) / 1_000_000_000

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {"type": "string", "pattern": PATTERN.replace("|s|m|h)", "|s|m|h|d|w)"), "maxLength": MAX_LENGTH}


@functools.lru_cache(maxsize=1024)
def nanoseconds(text: str) -> int:
    """What `time.ParseDuration` reads. Parts of a nanosecond are cut."""
    if len(text) > MAX_LENGTH or not _DURATION.fullmatch(text):
        raise ValueError(f"{text[:MAX_LENGTH]!r} is not a duration such as 90s or 1h30m")
    return _total(text)


@functools.lru_cache(maxsize=1024)
def _period(text: str) -> int:
    if len(text) > MAX_LENGTH or not _PERIOD.fullmatch(text):
        raise ValueError(f"{text[:MAX_LENGTH]!r} is not a period such as 90s, 1h30m, 1d or 2w")
    return _total(text)


def _total(text: str) -> int:
    unsigned = text.lstrip("+-")
    total = sum((Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(unsigned)), Fraction(0))
    if total >= 1 << 63:
        raise ValueError(f"{text!r} is too long a duration")
    return -int(total) if text[0] == "-" else int(total)


def _written(nanos: int) -> str:
    if nanos == 0:
        return "0s"
    sign, left = ("-", -nanos) if nanos < 0 else ("", nanos)
    if left < _UNITS["s"]:
        unit = next(unit for unit in ("ms", "µs", "ns") if left >= _UNITS[unit])
        return f"{sign}{_decimal(left, _UNITS[unit])}{unit}"
    minutes, left = divmod(left, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(left, _UNITS['s'])}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else sign + text


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"


_UNITS = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000,
    "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000,
    "d": 86_400_000_000_000, "w": 604_800_000_000_000,
}  # fmt: skip
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_PERIOD = re.compile(_DURATION.pattern.replace("|s|m|h)", "|s|m|h|d|w)"))
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w)")
