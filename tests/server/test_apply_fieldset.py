from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.server.apply.fieldset import (
    FieldSet,
    difference,
    has,
    intersection,
    ordered,
    parse,
    paths,
    recursive_difference,
    shown,
    union,
)

ELEMENTS = st.sampled_from(
    ["f:a", "f:b", "f:c.d", 'k:{"name":"x"}', 'k:{"a":1,"b":"y"}', 'v:"x"', "v:1", "v:true", "i:0", "i:10", "i:9"]
)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SETS = st.lists(PATHS, max_size=8)


def of(members: list[tuple[str, ...]]) -> FieldSet:
    """A set from its members, made the plain way."""
    tree: dict[str, Any] = {}
    for path in members:
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return parse(tree)


@settings(max_examples=200)
@given(SETS)
def test_a_set_has_the_members_it_was_made_of(members: list[tuple[str, ...]]) -> None:
    fields = of(members)
    assert set(paths(fields)) == set(members)
    assert all(has(fields, path) for path in members)


@settings(max_examples=200)
@given(SETS)
def test_a_set_survives_being_written_and_read(members: list[tuple[str, ...]]) -> None:
    fields = of(members)
    again = parse(json.loads(json.dumps(fields)))
    assert json.dumps(again) == json.dumps(fields)


@settings(max_examples=300)
@given(SETS, SETS)
def test_the_operations_are_those_of_sets_of_members(left: list[tuple[str, ...]], right: list[tuple[str, ...]]) -> None:
    a, b = of(left), of(right)
    assert set(paths(union(a, b))) == set(left) | set(right)
    assert set(paths(intersection(a, b))) == set(left) & set(right)
    assert set(paths(difference(a, b))) == set(left) - set(right)


@settings(max_examples=200)
@given(SETS, SETS)
def test_a_recursive_difference_takes_what_is_below_too(
    left: list[tuple[str, ...]], right: list[tuple[str, ...]]
) -> None:
    gone = set(right)
    rest = {path for path in left if not any(path[: n + 1] in gone for n in range(len(path)))}
    assert set(paths(recursive_difference(of(left), of(right)))) == rest


@settings(max_examples=200)
@given(SETS, SETS)
def test_results_are_in_canonical_form(left: list[tuple[str, ...]], right: list[tuple[str, ...]]) -> None:
    a, b = of(left), of(right)
    for result in (union(a, b), difference(a, b), intersection(a, b), recursive_difference(a, b)):
        assert json.dumps(result) == json.dumps(parse(result))


@settings(max_examples=100)
@given(SETS, SETS)
def test_operands_stay_as_they_were(left: list[tuple[str, ...]], right: list[tuple[str, ...]]) -> None:
    a, b = of(left), of(right)
    before = json.dumps([a, b])
    for operation in (union, difference, intersection, recursive_difference):
        operation(a, b)
    assert json.dumps([a, b]) == before


@settings(max_examples=100)
@given(SETS)
def test_an_operation_that_changes_nothing_returns_its_operand(members: list[tuple[str, ...]]) -> None:
    fields = of(members)
    for same in (union(fields, fields), union(fields, {}), difference(fields, {}), recursive_difference(fields, {})):
        assert same is fields


def test_a_level_is_ordered_by_kind_and_then_by_value() -> None:
    elements = ["i:10", "i:9", 'v:"a"', "v:2", "v:10", 'k:{"name":"b"}', 'k:{"name":"a"}', "f:b", "f:a", "."]
    expected = [".", "f:a", "f:b", 'k:{"name":"a"}', 'k:{"name":"b"}', "v:2", "v:10", 'v:"a"', "i:9", "i:10"]
    assert list(ordered({element: {} for element in elements})) == expected


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        (("f:containers", 'k:{"name":"a"}', "f:image"), '.containers[name="a"].image'),
        (("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'), '.ports[containerPort=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"x/y"'), '.finalizers[="x/y"]'),
        (("f:list", "i:3"), ".list[3]"),
    ],
)
def test_paths_are_shown_as_messages_print_them(path: tuple[str, ...], text: str) -> None:
    assert shown(path) == text


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({"f:b": {}, "f:a": {}}, {"f:a": {}, "f:b": {}}),
        ({'k:{ "b": 1, "a": "x" }': {}}, {'k:{"a":"x","b":1}': {}}),
        ({"q:future": {}, "f:a": {}}, {"f:a": {}}),
        ({".": {}}, {}),
    ],
)
def test_foreign_sets_are_read_into_canonical_form(document: Any, fields: FieldSet) -> None:
    assert json.dumps(parse(document)) == json.dumps(fields)


@pytest.mark.parametrize("document", [[], {"f": {}}, {"fa": {}}, {"f:a": 1}, {"k:[]": {}}, {"v:{": {}}, {"i:x": {}}])
def test_what_is_not_a_set_is_refused(document: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are for nobody
        parse(document)


def test_a_set_of_endless_depth_is_refused() -> None:
    document: dict[str, Any] = {}
    for _ in range(500):
        document = {"f:a": document}
    with pytest.raises(ValueError, match="objects in objects"):
        parse(document)
