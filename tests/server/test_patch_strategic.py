from __future__ import annotations

import copy
from typing import Any

import pytest

from trimtab.model.errors import StatusError
from trimtab.server.patch import strategic

DEFINITIONS: dict[str, Any] = {
    "io.test.Thing": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "deep": {"type": "object", "additionalProperties": {"$ref": "#/definitions/io.test.Item"}},
            "plain": {"type": "array", "items": {"type": "string"}},
            "words": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
            "items": {
                "type": "array",
                "items": {"$ref": "#/definitions/io.test.Item"},
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-patch-strategy": "merge",
            },
            "volumes": {
                "type": "array",
                "items": {"$ref": "#/definitions/io.test.Item"},
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-patch-strategy": "merge,retainKeys",
            },
            "keyless": {
                "type": "array",
                "items": {"$ref": "#/definitions/io.test.Item"},
                "x-kubernetes-patch-strategy": "merge",
            },
            "whole": {"$ref": "#/definitions/io.test.Thing", "x-kubernetes-patch-strategy": "replace"},
            "inner": {"allOf": [{"$ref": "#/definitions/io.test.Thing"}]},
        },
    },
    "io.test.Item": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "value": {"type": "integer"},
            "inner": {"$ref": "#/definitions/io.test.Thing"},
        },
    },
}
SCHEMA = {"$ref": "#/definitions/io.test.Thing"}


