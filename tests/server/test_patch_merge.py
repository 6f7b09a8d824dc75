from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.errors import StatusError
from trimtab.server.patch import merge

# The examples of RFC 7386, appendix A, whose documents are objects; then the library's own ways.
CASES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({"a": "foo"}, {"b": {"c": None}}, {"a": "foo", "b": {}}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({}, {"a": [{"b": None, "c": 1}, None]}, {"a": [{"c": 1}, None]}),
    ({"a": {"x": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
]


@pytest.mark.parametrize(("document", "patch", "expected"), CASES)
def test_a_merge_patch_changes_what_it_names(document: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy((document, patch))
    assert merge.apply(document, patch) == expected
    assert (document, patch) == before


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ([], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("x", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (None, "Invalid JSON Patch"),
    ],
)
def test_a_patch_that_is_no_object_is_a_bad_request(patch: Any, message: str) -> None:
    with pytest.raises(StatusError) as failure:
        merge.apply({}, patch)
    assert (failure.value.code, failure.value.message) == (400, message)


def test_documents_of_endless_depth_are_a_bad_request() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(StatusError) as failure:
        merge.apply({"a": deep}, {"a": deep})
    assert failure.value.code == 400


SCALARS = st.booleans() | st.integers(-2, 2) | st.floats(-1, 1) | st.text("ab", max_size=2)
KEYS = st.text("abc", min_size=1, max_size=2)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)


@settings(max_examples=200)
@given(DOCUMENTS, DOCUMENTS)
def test_the_difference_of_two_documents_makes_one_of_the_other(old: Any, new: Any) -> None:
    assert repr(sorted_keys(merge.apply(old, merge.diff(old, new)))) == repr(sorted_keys(new))


@settings(max_examples=100)
@given(DOCUMENTS, DOCUMENTS)
def test_a_merge_patch_applied_twice_changes_nothing_more(document: Any, patch: Any) -> None:
    once = merge.apply(document, patch)
    assert merge.apply(once, patch) == once


def sorted_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [sorted_keys(item) for item in value]
    return value
