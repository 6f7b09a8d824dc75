"""Time, passed in so that a test can hold it still; and time as the API writes it.

`Time` is RFC 3339 in UTC with whole seconds; `MicroTime` always has six digits after the point. Anything that waits or
stamps takes a `Clock`; nothing else in the project asks the system for the time.
"""

from __future__ import annotations

import asyncio
import re
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC. It may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds from some fixed moment. Never goes back; use it to measure and for deadlines."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return _since_boot()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _since_boot() -> float:
    """Also the time that a suspended machine slept: a lease ends meanwhile."""
    return time.clock_gettime(_BOOT)


_BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def format_time(moment: datetime) -> str:
    """As metav1.Time is written: `2026-11-15T22:45:24Z`. The fraction of a second is cut off."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime) -> str:
    """As metav1.MicroTime is written: `2026-11-15T22:45:24.000001Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Read Time or MicroTime, from any zone, into UTC; what is finer than a microsecond is cut. ValueError."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:64]!r} is not an RFC 3339 time")
    year, month, day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = match.groups()
    zone: timezone = UTC
    if sign:
        offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes))
        zone = timezone(-offset if sign == "-" else offset)
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), micros, zone)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text[:64]!r} is not an RFC 3339 time: {error}") from None


_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,32}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))", re.ASCII
)
