"""Schedules against tables, and against a slow and simple reckoning."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from trimtab.model.document import convert, to_document
from trimtab.model.duration import Duration
from trimtab.model.resource import Resource
from trimtab.model.structural import structural
from trimtab.runtime.schedule import InvalidSchedule, Schedule

NOON = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)  # a Wednesday


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


def test_cron_runs_at_its_next_time_after_the_last_run() -> None:
    schedule = Schedule(cron=("30 2 * * *",))
    assert schedule.next(NOON, NOON - hours(1)) == at("2026-06-11T02:30Z")


def test_a_period_counts_from_the_start_of_the_last_run() -> None:
    schedule = Schedule(period=Duration("90m"))
    assert schedule.next(NOON, NOON - hours(1)) == NOON + hours(0.5)
    assert schedule.due(NOON + hours(0.5), NOON - hours(1))


def test_of_several_the_earliest_counts() -> None:
    schedule = Schedule(cron=("0 20 * * *", "0 14 * * *", "0 16 * * *"), period=Duration("6h"))
    assert schedule.next(NOON, NOON) == NOON + hours(2)
    assert schedule.next(NOON, NOON - hours(5)) == NOON + hours(1)


@pytest.mark.parametrize("schedule", [Schedule(cron=("0 * * * *",)), Schedule(period=Duration("1h"))], ids=str)
def test_many_missed_times_are_one_run_now(schedule: Schedule) -> None:
    assert schedule.next(NOON, NOON - hours(100)) == NOON
    assert schedule.due(NOON, NOON - hours(100))
    assert not schedule.due(NOON + hours(0.9), NOON)


def test_a_period_that_never_ran_is_due_at_once() -> None:
    assert Schedule(period=Duration("24h")).next(NOON) == NOON


def test_cron_that_never_ran_waits_for_its_first_time_since_the_object_was_made() -> None:
    schedule = Schedule(cron=("0 13 * * *",))
    made = NOON
    assert schedule.next(NOON, None, made) == NOON + hours(1)
    assert schedule.due(NOON + hours(1.001), None, made)
    assert not schedule.due(NOON + hours(0.999), None, made)


@pytest.mark.parametrize("schedule", [Schedule(cron=("0 * * * *",)), Schedule(period=Duration("1h"))], ids=str)
def test_nothing_is_due_twice_when_the_clock_goes_back(schedule: Schedule) -> None:
    assert not schedule.due(NOON - hours(3), NOON)
    assert schedule.next(NOON - hours(3), NOON) == NOON + hours(1)


def test_a_suspended_schedule_never_runs() -> None:
    assert Schedule(cron=("* * * * *",), period=Duration("1s"), suspend=True).next(NOON, NOON - hours(9)) is None


def test_an_empty_schedule_never_runs() -> None:
    assert Schedule().next(NOON) is None
    assert not Schedule().due(NOON)


@pytest.mark.parametrize("line", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * 31 2 *"])
def test_a_day_that_never_comes_is_never(line: str) -> None:
    schedule = Schedule(cron=(line,))
    assert schedule.next(NOON, NOON) is None
    assert not schedule.due(NOON, NOON)
    assert Schedule(cron=(line, "@daily")).next(NOON, NOON) == at("2026-06-11T00:00Z")


def test_a_day_that_comes_every_four_years_is_found() -> None:
    assert Schedule(cron=("0 0 29 2 *",)).next(NOON, NOON) == at("2028-02-29T00:00Z")


def test_a_day_beyond_the_end_of_time_is_never() -> None:
    end = datetime(9999, 12, 31, 23, 59, 30, tzinfo=UTC)
    assert Schedule(cron=("0 0 1 1 *",), period=Duration("24h")).next(end, end) is None


@pytest.mark.parametrize(
    ("nickname", "first"),
    [
        ("@hourly", "2026-06-10T13:00Z"),
        ("@daily", "2026-06-11T00:00Z"),
        ("@midnight", "2026-06-11T00:00Z"),
        ("@weekly", "2026-06-14T00:00Z"),
        ("@monthly", "2026-07-01T00:00Z"),
        ("@yearly", "2027-01-01T00:00Z"),
        ("@annually", "2027-01-01T00:00Z"),
    ],
)
def test_nicknames(nickname: str, first: str) -> None:
    assert Schedule(cron=(nickname,)).next(NOON, NOON) == at(first)


BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


@pytest.mark.parametrize(
    ("zone", "line", "after", "times"),
    [
        # Summer time begins: there is no time between 02:00 and 03:00.
        (BERLIN, "30 2 * * *", "2026-03-28T12:00Z", ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
        (BERLIN, "0,30 2 * * *", "2026-03-29T00:00Z", ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
        (BERLIN, "0 2,3 * * *", "2026-03-29T00:00Z", ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
        (BERLIN, "*/30 * * * *", "2026-03-29T00:30Z", ["2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00"]),
        (BERLIN, "0 12 * * *", "2026-03-28T12:00+01:00", ["2026-03-29T12:00+02:00"]),
        (NEW_YORK, "30 2 * * *", "2026-03-07T12:00Z", ["2026-03-08T03:00-04:00"]),
        (NEW_YORK, "30 2 * * *", "2026-03-08T05:00Z", ["2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"]),
        # Summer time ends: the hour from 02:00 (in New York from 01:00) comes twice.
        (BERLIN, "30 2 * * *", "2026-10-24T12:00Z", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
        (BERLIN, "*/30 * * * *", "2026-10-25T02:15+02:00", ["2026-10-25T02:30+02:00", "2026-10-25T02:00+01:00"]),
        (BERLIN, "0 3 * * *", "2026-10-25T02:30+01:00", ["2026-10-25T03:00+01:00"]),
        (NEW_YORK, "30 1 * * *", "2026-11-01T00:00-04:00", ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"]),
        (NEW_YORK, "0 * * * *", "2026-11-01T01:00-04:00", ["2026-11-01T01:00-05:00", "2026-11-01T02:00-05:00"]),
    ],
)
def test_changes_of_summer_time(zone: str, line: str, after: str, times: list[str]) -> None:
    schedule, moment = Schedule(cron=(line,), zone=zone), at(after)
    for time in times:
        found = schedule.next(moment, moment)
        assert found == at(time)
        moment = at(time)


def test_who_asks_in_the_second_pass_of_an_hour_does_not_get_a_time_of_the_first() -> None:
    schedule = Schedule(cron=("30 2 * * *",), zone=BERLIN)
    second_pass = at("2026-10-25T02:10+01:00")
    assert schedule.next(second_pass, None, second_pass) == at("2026-10-26T02:30+01:00")


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (Schedule(cron=("@daily", "61 * * * *")), 'spec.schedule.cron[1]: Invalid value: "61 * * * *": bad minute'),
        (Schedule(cron=("* * * *",)), "spec.schedule.cron[0]: Invalid value: .* must have five fields"),
        (Schedule(cron=("* * * * * *",)), "must have five fields"),
        (Schedule(cron=("",)), "must have five fields"),
        (Schedule(cron=("@reboot",)), "or be one of @hourly"),
        (Schedule(cron=("0 0 32 2 *",)), "bad day-of-month"),
        (Schedule(cron=("0," * 200 + "0 * * * *",)), "at most 256 characters"),
        (Schedule(cron=("* * * * *",) * 17), "spec.schedule.cron: .* at most 16"),
        (Schedule(period=Duration("0s")), 'spec.schedule.period: Invalid value: "0s": must be longer than nothing'),
        (Schedule(period=Duration("-1h")), "spec.schedule.period"),
        (Schedule(zone="Europe/Atlantis"), 'spec.schedule.zone: Invalid value: "Europe/Atlantis": must be a name'),
        (Schedule(zone="../../etc/passwd"), "spec.schedule.zone"),
        (Schedule(zone="Europe"), "spec.schedule.zone"),
        (Schedule(zone="localtime"), "spec.schedule.zone"),
        (Schedule(zone=""), "spec.schedule.zone"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(schedule: Schedule, message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message.replace("[", r"\[").replace("* *", r"\* \*")):
        schedule.next(NOON)


def test_all_problems_come_at_once_under_the_path_of_the_schedule() -> None:
    problems = Schedule(cron=("x",), period=Duration("0s"), zone="x").problems("spec.sync")
    assert [problem.path for problem in problems] == ["spec.sync.cron[0]", "spec.sync.period", "spec.sync.zone"]


@given(st.text("0123456789*/,-#LWMONSU @", max_size=40), st.sampled_from(["UTC", BERLIN]))
def test_any_text_is_a_schedule_or_is_refused(line: str, zone: str) -> None:
    try:
        found = Schedule(cron=(line,), zone=zone).next(NOON, NOON)
    except InvalidSchedule:
        return
    assert found is None or found > NOON


class Part(NamedTuple):
    """A field of cron, as text and as what it means."""

    text: str
    values: frozenset[int]


def part(low: int, high: int) -> st.SearchStrategy[Part]:
    every = frozenset(range(low, high + 1))
    value = st.integers(low, high)
    return st.one_of(
        st.just(Part("*", every)),
        st.integers(2, 20).map(lambda n: Part(f"*/{n}", frozenset(range(low, high + 1, n)))),
        st.frozensets(value, min_size=1, max_size=4).map(lambda s: Part(",".join(map(str, sorted(s))), s)),
        st.tuples(value, value)
        .map(sorted)
        .map(lambda pair: Part(f"{pair[0]}-{pair[1]}", frozenset(range(pair[0], pair[1] + 1)))),
    )


class Cron(NamedTuple):
    minute: Part
    hour: Part
    day: Part
    month: Part
    weekday: Part

    @property
    def follows_real_time(self) -> bool:
        return self.minute.text.startswith("*") or self.hour.text.startswith("*")

    @property
    def line(self) -> str:
        return " ".join(each.text for each in self)

    def on(self, day: datetime) -> bool:
        of_month, of_week = day.day in self.day.values, day.isoweekday() % 7 in self.weekday.values
        both = self.day.text.startswith("*") or self.weekday.text.startswith("*")
        return day.month in self.month.values and (of_month and of_week if both else of_month or of_week)

    def matches(self, time: datetime) -> bool:
        return time.minute in self.minute.values and time.hour in self.hour.values and self.on(time)


CRONS = st.builds(Cron, part(0, 59), part(0, 23), part(1, 31), part(1, 12), part(0, 6))
HORIZON = 3  # days
AT_MIDNIGHT = ("America/Sao_Paulo", "Asia/Beirut", "America/Havana")
TURNS = [
    (BERLIN, "2026-03-29T01:00Z"), (BERLIN, "2026-10-25T01:00Z"),
    (NEW_YORK, "2026-03-08T07:00Z"), (NEW_YORK, "2026-11-01T06:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00Z"), ("Asia/Beirut", "2026-03-28T22:00Z"),
    ("America/Havana", "2026-03-08T05:00Z"), ("UTC", "2026-02-28T22:00Z"),
]  # fmt: skip


def reckoned(cron: Cron, zone: str, after: datetime) -> datetime | None:
    """The first time within the horizon, by looking at all of them."""
    place = ZoneInfo(zone)
    start = after.replace(second=0, microsecond=0)
    real = [start + timedelta(minutes=n) for n in range(1, HORIZON * 1440)]
    if cron.follows_real_time or zone == "UTC":
        times = [time for time in real if cron.matches(time.astimezone(place))]
    else:
        midnight = after.astimezone(place).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        shown = [midnight + timedelta(minutes=n) for n in range(-1440, (HORIZON + 2) * 1440)]
        times = [first_real(time, place) for time in shown if cron.matches(time)]
    return min((time for time in times if after < time <= real[-1]), default=None)


def first_real(shown: datetime, place: ZoneInfo) -> datetime:
    while True:
        time = shown.replace(tzinfo=place).astimezone(UTC)
        if time.astimezone(place).replace(tzinfo=None) == shown:
            return time
        shown += timedelta(minutes=1)


@settings(max_examples=60)
@given(CRONS, st.sampled_from(TURNS), st.integers(-36 * 3600, 12 * 3600))
def test_cron_agrees_with_a_look_at_every_minute(cron: Cron, turn: tuple[str, str], seconds: int) -> None:
    zone, moment = turn
    assume(zone not in AT_MIDNIGHT or not cron.follows_real_time)  # those may run at the end of the gap too
    after = at(moment) + timedelta(seconds=seconds)
    found = Schedule(cron=(cron.line,), zone=zone).next(after, after)
    expected = reckoned(cron, zone, after)
    if expected is None:
        assert found is None or found >= after + timedelta(days=HORIZON) - timedelta(minutes=2)
    else:
        assert found == expected


SCHEDULES = st.builds(
    Schedule,
    cron=st.lists(CRONS.map(lambda cron: cron.line), max_size=2).map(tuple),
    period=st.one_of(st.just(UNSET), st.integers(1, 100_000).map(Duration.of)),
    zone=st.sampled_from(["UTC", BERLIN, NEW_YORK]),
)
MOMENTS = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)).map(lambda time: time.replace(tzinfo=UTC))


@given(SCHEDULES, MOMENTS, MOMENTS)
def test_a_run_now_is_followed_by_a_later_one(schedule: Schedule, now: datetime, last: datetime) -> None:
    found = schedule.next(now, last)
    assert found is None or found >= now
    if found is not None and found > now:
        assert not schedule.due(now, last)
        assert schedule.due(found, last)
        assert schedule.next(now, last) == schedule.next(found, last)
    assert not schedule.due(now, now)


class Scheduled(Resource, group="testing", version="v1", plural="scheduleds"):
    schedule: Schedule | UnsetType = UNSET


def test_a_schedule_is_a_field_of_kinds() -> None:
    schema = structural(Scheduled)["properties"]["schedule"]["properties"]
    assert schema["cron"]["maxItems"] == 16
    assert schema["period"]["type"] == "string"
    assert schema["zone"]["default"] == "UTC"
    given = {"cron": ["@daily"], "period": "5m", "zone": BERLIN}
    assert to_document(convert({"schedule": given}, Scheduled))["schedule"] == given
    with pytest.raises(msgspec.ValidationError):
        convert({"schedule": {"period": "soon"}}, Scheduled)
