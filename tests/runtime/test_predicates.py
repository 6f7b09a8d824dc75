"""Which changes count."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.client.entries import Entry, entry
from trimtab.client.protocol import Query
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime.cache import Cache
from trimtab.runtime.changes import Change
from trimtab.runtime.predicates import (
    Predicate,
    annotations_changed,
    any_change,
    generation_changed,
    labels_changed,
)

CACHE = Cache(None, ConfigMap, "v1", "ConfigMap", Query())  # type: ignore[arg-type]
never = Predicate(lambda change: False)


def state(**metadata: Any) -> Entry:
    return entry(json.dumps({"metadata": {"name": "a", "resourceVersion": "1", **metadata}}).encode())


def change(before: Entry | None, after: Entry | None) -> Change:
    return Change(CACHE, before, after)


@pytest.mark.parametrize(
    ("predicate", "before", "after", "counts"),
    [
        (any_change, {}, {}, True),
        (never, {}, {}, False),
        (generation_changed, {"generation": 1}, {"generation": 2}, True),
        (generation_changed, {"generation": 1}, {"generation": 1, "labels": {"a": "b"}}, False),
        (generation_changed, {"generation": 1}, {"generation": 1, "deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
        (labels_changed, {"labels": {"a": "b"}}, {"labels": {"a": "c"}}, True),
        (labels_changed, {"labels": {}}, {"generation": 2}, False),
        (labels_changed, {"labels": None}, {"labels": {"a": "b"}}, True),
        (annotations_changed, {}, {"annotations": {"a": "b"}}, True),
        (annotations_changed, {}, {"labels": {"a": "b"}}, False),
        (generation_changed | labels_changed, {"generation": 1}, {"generation": 1, "labels": {"a": "b"}}, True),
        (generation_changed & labels_changed, {"generation": 1}, {"generation": 1, "labels": {"a": "b"}}, False),
        (~labels_changed, {}, {"labels": {"a": "b"}}, False),
        (~labels_changed, {}, {"generation": 2}, True),
    ],
)
def test_a_predicate_judges_what_changed(predicate: Predicate, before: Any, after: Any, counts: bool) -> None:
    assert predicate(change(state(**before), state(**after))) is counts


@pytest.mark.parametrize(
    "predicate", [any_change, never, generation_changed, ~generation_changed, labels_changed & never, ~any_change]
)
def test_an_object_that_comes_or_goes_always_counts(predicate: Predicate) -> None:
    assert predicate(change(None, state()))
    assert predicate(change(state(), None))


def test_a_predicate_of_ones_own_sees_both_objects() -> None:
    @Predicate
    def data_changed(change: Change) -> bool:
        return bool(change.old.data != change.new.data)

    empty = entry(b'{"metadata":{"name":"a","resourceVersion":"1"}}')
    filled = entry(b'{"metadata":{"name":"a","resourceVersion":"2"},"data":{"x":"y"}}')
    assert data_changed(change(empty, filled))
    assert not data_changed(change(filled, filled))


heads = st.fixed_dictionaries({"generation": st.integers(1, 2), "labels": st.none() | st.just({"a": "b"})})
predicates = st.sampled_from([generation_changed, labels_changed, annotations_changed, any_change, never])


@given(heads, heads, predicates, predicates)
def test_combinations_are_those_of_logic(before: Any, after: Any, one: Predicate, other: Predicate) -> None:
    seen = change(state(**before), state(**after))
    assert (one | other)(seen) == (one(seen) or other(seen))
    assert (one & other)(seen) == (one(seen) and other(seen))
    assert (~(one | other))(seen) == (~one & ~other)(seen)
    assert (~~one)(seen) == one(seen)
