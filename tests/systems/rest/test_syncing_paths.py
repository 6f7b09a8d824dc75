"""Paths name fields in texts, and read and change values."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.systems.rest.syncing.paths import (
    MISSING,
    Item,
    Path,
    PathError,
    Wild,
    covers,
    drop,
    format_path,
    get,
    matches,
    parse,
    put,
)

_SCALARS = st.one_of(st.text(max_size=6), st.integers(), st.booleans())
_STEPS = st.one_of(
    st.text(max_size=6),
    st.integers(0, 99),
    st.lists(st.tuples(st.text(min_size=1, max_size=4), _SCALARS), min_size=1, max_size=2).map(
        lambda keys: Item(tuple(keys))
    ),
    st.sampled_from(Wild),
)
_PATHS = st.lists(_STEPS, max_size=5).map(tuple)
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda below: st.one_of(
        st.lists(below, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "name", ""]), below, max_size=3)
    ),
    max_leaves=8,
)
_PLACES = st.lists(
    st.one_of(
        st.sampled_from(["a", "b", "name", ""]),
        st.integers(0, 3),
        st.sampled_from(["a", "b"]).map(lambda name: Item((("name", name),))),
    ),
    min_size=1,
    max_size=4,
).map(tuple)

_NAMES = st.sampled_from(["a", "b", ""])
_KEYED = st.tuples(_NAMES, st.sampled_from(["a", "b"]).map(lambda name: Item((("name", name),))))
_FIELDS = st.builds(
    lambda above, last: (*(step for steps in above for step in steps), last),
    st.lists(st.one_of(st.tuples(_NAMES), _KEYED), max_size=3),
    _NAMES,
)
"""Fields, some of them in items of lists."""


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ()),
        ("properties.sku.name", ("properties", "sku", "name")),
        ("properties.rules[name=web].port", ("properties", "rules", Item((("name", "web"),)), "port")),
        ("ports[port=80,protocol=TCP]", ("ports", Item((("port", 80), ("protocol", "TCP"))))),
        ('ports[port="80"]', ("ports", Item((("port", "80"),)))),
        ('tags["a.b"]', ("tags", "a.b")),
        ('tags["*"]', ("tags", "*")),
        ("steps[0].x", ("steps", 0, "x")),
        ("rules[].port", ("rules", Wild.ITEM, "port")),
        ("tags.*", ("tags", Wild.FIELD)),
        ('rules[id="/a/b c"]', ("rules", Item((("id", "/a/b c"),)))),
        ("rules[id=/a/b]", ("rules", Item((("id", "/a/b"),)))),
    ],
)
def test_a_path_reads_and_writes_as_it_is_documented(text: str, path: Path) -> None:
    assert parse(text) == path
    assert format_path(path) == text


@given(path=_PATHS)
def test_every_path_survives_being_written_and_read(path: Path) -> None:
    again = parse(format_path(path))
    assert again == path
    assert format_path(again) == format_path(path)


@given(text=st.text(max_size=12))
def test_a_text_is_a_path_or_is_refused_as_none(text: str) -> None:
    try:
        path = parse(text)
    except PathError:
        return
    assert parse(format_path(path)) == path


@pytest.mark.parametrize("text", ["a..b", ".a", "a.", "a[", "a[b", "a[b=", 'a["b', "a]b", "a[0", "a[b]", "a b", "[=1]"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(PathError, match="is no path"):
        parse(text)


@given(value=_VALUES, path=_FIELDS, new=_VALUES)
def test_what_was_put_is_there_and_the_old_value_is_as_it_was(value: Any, path: Path, new: Any) -> None:
    before = copy.deepcopy(value)
    assert get(put(value, path, new), path) == new
    assert value == before


@given(value=_VALUES, path=_PLACES)
def test_what_was_dropped_is_gone_and_dropping_it_again_changes_nothing(value: Any, path: Path) -> None:
    before = copy.deepcopy(value)
    without = drop(value, path)
    assert value == before
    if get(value, path) is MISSING:
        assert without == value
    elif isinstance(path[-1], str):
        assert get(without, path) is MISSING


@given(value=_VALUES, path=_PLACES)
def test_putting_what_is_there_changes_nothing(value: Any, path: Path) -> None:
    there = get(value, path)
    if there is not MISSING:
        assert put(value, path, there) == value


def test_an_item_is_found_by_all_of_its_keys_and_their_types() -> None:
    items = [{"port": True}, {"port": "1"}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}]
    assert get(items, (Item((("port", 1), ("protocol", "TCP"))),)) == items[3]
    assert get(items, (Item((("port", "1"),)),)) == items[1]
    assert get(items, (Item((("port", 2),)),)) is MISSING


def test_a_new_item_gets_its_key() -> None:
    assert put({}, parse("rules[name=web].port"), 80) == {"rules": [{"name": "web", "port": 80}]}


def test_null_is_there() -> None:
    assert get({"a": None}, ("a",)) is None


def test_patterns_name_paths_and_what_is_below_them() -> None:
    assert matches(parse("rules[].port"), parse("rules[name=web].port"))
    assert matches(parse("rules[].port"), parse("rules[3].port"))
    assert matches(parse("tags.*"), parse('tags["a.b"]'))
    assert not matches(parse("tags.*"), parse("tags.a.b"))
    assert covers(parse("tags.*"), parse("tags.a.b"))
    assert covers(parse("rules"), parse("rules[name=web].port"))
    assert not covers(parse("rules[].port"), parse("rules"))
    assert not matches(parse("tags.*"), parse("tags[0]"))
