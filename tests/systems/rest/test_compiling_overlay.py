"""What an overlay changes, and where."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.rest.compiling_kit import TEXT, arm, compiled, node, obj, plain, problems, ref, rows
from trimtab.systems.rest.model import Comparator, FieldClass, Model, Writer

RULES = {"type": "array", "items": obj(port=TEXT, name=TEXT)}
TAGS = {"type": "object", "additionalProperties": TEXT}
DISK = {"Disk": obj(size=TEXT, image=TEXT)}


def overlaid(schema: dict[str, Any], fields: dict[str, Any], definitions: dict[str, Any] | None = None) -> Model:
    document = plain(schema, schema, schema, schema, definitions=definitions)
    return compiled(document, overlay={"fields": fields})


@pytest.mark.parametrize("cls", ["read-only", "create-only", "write-only", "secret", "initial", "writable"])
def test_a_class_of_the_overlay_is_the_first_to_count(cls: str) -> None:
    marks = {"type": "string", "x-ms-mutability": ["create", "read"]}
    row = rows(overlaid(obj(size=marks, other=TEXT), {"size": {"class": cls}}))["size"]
    assert (row.cls.value, row.why) == (cls, "overlay")


def test_a_field_that_the_document_calls_read_only_can_be_opened() -> None:
    schema = obj(size=TEXT, disk={**obj(image=TEXT), "readOnly": True})
    model = overlaid(schema, {"disk": {"class": "writable"}})
    assert node(model, "disk.image").type == "string"
    assert node(model, "disk").writers is Writer.ALL


def test_a_field_that_only_a_read_has_can_be_opened() -> None:
    document = plain(obj(size=TEXT), obj(size=TEXT), obj(size=TEXT, disk=obj(image=TEXT)))
    model = compiled(document, overlay={"fields": {"disk": {"class": "writable"}}})
    assert node(model, "disk.image").type == "string"


def test_a_secret_that_only_a_read_has_is_hidden_and_not_asked_for() -> None:
    document = plain(obj(size=TEXT), obj(size=TEXT), obj(size=TEXT, ticket=TEXT))
    model = compiled(document, overlay={"fields": {"ticket": {"class": "secret"}}})
    assert list(model.spec.properties) == ["size"]
    assert model.observed.properties["ticket"].field is FieldClass.SECRET


def test_what_is_ignored_is_in_no_list_but_its_own() -> None:
    model = overlaid(obj(size=TEXT, noise=TEXT, tags=TAGS), {"noise": {"class": "ignored"}})
    assert list(model.spec.properties) == ["size", "tags"]
    assert model.read_only == {}
    assert model.overlay.ignored == ("noise",)


def test_one_key_of_a_map_can_be_ignored() -> None:
    model = overlaid(obj(config=TAGS), {'config["volatile.uuid"]': {"class": "ignored"}})
    assert model.overlay.ignored == ('config["volatile.uuid"]',)


def test_items_of_a_list_are_reached() -> None:
    model = overlaid(obj(rules=RULES), {"rules[].port": {"compare": "number"}, "rules": {"keys": ["name"]}})
    assert node(model, "rules[].port").compare is Comparator.NUMBER
    assert node(model, "rules").keys == ("name",)


def test_values_of_a_map_are_reached() -> None:
    model = overlaid(obj(tags=TAGS), {"tags.*": {"compare": "caseless"}})
    assert node(model, "tags.*").compare is Comparator.CASELESS


def test_one_key_of_a_map_is_reached_and_the_others_stay() -> None:
    model = overlaid(obj(config=TAGS), {'config["limits.memory"]': {"compare": "quantity"}})
    config = node(model, "config")
    assert config.properties["limits.memory"].compare is Comparator.QUANTITY
    assert config.additional
    assert config.items is not None
    assert config.items.compare is Comparator.EXACT


def test_a_type_that_is_used_elsewhere_stays_as_it_is_there() -> None:
    schema = obj(first=ref("Disk"), second=ref("Disk"), third=ref("Disk"))
    model = overlaid(schema, {"first.image": {"class": "create-only"}}, DISK)
    assert node(model, "first.image").field is FieldClass.CREATE_ONLY
    assert node(model, "second.image").field is FieldClass.WRITABLE
    assert list(model.types) == ["Disk"]


def test_a_type_that_contains_itself_is_changed_only_where_the_path_leads() -> None:
    group = {"Group": obj(size=TEXT, child=ref("Group"))}
    model = overlaid(obj(root=ref("Group")), {"root.child.size": {"class": "initial"}}, group)
    assert node(model, "root.size").field is FieldClass.WRITABLE
    assert node(model, "root.child.size").field is FieldClass.INITIAL
    assert node(model, "root.child.child.size").field is FieldClass.WRITABLE


def test_a_field_of_a_variant_is_reached() -> None:
    definitions = {
        "Animal": {**obj(kind=TEXT), "discriminator": "kind"},
        "Cat": {"allOf": [ref("Animal")], **obj(lives=TEXT)},
    }
    model = overlaid(obj(pet=ref("Animal")), {"pet.lives": {"class": "create-only"}}, definitions)
    cat = model.variant(node(model, "pet"), {"kind": "Cat"})
    assert cat.properties["lives"].field is FieldClass.CREATE_ONLY


def test_the_rest_of_what_can_be_said_of_a_field() -> None:
    model = overlaid(
        obj(size=TEXT, names={"type": "array", "items": TEXT}, mode=TEXT, vault=TEXT, rules=RULES),
        {
            "size": {"default": "5", "required": True},
            "names": {"unordered": True, "removal": "empty"},
            "mode": {"patch": False},
            "vault": {"reference": "Microsoft.Zoo/cages"},
            "rules": {"keep": True},
        },
    )
    assert node(model, "size").default == "5"
    assert model.spec.required == ("size",)
    assert node(model, "names").unordered
    assert node(model, "mode").writers == Writer.CREATE | Writer.UPDATE
    assert (node(model, "vault").reference, node(model, "vault").compare) == ("Microsoft.Zoo/cages", Comparator.ARM_ID)
    assert model.overlay.removal == {"names": "empty"}
    assert model.overlay.keep == ("rules",)


def test_the_overlay_wins_over_the_comparator_of_the_document() -> None:
    enum = {"type": "string", "enum": ["A"]}
    model = compiled(arm(obj(tier=enum)), overlay={"fields": {"tier": {"compare": "exact"}}})
    assert node(model, "tier").compare is Comparator.EXACT


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("siez", "nearest: size"),
        ("rules.port", "nearest: rules[].port"),
        ("rules[].prt", "nearest: rules[].port"),
        ("state.phase", "it is below state, which is read-only (readOnly)"),
        ("rules[name=web]", "[] stands for all of them"),
        ("size..x", "is no path"),
    ],
)
def test_a_path_that_leads_to_no_field_is_a_problem_of_its_own(path: str, part: str) -> None:
    state = {**obj(steps=TEXT), "readOnly": True}
    schema = obj(size=TEXT, rules=RULES, state=state)
    document = plain(schema, schema, schema)
    found = problems(document, overlay={"fields": {path: {"class": "initial"}}})
    assert list(found) == [f'spec.overlay.fields["{path}"]']
    assert part in next(iter(found.values()))


class TestNames:
    @pytest.mark.parametrize("name", ["name", "parent", "parameters", "resourceID", "policy"])
    def test_a_field_that_is_called_as_one_of_ours_is_renamed(self, name: str) -> None:
        model = compiled(plain(obj(**{f"{name}_": TEXT}, size=TEXT), obj(**{name: TEXT}, size=TEXT)))
        renamed = f"body{name[0].upper()}{name[1:]}"
        assert list(model.spec.properties) == [renamed, "size"]
        assert model.spec.required == (renamed,)
        assert model.renamed == {renamed: name}

    def test_the_overlay_chooses_a_better_name(self) -> None:
        body = obj(policy=TEXT)
        model = compiled(plain(body, body), overlay={"rename": {"firewallPolicy": "policy"}})
        assert model.renamed == {"firewallPolicy": "policy"}

    def test_the_names_of_the_roots_variants_change_too(self) -> None:
        definitions = {
            "Animal": {**obj(kind=TEXT), "discriminator": "kind"},
            "Cat": {"allOf": [ref("Animal")], **obj(policy=TEXT)},
        }
        model = compiled(plain(ref("Animal"), ref("Animal"), definitions=definitions))
        assert "bodyPolicy" in model.variant(model.spec, {"kind": "Cat"}).properties
        assert model.renamed == {"bodyPolicy": "policy"}

    @pytest.mark.parametrize(
        ("create", "update", "patch", "takes"),
        [
            (obj(name=TEXT, a=TEXT), obj(name=TEXT, a=TEXT), obj(name=TEXT, a=TEXT), Writer.ALL),
            (obj(name=TEXT, a=TEXT), obj(a=TEXT), obj(a=TEXT), Writer.CREATE),
            (obj(name=TEXT, a=TEXT), obj(name={**TEXT, "readOnly": True}, a=TEXT), None, Writer.CREATE),
            (obj(name=TEXT, a=TEXT), obj(name=TEXT, a=TEXT), None, Writer.CREATE | Writer.UPDATE),
            (obj(a=TEXT), obj(a=TEXT), None, Writer.CREATE),
            (None, None, None, Writer.ALL),
        ],
    )
    def test_it_is_known_which_calls_take_that_field(self, create: Any, update: Any, patch: Any, takes: Writer) -> None:
        document = plain(create, update, obj(name=TEXT, a=TEXT), patch)
        assert compiled(document, identity={"field": "name"}).identity.writers is takes

    def test_the_field_that_holds_the_identity_is_left_to_the_name(self) -> None:
        body = obj(name_=TEXT, size=TEXT)
        model = compiled(plain(body, body), identity={"parameter": "name", "field": "name"})
        assert list(model.spec.properties) == ["size"]
        assert model.spec.required == ()

    @pytest.mark.parametrize(
        ("rename", "part"),
        [
            ({"x": "nothing"}, "is no field of the body"),
            ({"policy": "size"}, "is a field of every generated kind"),
            ({"mode": "size"}, "is another field of the body"),
        ],
    )
    def test_a_name_that_cannot_be_is_a_problem(self, rename: dict[str, str], part: str) -> None:
        body = obj(size=TEXT, mode=TEXT)
        found = problems(plain(body, body), overlay={"rename": rename})
        assert part in found[f"spec.overlay.rename.{next(iter(rename))}"]
