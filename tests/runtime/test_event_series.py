"""Which events are worth writing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.kubernetes import ObjectReference
from trimtab.runtime.events.series import COMBINED, Correlator, Said, cut

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def said(note: str = "hello", uid: str = "1", reason: str = "Tested") -> Said:
    return Said(ObjectReference(kind="Pod", name="p", uid=uid), "Normal", reason, "Test", note)


def test_the_same_event_again_is_one_more_of_its_series() -> None:
    correlator = Correlator()
    first, begun = correlator.heard(said(), NOW, 0)
    again, begun_again = correlator.heard(said(), NOW, 359)
    assert (begun, begun_again) == (True, False)
    assert again is first
    assert first is not None
    assert first.count == 2


def test_after_six_minutes_of_quiet_a_series_is_over() -> None:
    correlator = Correlator()
    correlator.heard(said(), NOW, 0)
    correlator.heard(said(), NOW, 300)
    _, begun = correlator.heard(said(), NOW, 661)
    assert begun


@pytest.mark.parametrize("other", [said(uid="2"), said(reason="Other"), said(note="other")])
def test_what_differs_is_another_event(other: Said) -> None:
    correlator = Correlator()
    correlator.heard(said(), NOW, 0)
    _, begun = correlator.heard(other, NOW, 0)
    assert begun


def test_notes_that_differ_in_numbers_are_combined_after_ten() -> None:
    correlator = Correlator(burst=1000)
    heard = [correlator.heard(said(f"took {n}.5 s"), NOW, 0) for n in range(100)]
    begun = [series for series, begun in heard if begun and series is not None]
    assert [series.said.note for series in begun[:10]] == [f"took {n}.5 s" for n in range(10)]
    assert len(begun) == 11
    assert begun[10].said.note == COMBINED + "took 10.5 s"
    assert begun[10].count == 90


def test_after_ten_quiet_minutes_look_alikes_are_told_one_by_one() -> None:
    correlator = Correlator(burst=1000)
    for n in range(20):
        correlator.heard(said(f"took {n} s"), NOW, 0)
    series, _ = correlator.heard(said("took 21 s"), NOW, 601)
    assert series is not None
    assert series.said.note == "took 21 s"


def test_about_one_object_25_events_are_told_at_once_then_one_in_five_minutes() -> None:
    correlator = Correlator()
    letters = [chr(ord("a") + n) for n in range(26)]
    told = [correlator.heard(said(letter), NOW, 0)[0] for letter in letters]
    assert [series is not None for series in told] == [True] * 25 + [False]
    assert correlator.heard(said("z"), NOW, 299)[0] is None
    assert correlator.heard(said("z"), NOW, 300)[0] is not None
    assert correlator.heard(said("y!"), NOW, 301)[0] is None
    assert correlator.heard(said("a", uid="2"), NOW, 301)[0] is not None


def test_a_flood_of_objects_is_forgotten_in_the_end() -> None:
    correlator = Correlator()
    for n in range(10_000):
        correlator.heard(said(uid=str(n)), NOW, 0)
    _, begun = correlator.heard(said(uid="0"), NOW, 0)
    assert begun


@given(st.text(), st.integers(0, 50))
def test_a_cut_text_is_whole_characters_and_fits(text: str, most: int) -> None:
    short = cut(text, most)
    assert len(short.encode()) <= most
    assert text.startswith(short)
    assert len(text.encode()) > most or short == text