def item(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


ABC = [item("a", value=1), item("b", value=2), item("c", value=3)]

CASES: list[tuple[str, Any, Any, Any]] = [
    ("a scalar is replaced", {"name": "a"}, {"name": "b"}, {"name": "b"}),
    ("null removes", {"name": "a", "plain": []}, {"name": None}, {"plain": []}),
    ("null of an absent field is nothing", {}, {"name": None, "inner": {"name": None}}, {"inner": {}}),
    ("objects merge", {"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}),
    ("a list without a strategy is replaced", {"plain": ["a"]}, {"plain": ["b"]}, {"plain": ["b"]}),
    ("a list of primitives unites", {"words": ["a", "b"]}, {"words": ["c", "a"]}, {"words": ["c", "a", "b"]}),
    (
        "primitives are deleted by their parallel list",
        {"words": ["a", "b", "c"]},
        {"$deleteFromPrimitiveList/words": ["b", "x"]},
        {"words": ["a", "c"]},
    ),
    ("deleting from an absent list is nothing", {}, {"$deleteFromPrimitiveList/words": ["b"]}, {}),
    (
        "elements merge by key, new ones before live ones",
        {"items": ABC},
        {"items": [item("b", value=9), item("d", value=4)]},
        {"items": [item("a", value=1), item("b", value=9), item("d", value=4), item("c", value=3)]},
    ),
    (
        "elements merge by key in nested objects",
        {"inner": {"items": [item("a", inner={"words": ["x"]})]}},
        {"inner": {"items": [item("a", inner={"words": ["y"]})]}},
        {"inner": {"items": [item("a", inner={"words": ["y", "x"]})]}},
    ),
    (
        "an element is deleted by directive",
        {"items": ABC},
        {"items": [{"$patch": "delete", "name": "b"}]},
        {"items": [ABC[0], ABC[2]]},
    ),
    (
        "a merged list is replaced by directive",
        {"items": ABC},
        {"items": [item("z"), {"$patch": "replace"}]},
        {"items": [item("z")]},
    ),
    ("an object is replaced by directive", {"inner": {"name": "a"}}, {"inner": {"$patch": "replace"}}, {"inner": {}}),
    ("an object is emptied by directive", {"inner": {"name": "a"}}, {"inner": {"$patch": "delete"}}, {"inner": {}}),
    ("the document is emptied by directive", {"name": "a"}, {"$patch": "delete"}, {}),
    ("a directive in a new object drops it", {}, {"inner": {"$patch": "delete"}, "name": "a"}, {"name": "a"}),
    (
        "directives among new elements are dropped",
        {},
        {"items": [item("a"), {"$patch": "delete", "name": "b"}]},
        {"items": [item("a")]},
    ),
    ("a replaced object is not merged", {"whole": {"name": "a"}}, {"whole": {"plain": []}}, {"whole": {"plain": []}}),
    ("a change of type replaces", {"plain": ["a"]}, {"plain": "a"}, {"plain": "a"}),
    (
        "retainKeys drops what it does not name",
        {"volumes": [item("a", value=1)]},
        {"volumes": [{"$retainKeys": ["name", "inner"], "name": "a", "inner": {}}]},
        {"volumes": [item("a", inner={})]},
    ),
    (
        "setElementOrder sorts elements",
        {"items": ABC},
        {"$setElementOrder/items": [{"name": "c"}, {"name": "a"}], "items": [item("a", value=7)]},
        {"items": [item("b", value=2), item("c", value=3), item("a", value=7)]},
    ),
    (
        "setElementOrder alone sorts",
        {"words": ["a", "b", "c"]},
        {"$setElementOrder/words": ["c", "b"]},
        {"words": ["a", "c", "b"]},
    ),
    (
        "setElementOrder goes with deletions",
        {"items": ABC},
        {"$setElementOrder/items": [{"name": "c"}], "items": [{"$patch": "delete", "name": "a"}]},
        {"items": [ABC[1], ABC[2]]},
    ),
    ("setElementOrder of absent lists is nothing", {}, {"$setElementOrder/items": [{"name": "c"}]}, {}),
]


@pytest.mark.parametrize(("document", "patch", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_strategic_merge_patch_changes_what_it_means(document: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy((document, patch))
    assert strategic.apply(document, patch, SCHEMA, DEFINITIONS) == expected
    assert (document, patch) == before


FAILURES: list[tuple[str, Any, Any, int, str]] = [
    (
        "an element without its merge key",
        {"items": ABC},
        {"items": [{"value": 1}]},
        500,
        "map: map[value:1] does not contain declared merge key: name",
    ),
    (
        "an unknown directive",
        {"inner": {}},
        {"inner": {"$patch": "frob"}},
        500,
        "unknown patch type: frob in map: map[$patch:frob]",
    ),
    (
        "a list asked to merge",
        {"items": ABC},
        {"items": [{"$patch": "merge"}]},
        500,
        "merging lists cannot yet be specified in the patch",
    ),
    ("retainKeys that is no list", {}, {"$retainKeys": "a"}, 400, "invalid patch format of retainKeys"),
    (
        "retainKeys without a field of the patch",
        {},
        {"$retainKeys": ["a"], "name": "b"},
        400,
        "invalid patch format of retainKeys",
    ),
    (
        "a deletion list without a name",
        {},
        {"$deleteFromPrimitiveList": []},
        400,
        "invalid patch format of primitive list",
    ),
    ("an order without a name", {}, {"$setElementOrder": []}, 400, "invalid patch format of setElementOrder list"),
    (
        "an order that the list breaks",
        {"words": ["a"]},
        {"$setElementOrder/words": ["a", "b"], "words": ["b", "a"]},
        500,
        "The order in patch list:\n[b a]\n doesn't match $setElementOrder list:\n[a b]\n",
    ),
    (
        "elements of two types",
        {"words": ["a"]},
        {"words": [1]},
        500,
        "list element types are not identical: [[a] [1]]",
    ),
    (
        "lists of lists",
        {"words": [["a"]]},
        {"words": [["b"]]},
        422,
        "the server rejected our request due to an error in our request",
    ),
    (
        "a merge below a map",
        {"deep": {"a": {"value": 1}}},
        {"deep": {"a": {"value": 2}}},
        500,
        "merging an object in json but data type is not struct, instead is: map",
    ),
    (
        "a field that the type has not",
        {"odd": {}},
        {"odd": {}},
        500,
        'unable to find api field in struct Thing for the json field "odd"',
    ),
    (
        "a merge without a key",
        {"keyless": [{}]},
        {"keyless": [{}]},
        500,
        "cannot merge lists without merge key for struct",
    ),
    (
        "a patch that is no object",
        {},
        [],
        400,
        "json: cannot unmarshal array into Go value of type map[string]interface {}",
    ),
]


@pytest.mark.parametrize(
    ("document", "patch", "code", "message"), [c[1:] for c in FAILURES], ids=[c[0] for c in FAILURES]
)
def test_a_patch_that_makes_no_sense_fails_with_the_message_of_the_api(
    document: Any, patch: Any, code: int, message: str
) -> None:
    with pytest.raises(StatusError) as failure:
        strategic.apply(document, patch, SCHEMA, DEFINITIONS)
    assert (failure.value.code, failure.value.message) == (code, message)


def test_documents_of_endless_depth_are_a_bad_request() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"inner": deep}
    with pytest.raises(StatusError) as failure:
        strategic.apply({"inner": deep}, {"inner": deep}, SCHEMA, DEFINITIONS)
    assert failure.value.code == 400
