"""Server-side apply against structured-merge-diff itself: random objects, sets and writes must come out alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.asking import Oracle
from trimtab.model.errors import StatusError
from trimtab.model.schema import Schema
from trimtab.server.apply import apply, update_managed_fields
from trimtab.server.apply.compare import compare
from trimtab.server.apply.fieldset import (
    FieldSet,
    difference,
    intersection,
    ordered,
    parse,
    recursive_difference,
    union,
)
from trimtab.server.apply.merge import merge
from trimtab.server.apply.prune import remove
from trimtab.server.apply.typed import UNDECLARED, fields_of, problems
from trimtab.server.apply.types import OBJECT_META, root_type

pytestmark = pytest.mark.slow

STRING, INTEGER, BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def listed(items: Any, *keys: str, kind: str = "map") -> dict[str, Any]:
    schema = {"type": "array", "items": items, "x-kubernetes-list-type": kind}
    return schema | {"x-kubernetes-list-map-keys": [*keys]} if keys else schema


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SPEC = record(
    size=INTEGER,
    text=STRING,
    flag=BOOLEAN,
    ratio={"type": "number"},
    port={"x-kubernetes-int-or-string": True},
    list={"type": "array", "items": STRING},
    set=listed(STRING, kind="set"),
    numbers=listed(INTEGER, kind="set"),
    map=listed(
        record(name=STRING, value=INTEGER, tags=listed(STRING, kind="set"), inner=listed(record(id=INTEGER), "id")),
        "name",
    ),
    ports=listed(record(port=INTEGER, protocol=STRING | {"default": "TCP"}, name=STRING), "port", "protocol"),
    labels={"type": "object", "additionalProperties": STRING},
    nests={"type": "object", "additionalProperties": record(a=INTEGER, b=listed(STRING, kind="set"))},
    nest=record(a=INTEGER, b=INTEGER, deep=record(c=STRING)),
    whole={"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": STRING},
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    half=record(known=INTEGER) | {"x-kubernetes-preserve-unknown-fields": True},
    any={"x-kubernetes-preserve-unknown-fields": True},
)
SCHEMA = Schema(record(spec=SPEC))
MODELS = {"Thing": record(apiVersion=STRING, kind=STRING, metadata=OBJECT_META, spec=SPEC)}
STRIPPED: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {".": {}, "f:name": {}, "f:uid": {}},
}

NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(0, 2)
FREE = st.recursive(
    NUMBERS | NAMES | st.booleans() | st.none() | st.sampled_from([0.5, 1.0, "TCP"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
SETS_OF_NAMES = st.lists(NAMES, unique=True, max_size=3)


def optional(**fields: Any) -> Any:
    return st.fixed_dictionaries({}, optional=fields)


def keyed(key: str, values: Any, **fields: Any) -> Any:
    items = st.fixed_dictionaries({key: values}, optional=fields)
    return st.lists(items, unique_by=lambda item: item[key], max_size=3)


SPECS = optional(
    size=NUMBERS,
    text=NAMES,
    flag=st.booleans(),
    ratio=st.sampled_from([1, 0.5, 2.0]),
    port=NUMBERS | NAMES,
    list=st.lists(NAMES, max_size=2),
    set=SETS_OF_NAMES,
    numbers=st.lists(NUMBERS, unique=True, max_size=3),
    map=keyed("name", NAMES, value=NUMBERS, tags=SETS_OF_NAMES, inner=keyed("id", NUMBERS)),
    ports=keyed("port", NUMBERS, protocol=st.sampled_from(["TCP", "UDP"]), name=NAMES),
    labels=st.dictionaries(NAMES, NAMES, max_size=2),
    nests=st.dictionaries(NAMES, optional(a=NUMBERS, b=SETS_OF_NAMES), max_size=2),
    nest=optional(a=NUMBERS, b=NUMBERS, deep=optional(c=NAMES)),
    whole=st.dictionaries(NAMES, NAMES, max_size=2),
    free=st.dictionaries(NAMES, FREE, max_size=2),
    half=st.dictionaries(NAMES | st.just("x"), FREE, max_size=2),
    any=FREE,
)


@st.composite
def broken(draw: Any) -> Any:
    """A spec of which one field is something else."""
    spec = draw(SPECS)
    return spec | {draw(st.sampled_from([*SPEC["properties"], "unknown"])): draw(FREE)}


ELEMENTS = st.sampled_from(
    ["f:a", "f:b", "f:c.d", 'k:{"name":"x"}', 'k:{"a":1,"b":"y"}', 'v:"x"', "v:1", "v:1.5", "v:true", "i:0", "i:10"]
)
TREES: Any = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(ELEMENTS | st.just("."), inner, max_size=4).map(
        lambda node: node | {".": {}} if "." in node else node
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    with Oracle("merge", tmp_path_factory.mktemp("oracle"), MODELS) as made:
        yield made


def thing(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "test.dev/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}


@settings(max_examples=600, deadline=None, derandomize=True)
@given(SPECS)
def test_an_object_has_the_same_fields(oracle: Oracle, spec: Any) -> None:
    assert fields_of(root_type(SCHEMA), thing(spec)) == oracle.ask(op="fields", a=thing(spec))


@settings(max_examples=600, deadline=None, derandomize=True)
@given(broken())
def test_the_same_is_wrong_with_an_object(oracle: Oracle, spec: Any) -> None:
    theirs = (oracle.ask(op="check", a=thing(spec)) or {"problems": []})["problems"]
    ours = problems(root_type(SCHEMA), thing(spec))
    if any(
        UNDECLARED in problem for problem in theirs
    ):  # in an order of chance, and the rest of that map is not looked at
        assert {*theirs} <= {*ours}
    else:
        assert sorted(ours) == sorted(theirs)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(SPECS, SPECS)
def test_two_objects_merge_alike(oracle: Oracle, live: Any, config: Any) -> None:
    merged = merge(root_type(SCHEMA), thing(live), thing(config))
    assert exactly(merged) == exactly(oracle.ask(op="merge", a=thing(live), b=thing(config)))


@settings(max_examples=600, deadline=None, derandomize=True)
@given(SPECS, SPECS)
def test_two_objects_differ_in_the_same_fields(oracle: Oracle, old: Any, new: Any) -> None:
    found = compare(root_type(SCHEMA), thing(old), thing(new))
    assert [*found] == oracle.ask(op="compare", a=thing(old), b=thing(new))


@settings(max_examples=600, deadline=None, derandomize=True)
@given(SPECS, SPECS)
def test_the_same_is_left_when_fields_are_removed(oracle: Oracle, spec: Any, other: Any) -> None:
    fields = difference(fields_of(root_type(SCHEMA), thing(other)), STRIPPED)
    left = remove(root_type(SCHEMA), thing(spec), fields)
    assert exactly(left) == exactly(oracle.ask(op="remove", a=thing(spec), set=fields))


@settings(max_examples=600, deadline=None, derandomize=True)
@given(TREES, TREES)
def test_sets_of_fields_combine_alike(oracle: Oracle, one: Any, two: Any) -> None:
    a, b = parse(one), parse(two)
    found = {
        "union": union(a, b),
        "intersection": intersection(a, b),
        "difference": difference(a, b),
        "recursive": recursive_difference(a, b),
    }
    answer = oracle.ask(op="sets", set=one, other=two)
    assert {name: in_order(ordered(fields)) for name, fields in found.items()} == {
        name: in_order(fields) for name, fields in answer.items()
    }


STEPS = st.lists(
    st.fixed_dictionaries(
        {"manager": st.sampled_from(["one", "two"]), "spec": SPECS, "force": st.booleans(), "update": st.booleans()}
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=800, deadline=None, derandomize=True)
@given(STEPS)
def test_writes_by_turns_leave_the_same_object_in_the_same_hands(oracle: Oracle, steps: Any) -> None:
    for step in steps:  # an entry of an update and one of an apply are two, whatever the name
        step["manager"] += "-update" if step["update"] else ""
        step["object"] = thing(step["spec"])
        step["object"]["metadata"]["uid"] = "1"
    empty = {"apiVersion": "test.dev/v1", "kind": "Thing", "metadata": {"name": "a", "uid": "1"}}
    answers = oracle.ask(op="steps", a=empty, steps=steps, strip=STRIPPED)
    live: dict[str, Any] = empty
    first = True
    for step, answer in zip(steps, answers, strict=True):
        if "conflicts" in answer:
            with pytest.raises(StatusError) as refused:
                write(live, step, first)
            assert len((refused.value.details or {})["causes"]) == len(answer["conflicts"])
            continue
        live = write(live, step, first)
        first = False
        entries = live["metadata"].get("managedFields", [])
        plain = live | {"metadata": {k: v for k, v in live["metadata"].items() if k != "managedFields"}}
        assert exactly(plain) == exactly(answer.get("object"))
        assert {entry["manager"]: entry["fieldsV1"] for entry in entries} == answer["managers"]


def write(live: dict[str, Any], step: dict[str, Any], first: bool) -> dict[str, Any]:
    common: dict[str, Any] = {
        "manager": step["manager"],
        "api_version": "test.dev/v1",
        "schema": SCHEMA,
        "now": "2024-05-01T10:00:00Z",
        "reset": {},
    }
    if not step["update"]:
        return apply(None if first else live, step["object"], force=step["force"], **common)
    new = step["object"] | {"metadata": dict(step["object"]["metadata"])}
    entries = update_managed_fields(None if first else live, new, **common)
    new["metadata"]["managedFields"] = entries
    return new


def exactly(value: Any) -> Any:
    """A value whose comparison tells true from 1, and the order of a list."""
    if isinstance(value, dict):
        return {name: exactly(below) for name, below in value.items()}
    if isinstance(value, list):
        return [exactly(item) for item in value]
    return type(value) is bool, value


def in_order(fields: Any) -> Any:
    return [(element, in_order(below)) for element, below in fields.items()]
