"""What of a body is compared and owned one by one."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.systems.rest.syncing_kit import kind
from trimtab.systems.rest.model import Comparator, FieldClass, Node, Writer
from trimtab.systems.rest.syncing.leaves import DEPTH, leaves, walk

MODEL = kind()


def test_objects_maps_and_keyed_lists_are_walked() -> None:
    body = {
        "tags": {"a.b": "1"},
        "properties": {"net": {"deep": {"c": "x"}}, "rules": [{"name": "web", "port": 80}]},
    }
    assert leaves(MODEL, MODEL.spec, body) == {
        'tags["a.b"]': "1",
        "properties.net.deep.c": "x",
        "properties.rules[name=web].name": "web",
        "properties.rules[name=web].port": 80,
    }


def test_lists_without_keys_and_what_is_empty_are_leaves() -> None:
    body = {"tags": {}, "properties": {"rules": [], "hosts": ["x"], "steps": [{"x": 1}], "note": None}}
    assert leaves(MODEL, MODEL.spec, body) == {
        "tags": {},
        "properties.rules": [],
        "properties.hosts": ["x"],
        "properties.steps": [{"x": 1}],
        "properties.note": None,
    }


def test_a_list_whose_keys_are_missing_or_doubled_is_one_leaf() -> None:
    for rules in ([{"name": "a"}, {"name": "a"}], [{"port": 1}], [{"name": None}], ["a"], [{"name": {"x": 1}}]):
        assert leaves(MODEL, MODEL.spec, {"properties": {"rules": rules}}) == {"properties.rules": rules}


def test_keys_of_different_types_are_different_keys() -> None:
    body = {"properties": {"rules": [{"name": "1"}, {"name": 1}]}}
    assert set(leaves(MODEL, MODEL.spec, body)) == {'properties.rules[name="1"].name', "properties.rules[name=1].name"}


def test_fields_that_nobody_knows_are_compared_exactly() -> None:
    (leaf,) = walk(MODEL, {"properties": {"unheard": {"of": "it"}}}).values()
    assert leaf.path == "properties.unheard.of"
    assert leaf.node.compare is Comparator.EXACT


def test_what_is_below_a_class_has_it_and_writers_are_those_of_all_above() -> None:
    fixed = Node(
        type="object",
        field=FieldClass.CREATE_ONLY,
        writers=Writer.CREATE | Writer.UPDATE,
        properties={"a": Node(type="string"), "b": Node(type="string", field=FieldClass.SECRET)},
    )
    model = kind(patch=Writer.PATCH, tags_patch=False, properties={"fixed": fixed})
    found = walk(model, {"properties": {"fixed": {"a": "x", "b": "y"}}})
    assert found["properties.fixed.a"].fixed({})
    assert found["properties.fixed.a"].writers == Writer.CREATE | Writer.UPDATE
    assert found["properties.fixed.b"].fixed({})
    assert found["properties.fixed.b"].hidden


def test_what_a_read_never_gives_is_one_leaf_whatever_is_in_it() -> None:
    model = kind(properties={"vault": Node(type="object", field=FieldClass.WRITE_ONLY)})
    assert set(walk(model, {"properties": {"vault": {"a": {"b": 1}}}})) == {"properties.vault"}


def test_the_discriminator_says_which_fields_there_are() -> None:
    shape = Node(
        type="object",
        discriminator="kind",
        variants={"round": "Round"},
        properties={"kind": Node(type="string")},
    )
    base = kind(properties={"shape": shape})
    model = msgspec.structs.replace(
        base,
        types={
            "Round": Node(type="object", properties={"size": Node(type="string", compare=Comparator.NUMBER)}),
        },
    )
    found = walk(model, {"properties": {"shape": {"kind": "round", "size": "5"}}})
    assert found["properties.shape.size"].node.compare is Comparator.NUMBER
    found = walk(model, {"properties": {"shape": {"kind": "square", "size": "5"}}})
    assert found["properties.shape.size"].node.compare is Comparator.EXACT


def test_a_type_that_contains_itself_is_walked_as_deep_as_the_body_is() -> None:
    base = kind(properties={"tree": Node(ref="Tree")})
    tree = Node(type="object", properties={"next": Node(ref="Tree"), "x": Node(type="integer")})
    model = msgspec.structs.replace(base, types={"Tree": tree})
    assert set(walk(model, {"properties": {"tree": {"next": {"next": {"x": 1}}}}})) == {"properties.tree.next.next.x"}


def test_a_body_without_end_ends_in_one_leaf() -> None:
    body: dict[str, Any] = {}
    for _ in range(500):
        body = {"a": body}
    (leaf,) = walk(MODEL, body).values()
    assert len(leaf.steps) == DEPTH


def test_the_names_of_the_body_are_the_services_own() -> None:
    base = kind()
    spec = Node(type="object", properties={"bodyPolicy": Node(type="string", compare=Comparator.CASELESS)})
    model = msgspec.structs.replace(base, spec=spec, renamed={"bodyPolicy": "policy"})
    (leaf,) = walk(model, {"policy": "Open"}).values()
    assert leaf.node.compare is Comparator.CASELESS
