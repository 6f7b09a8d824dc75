"""The definitions of generated kinds: what they say, and what both servers make of them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.systems.rest.generating_kit import BODY, GROUP, TEXT, an_object, define, disk, machine
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.systems.rest.generating.crd import LARGEST, crd
from trimtab.systems.rest.generating.schema import PRESERVE, TooLarge, asked
from trimtab.systems.rest.model import FieldClass, Identity, Model, Node

MACHINE = Named(f"{GROUP}/v1", "Machine")


@pytest.fixture
async def defined(client: ApiClient) -> ApiClient:
    await define(client, machine(), disk())
    return client


def spec_of(model: Model) -> dict[str, Any]:
    schema: dict[str, Any] = crd(model)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema


def field(name: str, model: Model | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = spec_of(model or machine())["properties"][name]
    return schema


def needed(model: Model, *path: str) -> list[str]:
    """What a creation must say of an object of the body, by its place."""
    node, where = model.node(model.spec), ""
    for name in path:
        node, where = model.node(node.properties[name]), f"{where}.{name}" if where else name
    return asked(model, node, where)


def test_a_secret_is_given_as_a_reference() -> None:
    said = "(A secret: {secretRef: {name, key}}, a key of a Secret in the same namespace.)"
    assert field("keys")["additionalProperties"] == {PRESERVE: True, "description": said}
    assert field("password") == {PRESERVE: True, "nullable": True, "description": said}


def test_a_resource_id_may_be_given_in_two_ways() -> None:
    schema = field("subnetID")
    assert schema[PRESERVE] is True
    assert "type" not in schema


def test_every_object_keeps_unknown_fields_for_admission_to_name() -> None:
    def objects(schema: Any) -> list[dict[str, Any]]:
        inner = [schema.get("items"), schema.get("additionalProperties"), *schema.get("properties", {}).values()]
        below = [each for one in inner if isinstance(one, dict) for each in objects(one)]
        return [schema, *below] if "properties" in schema else below

    found = objects(spec_of(machine()))
    assert len(found) > 8
    assert all(each[PRESERVE] for each in found)


def test_a_type_inside_itself_is_cut_off_where_it_begins_again() -> None:
    schema = field("tree")
    assert schema["properties"]["parts"]["items"] == {"type": "object", PRESERVE: True}
    assert schema["properties"]["byName"]["additionalProperties"] == {"type": "object", PRESERVE: True}


def test_a_union_has_what_any_variant_has() -> None:
    schema = field("animal")
    assert schema["properties"]["lives"] == {"type": "integer", "format": "int32"}
    assert schema["properties"]["habitat"] == {PRESERVE: True}, "a flag in one variant, a text in the other"


def test_lists_are_told_by_keys_only_where_servers_take_them() -> None:
    assert field("rules")["x-kubernetes-list-map-keys"] == ["name"]
    assert field("animals")["x-kubernetes-list-type"] == "map"
    assert field("loose")["x-kubernetes-list-type"] == "atomic", "its key may be absent"
    assert field("zones")["x-kubernetes-list-type"] == "set"


def test_only_patterns_that_servers_can_match_are_there() -> None:
    assert field("code")["pattern"] == "^[a-z]+$"
    assert "pattern" not in field("clever")


def test_only_enumerations_that_are_closed_and_exact_are_there() -> None:
    sku = field("sku")["properties"]
    assert sku["tier"]["enum"] == ["Small", "Large"]
    assert "enum" not in sku["family"], "the service takes it in any case"
    assert "enum" not in sku["colour"], "the service may have learned more"
    assert "enum" not in sku["mood"], "servers would refuse null"
    assert sku["colour"]["description"] == "One of: red, green."


def test_what_someone_else_gives_is_not_required() -> None:
    assert needed(machine()) == ["sku"], "name is the identity, origin a constant of the overlay"


def test_nor_is_what_the_overlay_has_a_default_for() -> None:
    size = Node(type="integer", default=1, fill=True)
    assert needed(machine(spec=Node(type="object", properties={"size": size}, required=("size",)))) == []


def test_what_a_creation_needs_is_left_to_admission_which_can_name_it() -> None:
    schema = spec_of(machine())
    assert "required" not in schema
    assert "required" not in schema["properties"]["sku"]
    assert schema["properties"]["animals"]["items"]["required"] == ["name"], "or nobody knew which one is meant"


def test_a_required_field_that_nobody_may_write_is_not_required() -> None:
    state = Node(type="string", field=FieldClass.READ_ONLY)
    model = machine(spec=Node(type="object", properties={"state": state, "size": TEXT}, required=("state", "gone")))
    assert needed(model) == []
    assert "state" not in spec_of(model)["properties"]


def test_a_nested_identity_is_not_required() -> None:
    inner = Node(type="object", properties={"id": TEXT, "size": TEXT}, required=("id", "size"))
    model = machine(spec=Node(type="object", properties={"meta": inner}), identity=Identity(field="meta.id"))
    assert needed(model, "meta") == ["size"]


def test_the_name_is_bound_as_the_parameter_is() -> None:
    name = field("name")
    assert (name["pattern"], name["minLength"], name["maxLength"]) == ("^[a-z0-9-]+$", 2, 40)


def test_the_service_s_own_defaults_are_left_to_it() -> None:
    model = machine(spec=Node(type="object", properties={"size": Node(type="integer", default=3)}))
    assert "default" not in field("size", model)


def test_a_kind_that_scales_has_the_scale_subresource() -> None:
    assert crd(machine())["spec"]["versions"][0]["subresources"]["scale"] == {
        "specReplicasPath": ".spec.sku.capacity",
        "statusReplicasPath": ".status.observed.sku.capacity",
    }
    assert crd(disk())["spec"]["versions"][0]["subresources"] == {"status": {}}


def test_what_is_generated_twice_shares_nothing() -> None:
    one, other = crd(machine()), crd(machine())
    one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"].clear()
    one["spec"]["versions"][0]["additionalPrinterColumns"].clear()
    assert crd(machine()) == other


def wide(levels: int, fields: int, text: str = "") -> Node:
    """A tree of fields ** levels leaves."""
    if not levels:
        return Node(type="string", description=text)
    return Node(type="object", properties={f"field{n}": wide(levels - 1, fields, text) for n in range(fields)})


def test_a_definition_that_is_too_large_loses_its_descriptions_first() -> None:
    made = crd(machine(spec=wide(3, 16, "long " * 60)))
    assert len(msgspec.json.encode(made)) <= LARGEST
    assert "long" not in json.dumps(made)
    assert made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["field0"][
        "properties"
    ]["field0"]["properties"]["field0"] == {"type": "string"}


def test_then_it_becomes_less_deep() -> None:
    made = crd(machine(spec=wide(4, 15)))
    assert len(msgspec.json.encode(made)) <= LARGEST


def test_a_type_that_doubles_at_each_level_does_not_take_for_ever() -> None:
    types = {f"T{n}": Node(type="object", properties={c: Node(ref=f"T{n + 1}") for c in "ab"}) for n in range(30)}
    types["T30"] = TEXT
    made = crd(machine(spec=Node(type="object", properties={"a": Node(ref="T0")}), types=types))
    assert len(msgspec.json.encode(made)) <= LARGEST


def test_one_that_can_not_be_made_smaller_is_refused_by_name() -> None:
    with pytest.raises(TooLarge, match="Machine"):
        crd(machine(spec=wide(1, 50_000)))


async def refusal(client: ApiClient, obj: Untyped) -> str:
    with pytest.raises(StatusError) as refused:
        await client.create(obj, dry_run=True)
    assert refused.value.code == 422
    return refused.value.message


FULL: dict[str, Any] = {
    "name": "web-1",
    "parameters": {"group": "prod"},
    "resourceID": "/groups/prod/machines/web-1",
    "parent": {"resourceID": "/groups/prod"},
    "policy": {"drift": "report", "refresh": "5m"},
    "sku": {"tier": "Large", "family": "a", "colour": "blue", "mood": None, "capacity": 3, "ratio": 0.5},
    "location": "West US",
    "password": {"secretRef": {"name": "web", "key": "password"}},
    "keys": {"one": {"secretRef": {"name": "web", "key": "one"}}},
    "subnetID": {"ref": {"kind": "Subnet", "name": "front"}},
    "subnets": ["/subnets/a", {"ref": {"kind": "Subnet", "name": "b"}}],
    "tags": {"team": "blue", "a.b/c": "d", "gone": None},
    "animal": {"species": "fish", "name": "wanda", "habitat": "sea", "prey": [{"species": "cat", "name": "tom"}]},
    "animals": [{"species": "cat", "name": "tom", "lives": 9, "habitat": True}],
    "tree": {"title": "a", "parts": [{"title": "b", "parts": [{"title": "c", "deep": {"er": 1}}]}]},
    "rules": [{"name": "a", "port": 1}, {"name": "b"}],
    "loose": [{}, {}],
    "zones": ["1", "2"],
    "code": "abc",
    "clever": "nothing",
    "anything": {"at": ["all", 1, None]},
    "class": "first",
    "x-odd.name": "yes",
    "when": "2026-01-01",
    "bodyPolicy": "theirs",
    "matrix": [[1, 2.5], []],
}


async def test_an_object_with_everything_comes_back_as_it_was(defined: ApiClient, namespace: str) -> None:
    assert set(BODY) - set(FULL) == {"origin"}
    await defined.create(an_object("full", namespace, **FULL))
    spec = (await defined.get(MACHINE, "full", namespace)).raw["spec"]
    assert {name: spec[name] for name in FULL if name != "policy"} == {k: v for k, v in FULL.items() if k != "policy"}
    assert spec["policy"]["drift"] == "report"
    assert spec["policy"]["deletion"] == "delete", "ours has defaults"


async def test_anything_may_be_null(defined: ApiClient, namespace: str) -> None:
    await defined.create(an_object("null", namespace, anything=None, tags={"gone": None}))
    spec = (await defined.get(MACHINE, "null", namespace)).raw["spec"]
    assert (spec["anything"], spec["tags"]) == (None, {"gone": None})


async def test_what_exists_is_taken_over_by_saying_little(defined: ApiClient, namespace: str) -> None:
    lean = an_object("lean", namespace)
    lean.raw["spec"] = {"resourceID": "/groups/prod/machines/lean", "sku": {"capacity": 3}}
    await defined.create(lean)


async def test_unknown_fields_reach_admission(defined: ApiClient, namespace: str) -> None:
    await defined.create(an_object("odd", namespace, wrong=1, animal={"species": "cat", "name": "tom", "wrong": 2}))
    spec = (await defined.get(MACHINE, "odd", namespace)).raw["spec"]
    assert (spec["wrong"], spec["animal"]["wrong"]) == (1, 2)


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"resourceID": "/it", "rules": [{"port": 1}]}, "spec.rules[0].name"),
        ({"sku": {"tier": "Middle"}}, "spec.sku.tier"),
        ({"sku": {"tier": "Small", "capacity": 101}}, "spec.sku.capacity"),
        ({"sku": {"tier": "Small", "ratio": 0.25}}, "spec.sku.ratio"),
        ({"rules": [{"name": "a"}, {"name": "a"}]}, "spec.rules[1]"),
        ({"rules": [{"name": str(n)} for n in range(9)]}, "spec.rules"),
        ({"zones": ["1", "1"]}, "spec.zones[1]"),
        ({"code": "ABC"}, "spec.code"),
        ({"name": "A B"}, "spec.name"),
        ({"policy": {"drift": "sometimes"}}, "spec.policy.drift"),
        ({"parameters": {"group": 1}}, "spec.parameters.group"),
        ({"tags": {"team": 1}}, "spec.tags.team"),
    ],
)
async def test_what_a_schema_can_say_is_refused_by_the_server(
    defined: ApiClient, namespace: str, spec: dict[str, Any], where: str
) -> None:
    assert where in await refusal(defined, an_object("bad", namespace, **spec))


async def test_the_status_keeps_what_the_reconciler_remembers(defined: ApiClient, namespace: str) -> None:
    made = await defined.create(an_object("seen", namespace))
    status = {
        "observedGeneration": 1,
        "resourceID": "/groups/prod/machines/seen",
        "observed": {"any": {"thing": [1, "two"]}},
        "joined": {"instanceView": {"value": {"up": True}}},
        "plan": {"action": "none"},
        "sync": {"lastApplied": {"a": 1}, "knownDifferences": {"a.b": {"missing": True}}},
    }
    await defined.patch(made, Untyped({**made.raw, "status": status}), subresource="status")
    assert (await defined.get(MACHINE, "seen", namespace)).raw["status"] == status


async def test_it_is_shown_with_whether_it_is_ready(defined: ApiClient, namespace: str) -> None:
    await defined.create(an_object("shown", namespace))
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/machines"
    reply = await defined.transport.call(
        Call(method="GET", path=path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    )
    columns = [(c["name"], c["priority"]) for c in json.loads(reply.body)["columnDefinitions"]]
    assert columns == [
        ("Name", 0),
        ("Desired", 0),
        ("Current", 0),
        ("Ready", 0),
        ("Synced", 0),
        ("Reason", 1),
        ("ID", 1),
        ("Age", 0),
    ]


async def test_it_can_be_scaled(defined: ApiClient, namespace: str) -> None:
    await defined.create(an_object("grows", namespace, sku={"tier": "Small", "capacity": 2}))
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/machines/grows/scale"
    scale = json.loads((await defined.transport.call(Call(method="GET", path=path))).body)
    assert scale["spec"] == {"replicas": 2}
    body = json.dumps({"spec": {"replicas": 5}}).encode()
    await defined.transport.call(
        Call(method="PATCH", path=path, content_type="application/merge-patch+json", body=body)
    )
    assert (await defined.get(MACHINE, "grows", namespace)).raw["spec"]["sku"]["capacity"] == 5


async def test_appliers_share_a_keyed_list(defined: ApiClient, namespace: str) -> None:
    for name in ("a", "b"):
        partial = an_object("shared", namespace, rules=[{"name": name, "port": 1}])
        await defined.apply(partial, manager=name)
    spec = (await defined.get(MACHINE, "shared", namespace)).raw["spec"]
    assert [rule["name"] for rule in spec["rules"]] == ["a", "b"]


async def test_all_kinds_are_listed_by_their_category(defined: ApiClient) -> None:
    reply = await defined.transport.call(Call(method="GET", path=f"/apis/{GROUP}/v1"))
    named = {r["name"]: r.get("categories") for r in json.loads(reply.body)["resources"] if "/" not in r["name"]}
    assert named == {"machines": ["rest"], "disks": ["rest"]}
    assert (await defined.list(Named(f"{GROUP}/v1", "Disk"), Query())).items == []
