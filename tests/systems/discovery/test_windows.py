from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.duration import Duration
from trimtab.systems.discovery.kinds import Window
from trimtab.systems.discovery.scope.windows import opens, problems

MINUTE = Duration("1m")
NIGHT = Window(start="0 2 * * *", duration=Duration("4h"))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_rule_that_never_swept_begins_at_once() -> None:
    now = at("2026-03-01T12:00:00")
    assert opens((), MINUTE, None, now) == now


def test_the_period_counts_from_start_to_start() -> None:
    last = at("2026-03-01T12:00:00")
    assert opens((), MINUTE, last, last + timedelta(seconds=20)) == last + timedelta(seconds=60)


def test_a_sweep_longer_than_its_period_is_followed_at_once() -> None:
    last = at("2026-03-01T12:00:00")
    late = last + timedelta(seconds=90)
    assert opens((), MINUTE, last, late) == late


@pytest.mark.parametrize(
    ("now", "opening"),
    [
        ("2026-03-01T01:59:59", "2026-03-01T02:00:00"),
        ("2026-03-01T02:00:00", "2026-03-01T02:00:00"),
        ("2026-03-01T05:59:59", "2026-03-01T05:59:59"),
        ("2026-03-01T06:00:00", "2026-03-02T02:00:00"),
        ("2026-03-01T12:00:00", "2026-03-02T02:00:00"),
    ],
)
def test_a_sweep_begins_only_while_a_window_is_open(now: str, opening: str) -> None:
    assert opens((NIGHT,), MINUTE, None, at(now)) == at(opening)


def test_the_first_of_several_windows_counts() -> None:
    noon = Window(start="0 12 * * *", duration=Duration("1h"))
    assert opens((NIGHT, noon), MINUTE, None, at("2026-03-01T07:00:00")) == at("2026-03-01T12:00:00")


def test_a_period_that_ends_after_the_window_waits_for_the_next() -> None:
    last = at("2026-03-01T05:30:00")
    assert opens((NIGHT,), Duration("1h"), last, last) == at("2026-03-02T02:00:00")


def test_a_window_longer_than_its_distance_is_always_open() -> None:
    always = Window(start="0 0 * * *", duration=Duration("25h"))
    now = at("2026-03-01T23:59:00")
    assert opens((always,), MINUTE, None, now) == now


def test_a_window_means_the_time_of_its_zone_in_summer_too() -> None:
    berlin = Window(start="0 2 * * *", duration=Duration("1h"), zone="Europe/Berlin")
    assert opens((berlin,), MINUTE, None, at("2026-01-10T12:00:00")) == at("2026-01-11T01:00:00")
    assert opens((berlin,), MINUTE, None, at("2026-07-10T12:00:00")) == at("2026-07-11T00:00:00")


def test_a_window_in_the_gap_of_a_change_to_summer_time_opens_after_it() -> None:
    berlin = Window(start="30 2 * * *", duration=Duration("1h"), zone="Europe/Berlin")
    assert opens((berlin,), MINUTE, None, at("2026-03-28T23:00:00")) == at("2026-03-29T01:00:00")


def test_a_last_sweep_far_in_the_future_is_a_mistake_of_the_clock() -> None:
    now = at("2026-03-01T12:00:00")
    assert opens((), MINUTE, now + timedelta(days=400), now) == now


def test_a_last_sweep_just_in_the_future_is_waited_for() -> None:
    now = at("2026-03-01T12:00:00")
    assert opens((), MINUTE, now + timedelta(seconds=5), now) == now + timedelta(seconds=65)


def test_a_window_that_never_comes_never_opens() -> None:
    never = Window(start="0 0 31 2 *", duration=Duration("1h"))
    assert opens((never,), MINUTE, None, at("2026-03-01T12:00:00")) is None
    (problem,) = problems((never,))
    assert (problem.path, problem.value) == ("spec.windows[0].start", "0 0 31 2 *")
    assert problem.detail == "never comes: an example is `0 2 * * *`, each night at 02:00"


def test_the_longest_durations_are_reckoned() -> None:
    longest = Duration("2562047h")
    now = at("2026-03-01T12:00:00")
    assert opens((Window(start="@yearly", duration=longest),), longest, None, now) == now
    assert opens((), longest, now, now) == now + timedelta(hours=2562047)


def test_problems_name_their_fields() -> None:
    bad = (NIGHT, Window(start="2am", duration=Duration("0s"), zone="Mars/Olympus"))
    assert [p.path for p in problems(bad)] == [
        "spec.windows[1].start",
        "spec.windows[1].zone",
        "spec.windows[1].duration",
    ]
    assert problems((NIGHT,)) == []


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
    st.none() | st.integers(-7200, 7200),
    st.integers(1, 200),
    st.sampled_from(["*/20 * * * *", "0 2 * * *", "15 8-18 * * MON-FRI"]),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
)
def test_a_sweep_begins_neither_before_now_nor_in_a_closed_window(
    moment: datetime, ago: int | None, minutes: int, cron: str, zone: str
) -> None:
    now = moment.replace(tzinfo=UTC)
    last = None if ago is None else now - timedelta(seconds=ago)
    window = Window(start=cron, duration=Duration("10m"), zone=zone)
    period = Duration(f"{minutes}m")
    found = opens((window,), period, last, now)
    assert found is not None
    assert found >= now
    assert opens((window,), period, None, found) == found  # it is open then
    if last is None or last - now <= timedelta(minutes=minutes):  # else it says nothing now, and may then
        assert opens((window,), period, last, found) == found  # and asked then, the answer is: now
