"""Between the text of a status and what is compared: a table."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.systems.rest.reconciling import memory
from trimtab.systems.rest.state import Sync


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("", None),
        ('{"size":1}', {"size": 1}),
        ('{"size":null}', {"size": None}),
        ("{}", {}),
        ("{", None),
        ("[1]", None),
        ('"text"', None),
    ],
)
def test_what_was_applied_is_a_body_or_was_lost(said: str, meant: object) -> None:
    assert memory.applied(Sync(last_applied=said)) == meant


def test_what_is_in_flight_is_not_what_was_applied() -> None:
    sync = Sync(last_applied='{"size":1}', applying='{"size":2}')
    assert memory.in_flight(sync) == {"size": 2}
    assert memory.applied(sync) == {"size": 1}


def test_nothing_is_in_flight_when_nothing_is_announced() -> None:
    assert memory.in_flight(Sync(last_applied='{"size":1}')) is None


@pytest.mark.parametrize("value", [1, None, "sha256:", "", "text", {"a": [1, None]}, [], False], ids=repr)
def test_a_difference_that_is_remembered_is_known_again(value: Any) -> None:
    sync = memory.remembered(Sync(), {}, {"size": {"value": value}})
    assert memory.known(sync) == {"size": {"value": value}}


def test_an_answer_without_the_field_is_known_again() -> None:
    sync = memory.remembered(Sync(), {}, {"size": {"missing": True}})
    assert memory.known(sync) == {"size": {"missing": True}}


def test_a_difference_that_is_none_of_ours_is_forgotten() -> None:
    assert memory.known(Sync(known_differences={"size": "not JSON", "note": "1"})) == {"note": {"value": 1}}


def test_the_same_body_is_the_same_text_whatever_its_order() -> None:
    one, other = {"b": 1, "a": {"d": 2, "c": 3}}, {"a": {"c": 3, "d": 2}, "b": 1}
    assert memory.text(one) == memory.text(other)


def test_what_is_remembered_changes_nothing_else() -> None:
    before = Sync(created=True, etag='"1"', applying="{}", removals={"note": 1})
    after = memory.remembered(before, {"size": 1}, {})
    assert after == Sync(created=True, etag='"1"', applying="{}", removals={"note": 1}, last_applied='{"size":1}')


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"a": None, "b": 0}, {"b": 0}),
        ({"a": {"b": None}}, {"a": {}}),
        ([{"a": None}, None, ""], [{}, None, ""]),
        (None, None),
    ],
    ids=repr,
)
def test_a_body_that_is_shown_has_no_fields_that_are_null(value: Any, kept: Any) -> None:
    assert memory.without_nulls(value) == kept
