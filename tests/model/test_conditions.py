"""Conditions change when something changed, and remember since when."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import UNSET

from trimtab.model.conditions import get_condition, is_false, is_true, set_condition, without_condition

MORNING = datetime(2026, 1, 1, 8, tzinfo=UTC)
EVENING = datetime(2026, 1, 1, 20, tzinfo=UTC)


def test_a_new_condition_is_added_with_the_time() -> None:
    (ready,) = set_condition(UNSET, "Ready", True, "AllGood", "all is well", now=MORNING, observed_generation=3)
    assert (ready.type, ready.status, ready.reason, ready.message) == ("Ready", "True", "AllGood", "all is well")
    assert (ready.last_transition_time, ready.observed_generation) == ("2026-01-01T08:00:00Z", 3)


def test_the_transition_time_stays_while_the_status_does() -> None:
    before = set_condition((), "Ready", True, "AllGood", now=MORNING, observed_generation=1)
    (after,) = set_condition(before, "Ready", "True", "StillGood", now=EVENING, observed_generation=2)
    assert (after.last_transition_time, after.reason, after.observed_generation) == (
        "2026-01-01T08:00:00Z",
        "StillGood",
        2,
    )


def test_the_transition_time_moves_with_the_status() -> None:
    before = set_condition((), "Ready", True, "AllGood", now=MORNING)
    (after,) = set_condition(before, "Ready", False, "Broken", now=EVENING)
    assert after.last_transition_time == "2026-01-01T20:00:00Z"


def test_setting_what_is_so_gives_back_the_same_tuple() -> None:
    before = set_condition((), "Ready", True, "AllGood", now=MORNING)
    assert set_condition(before, "Ready", True, "AllGood", now=EVENING) is before


def test_other_conditions_keep_their_place() -> None:
    conditions = set_condition((), "A", True, "X", now=MORNING)
    conditions = set_condition(conditions, "B", True, "X", now=MORNING)
    conditions = set_condition(conditions, "A", "Unknown", "Y", now=EVENING)
    assert [(c.type, c.status) for c in conditions] == [("A", "Unknown"), ("B", "True")]
    assert [c.type for c in without_condition(conditions, "A")] == ["B"]
    assert without_condition(conditions, "C") is conditions


def test_a_condition_that_is_not_there_is_neither_true_nor_false() -> None:
    conditions = set_condition((), "A", True, "X", now=MORNING)
    assert is_true(conditions, "A")
    assert not is_false(conditions, "A")
    assert not is_true(conditions, "B")
    assert not is_false(UNSET, "B")
    assert get_condition(UNSET, "A") is None
