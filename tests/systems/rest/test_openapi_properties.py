"""Whatever a document holds, it loads and can be walked through, or is refused by a DocumentError."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.systems.rest.openapi_kit import DOCUMENTS, FLEET, reached, told
from trimtab.model.yaml import load as load_yaml
from trimtab.systems.rest.compiling.proposing import proposals
from trimtab.systems.rest.openapi import Document, DocumentError, bundle, load
from trimtab.systems.rest.openapi.references import escaped, last_name

JUNK: list[Any] = [None, True, 0, -1.5, "", "x", "#/definitions/Ship", [], [None], {}, {"": None}, {"$ref": 1}, [[{}]]]
JUNK += [{"$ref": "#"}, {"$ref": "http://["}, {"$ref": "#/paths"}, {"allOf": [{"$ref": "#/definitions/Ship"}]}, "\0"]
SOURCES = [json.loads(FLEET.read_text()), load_yaml((DOCUMENTS / "zoo-3.1.yaml").read_text())]
BESIDE = {
    "specification/fleet/2026-01-01/cargo.json": (FLEET.parent / "cargo.json").read_bytes(),
    "specification/common/types.json": (DOCUMENTS / "specification/common/types.json").read_bytes(),
    "specification/fleet/2026-01-01/keepers.yaml": (DOCUMENTS / "keepers.yaml").read_bytes(),
}


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Each container with each of its keys."""
    found, pending = [], [tree]
    while pending:
        node = pending.pop()
        keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
        for key in keys:
            found.append((node, key))
            if isinstance(node[key], dict | list):
                pending.append(node[key])
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1 << 32), st.sampled_from(range(len(SOURCES))), st.integers(1, 6))
def test_a_document_with_junk_in_it_is_loaded_or_refused(seed: int, source: int, times: int) -> None:
    chance = random.Random(seed)
    tree = copy.deepcopy(SOURCES[source])
    for _ in range(times):
        node, key = chance.choice(places(tree))
        node[key] = copy.deepcopy(chance.choice(JUNK))
    entry = "specification/fleet/2026-01-01/zoo-3.1.yaml"
    try:
        document = load({entry: json.dumps(tree).encode(), **BESIDE}, entry)
    except DocumentError:
        return
    for schema in reached(document):
        assert isinstance(schema.type, str)
        assert isinstance(schema.nullable, bool)
        assert isinstance(schema.required, tuple)
    proposals(document, "test")
    load({"openapi.json": bundle(document, document.operations)}, "openapi.json")


NAMES = st.sampled_from(["A", "B", "C/d", "E~f", "G h"])
REFERENCE = NAMES.map(lambda name: {"$ref": f"#/definitions/{escaped(name).replace(' ', '%20')}", "readOnly": True})
SCHEMA = st.recursive(
    st.one_of(REFERENCE, st.sampled_from([{"type": "string"}, {"type": "integer", "x-nullable": True}, {}])),
    lambda below: st.one_of(
        st.dictionaries(st.sampled_from("xyz"), below, max_size=3).map(lambda of: {"properties": of}),
        below.map(lambda of: {"type": "array", "items": of}),
        below.map(lambda of: {"type": "object", "additionalProperties": of}),
        st.lists(REFERENCE, min_size=1, max_size=2).map(lambda of: {"allOf": of, "properties": {"own": {}}}),
    ),
    max_leaves=6,
)


def made(definitions: dict[str, Any]) -> Document:
    uses = {"properties": {f"p{n}": {"$ref": f"#/definitions/{escaped(name)}"} for n, name in enumerate(definitions)}}
    get = {"get": {"responses": {"200": {"description": "", "schema": uses}}}}
    tree = {"swagger": "2.0", "paths": {"/x": get}, "definitions": definitions}
    return load({"a.json": json.dumps(tree).encode()}, "a.json")


@settings(max_examples=100, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(("A", "B", "C/d", "E~f", "G h"), SCHEMA)))
def test_any_schemas_in_one_file_are_the_same(definitions: dict[str, Any]) -> None:
    try:
        document = made(definitions)
    except DocumentError:
        return  # references alone
    bundled = load({"b": bundle(document, document.operations)}, "b")
    assert told(bundled, ("GET", "/x")) == told(document, ("GET", "/x"))


@given(st.text(min_size=1))
def test_a_key_comes_back_from_a_pointer(key: str) -> None:
    assert last_name(("a.json", f"/definitions/{escaped(key)}")) == key


def test_a_long_line_of_descent_and_a_broad_one_end_soon() -> None:
    long: dict[str, Any] = {f"A{n}": {"allOf": [{"$ref": f"#/definitions/A{n + 1}"}]} for n in range(3000)}
    long["A3000"] = {"properties": {"end": {"type": "string"}}}
    broad: dict[str, Any] = {f"B{n}": {"allOf": [{"$ref": f"#/definitions/B{n + 1}"}] * 3} for n in range(60)}
    broad["B60"] = {"properties": {"end": {"type": "string"}}}
    document = made({"A": {"$ref": "#/definitions/A0"}, "B": {"$ref": "#/definitions/B0"}, **long, **broad})
    found = {schema.name: schema for schema in document.definitions()}
    assert list(found["A0"].properties) == list(found["B0"].properties) == ["end"]
    assert found["A0"].type == found["B0"].type == "object"
