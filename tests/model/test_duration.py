"""Durations are those of Go."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.duration import Duration, Period


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1m", 60),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("1.5s", 1.5),
        ("0", 0),
        ("-2s", -2),
        ("10us", 1e-05),
        ("1µs", 1e-06),
        (".5s", 0.5),
    ],
)
def test_a_duration_tells_its_seconds(text: str, seconds: float) -> None:
    assert Duration(text).seconds == seconds


@pytest.mark.parametrize("text", ["", "1", "m", "1d", "1 m", "--1s", "1s ", "9" * 30 + "h", "1" * 100 + "s", "."])
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        Duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (90, "1m30s"), (3600, "1h0m0s"), (0.0015, "1.5ms"), (0.000002, "2µs"), (1.25, "1.25s"), (-5, "-5s")],
)
def test_a_duration_of_seconds_is_written_as_go_writes_it(seconds: float, text: str) -> None:
    assert Duration.of(seconds) == text


@settings(max_examples=60)
@given(st.integers(0, 10**7))
def test_a_written_duration_reads_back(milliseconds: int) -> None:
    assert Duration.of(milliseconds / 1000).seconds == milliseconds / 1000


@pytest.mark.parametrize(("text", "seconds"), [("1d", 86400), ("2w", 1209600), ("1d12h", 129600), ("90s", 90)])
def test_a_period_knows_days_and_weeks_too(text: str, seconds: float) -> None:
    assert Period(text).seconds == seconds


@pytest.mark.parametrize("text", ["", "1", "1y", "d", "1 d"])
def test_what_is_not_a_period_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="period"):
        Period(text)


def test_the_schema_of_a_period_takes_what_it_reads() -> None:
    pattern = Period.schema()["pattern"]
    assert [bool(re.match(pattern, text)) for text in ("1d12h", "1y")] == [True, False]
    assert not re.match(Duration.schema()["pattern"], "1d")
