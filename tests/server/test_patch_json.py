from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.model.errors import StatusError
from trimtab.server.patch import json_patch

APPLICABLE: list[tuple[str, Any, list[dict[str, Any]], Any]] = [
    ("add sets a member", {"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    ("add replaces a member", {"a": 1}, [{"op": "add", "path": "/a", "value": 2}], {"a": 2}),
    ("add inserts into a list", {"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    ("add appends at a dash", {"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    ("add at -1 appends", {"a": [1, 2]}, [{"op": "add", "path": "/a/-1", "value": 3}], {"a": [1, 2, 3]}),
    ("add without a value adds null", {}, [{"op": "add", "path": "/a"}], {"a": None}),
    ("remove deletes a member", {"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
    ("remove deletes an element", {"a": [1, 2, 3]}, [{"op": "remove", "path": "/a/1"}], {"a": [1, 3]}),
    ("remove counts from the end", {"a": [1, 2, 3]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1, 2]}),
    ("replace of an absent member adds it", {}, [{"op": "replace", "path": "/a", "value": 1}], {"a": 1}),
    ("replace changes an element", {"a": [1, 2]}, [{"op": "replace", "path": "/a/0", "value": 9}], {"a": [9, 2]}),
    ("replace takes a whole document", {"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}),
    ("replace of the document by a scalar is ignored", {"a": 1}, [{"op": "replace", "path": "", "value": 1}], {"a": 1}),
    ("move renames", {"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
    ("move reorders", {"a": [1, 2, 3]}, [{"op": "move", "from": "/a/0", "path": "/a/2"}], {"a": [2, 3, 1]}),
    ("copy duplicates", {"a": {"x": 1}}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": {"x": 1}, "b": {"x": 1}}),
    ("copy of an absent member copies null", {}, [{"op": "copy", "from": "/a", "path": "/b"}], {"b": None}),
    ("test passes on equality", {"a": [1, {"b": "c"}]}, [{"op": "test", "path": "/a", "value": [1, {"b": "c"}]}], ...),
    ("test of an absent member passes for null", {}, [{"op": "test", "path": "/a", "value": None}], {}),
    (
        "keys are unescaped",
        {"a/b": 1, "~": 2},
        [{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/~0"}],
        {},
    ),
    ("what precedes the first slash is ignored", {"b": 1}, [{"op": "remove", "path": "a/b"}], {}),
]

INAPPLICABLE: list[tuple[str, Any, dict[str, Any]]] = [
    ("a failed test", {"a": 1}, {"op": "test", "path": "/a", "value": 2}),
    ("a test that mistakes true for 1", {"a": True}, {"op": "test", "path": "/a", "value": 1}),
    ("a test that mistakes 1.0 for 1", {"a": 1}, {"op": "test", "path": "/a", "value": 1.0}),
    ("remove of an absent member", {}, {"op": "remove", "path": "/a"}),
    ("remove below an absent member", {}, {"op": "remove", "path": "/a/b"}),
    ("remove beyond a list", {"a": [1]}, {"op": "remove", "path": "/a/1"}),
    ("remove before a list", {"a": [1]}, {"op": "remove", "path": "/a/-2"}),
    ("add beyond a list", {"a": [1]}, {"op": "add", "path": "/a/2", "value": 0}),
    ("add into a scalar", {"a": 1}, {"op": "add", "path": "/a/b", "value": 0}),
    ("add of the whole document", {}, {"op": "add", "path": "", "value": {}}),
    ("an index that is no number", {"a": [1]}, {"op": "replace", "path": "/a/x", "value": 0}),
    ("an index with an underscore", {"a": [1] * 20}, {"op": "replace", "path": "/a/1_0", "value": 0}),
    ("replace beyond a list", {"a": []}, {"op": "replace", "path": "/a/0", "value": 0}),
    ("move of an absent member", {}, {"op": "move", "from": "/a", "path": "/b"}),
    ("move without from", {"a": 1}, {"op": "move", "path": "/b"}),
    ("an unknown operation", {}, {"op": "frob", "path": "/a"}),
    ("an operation without a path", {}, {"op": "add", "value": 1}),
    ("an operation without a name", {}, {"path": "/a", "value": 1}),
]


@pytest.mark.parametrize(("document", "patch", "expected"), [c[1:] for c in APPLICABLE], ids=[c[0] for c in APPLICABLE])
def test_an_operation_changes_the_document(document: Any, patch: Any, expected: Any) -> None:
    assert json_patch.apply(document, patch) == (document if expected is ... else expected)


@pytest.mark.parametrize(("document", "patch", "_"), [c[1:] for c in APPLICABLE], ids=[c[0] for c in APPLICABLE])
def test_the_given_document_stays_as_it_was(document: Any, patch: Any, _: Any) -> None:
    before = copy.deepcopy((document, patch))
    json_patch.apply(document, patch)
    assert (document, patch) == before


@pytest.mark.parametrize(("document", "operation"), [c[1:] for c in INAPPLICABLE], ids=[c[0] for c in INAPPLICABLE])
def test_what_cannot_be_applied_is_answered_with_422(document: Any, operation: Any) -> None:
    with pytest.raises(StatusError) as failure:
        json_patch.apply(document, [operation])
    assert failure.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({}, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ([1], "cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([{"op": "add", "path": 1}], "cannot unmarshal number into Go struct field jsonPatchOp.path of type string"),
    ],
)
def test_a_malformed_patch_is_answered_with_400(patch: Any, message: str) -> None:
    with pytest.raises(StatusError) as failure:
        json_patch.apply({}, patch)
    assert (failure.value.code, failure.value.message) == (400, f"error decoding patch: json: {message}")


def test_more_than_ten_thousand_operations_are_too_large() -> None:
    with pytest.raises(StatusError) as failure:
        json_patch.apply({}, [{"op": "test", "path": "/a"}] * 10_001)
    assert (failure.value.code, failure.value.reason) == (413, "RequestEntityTooLarge")
    text = "The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert failure.value.message == f"Request entity too large: {text}"


def test_copies_that_grow_without_bound_are_refused() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 64
    with pytest.raises(StatusError) as failure:
        json_patch.apply({"a": ["x" * 1000]}, doubling)
    assert failure.value.code == 422


def test_strict_validation_names_unknown_members_of_operations() -> None:
    patch = [{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/a", "why": "not"}]
    assert json_patch.unknown_fields(patch) == ['json patch unknown field "[1].why"']


def test_documents_of_endless_depth_are_a_bad_request() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(StatusError) as failure:
        json_patch.apply(
            {"a": 1}, [{"op": "add", "path": "/a", "value": deep}, {"op": "test", "path": "/a", "value": deep}]
        )
    assert failure.value.code == 400


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab~/", max_size=3)
KEYS = st.text("ab~/", max_size=3)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))


@settings(max_examples=100)
@given(document=st.dictionaries(KEYS, VALUES), key=KEYS, value=VALUES)
def test_what_was_added_passes_a_test_and_can_be_removed_again(document: Any, key: str, value: Any) -> None:
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    added = json_patch.apply(
        document, [{"op": "add", "path": path, "value": value}, {"op": "test", "path": path, "value": value}]
    )
    assert added == document | {key: value}
    rest = {k: v for k, v in document.items() if k != key}
    assert json_patch.apply(added, [{"op": "remove", "path": path}]) == rest
