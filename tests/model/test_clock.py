"""Times are written and read as the API has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.clock import SystemClock, format_micro_time, format_time, parse_time

MOMENT = datetime(2026, 11, 15, 22, 45, 24, 120_000, UTC)


def test_time_is_written_in_whole_seconds_of_utc() -> None:
    there = MOMENT.astimezone(timezone(timedelta(hours=2)))
    assert format_time(there) == "2026-11-15T22:45:24Z"


def test_micro_time_always_has_six_digits() -> None:
    assert format_micro_time(MOMENT) == "2026-11-15T22:45:24.120000Z"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-15T22:45:24.12Z",
        "2026-11-15T22:45:24.120000000Z",
        "2026-11-16T00:45:24.12+02:00",
        "2026-11-15T17:15:24.12-05:30",
    ],
)
def test_time_is_read_from_any_zone_and_precision(text: str) -> None:
    assert parse_time(text) == MOMENT


@pytest.mark.parametrize(
    "text",
    ["", "2026-11-15", "2026-11-15 22:45:24Z", "2026-13-15T22:45:24Z", "2026-11-15T22:45:24", "٢026-11-15T22:45:24Z"],
)
def test_what_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an RFC 3339 time"):
        parse_time(text)


@settings(max_examples=50)
@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_a_written_micro_time_reads_back_as_itself(moment: datetime) -> None:
    assert parse_time(format_micro_time(moment)) == moment


async def test_the_system_clock_is_aware_and_monotonic() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= before
    assert clock.now().tzinfo is UTC
