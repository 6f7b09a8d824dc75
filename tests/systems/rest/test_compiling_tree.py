"""The tree of a spec: types, variants, lists, comparators, bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.systems.rest.compiling_kit import PLAIN, TEXT, arm, compiled, node, obj, plain, ref, rows
from trimtab.systems.rest.compiling.fields import count, fields, model_digest
from trimtab.systems.rest.model import DECODER, ENCODER, Comparator, FieldClass, Model, Node
from trimtab.systems.rest.openapi.loading import load


def both(schema: dict[str, Any], definitions: dict[str, Any] | None = None, **spec: Any) -> Model:
    """One body for all."""
    return compiled(plain(schema, schema, schema, definitions=definitions), **spec)


class TestTypes:
    def test_an_object_that_is_used_once_is_in_its_place(self) -> None:
        model = both(obj(disk=ref("Disk")), {"Disk": obj(size=TEXT)})
        assert model.types == {}
        assert model.spec.properties["disk"].properties["size"].type == "string"

    def test_an_object_that_is_used_twice_is_a_type(self) -> None:
        model = both(obj(first=ref("Disk"), second=ref("Disk", description="The other.")), {"Disk": obj(size=TEXT)})
        assert list(model.types) == ["Disk"]
        assert [model.spec.properties[name].ref for name in ("first", "second")] == ["Disk", "Disk"]
        assert model.spec.properties["second"].description == "The other."

    def test_a_type_that_contains_itself_ends(self) -> None:
        group = obj(name_=TEXT, children={"type": "array", "items": ref("Group")})
        model = both(obj(root=ref("Group")), {"Group": group})
        assert list(model.types) == ["Group"]
        assert node(model, "root.children[].children[].name").type == "string"
        assert rows(model)["root.children[]"].type == "…"

    def test_a_body_that_contains_itself_is_the_spec_and_a_type(self) -> None:
        model = both(ref("Group"), {"Group": obj(title=TEXT, child=ref("Group"))})
        assert not model.spec.ref
        assert node(model, "child.child.title").type == "string"

    def test_two_types_of_one_name_get_names_of_their_own(self) -> None:
        one, other = obj(a=TEXT), obj(a=TEXT, b=TEXT)
        definitions = {"Disk": one, "Other.Disk": other}
        first, second = ref("Disk"), ref("Other.Disk")
        model = both(obj(a=first, b=first, c=second, d=second), definitions)
        assert list(model.types) == ["Disk", "OtherDisk"]

    def test_lists_of_lists_that_never_end_are_cut(self) -> None:
        model = both(obj(matrix=ref("Rows")), {"Rows": {"type": "array", "items": ref("Rows")}})
        assert node(model, "matrix[][][]").type == "array"

    def test_parts_are_merged_and_the_nearest_word_counts(self) -> None:
        disk = {"allOf": [ref("Base")], **obj(size={"type": "integer"})}
        model = both(obj(disk=ref("Disk")), {"Disk": disk, "Base": obj(name_=TEXT, size=TEXT)})
        assert node(model, "disk.size").type == "integer"
        assert node(model, "disk").required == ("name",)

    def test_a_choice_without_a_discriminator_is_any_value(self) -> None:
        choice = {"oneOf": [TEXT, {"type": "integer"}], "description": "A port or its name."}
        model = both(obj(port=choice))
        assert node(model, "port").type == "any"
        assert node(model, "port").description == "A port or its name."

    @pytest.mark.parametrize(
        ("schema", "kind"),
        [
            ({"type": "object"}, "map"),
            ({"type": "object", "additionalProperties": {"type": "string"}}, "map"),
            ({}, "any"),
            (obj(a=TEXT), "object"),
            ({"type": "array", "items": {"type": "string"}}, "array"),
            ({"enum": ["a", "b"]}, "string"),
        ],
    )
    def test_schemas_are_of_few_types(self, schema: dict[str, Any], kind: str) -> None:
        assert node(both(obj(field=schema)), "field").type == kind

    def test_an_object_may_take_further_fields_of_one_type(self) -> None:
        model = both(obj(labels={**obj(team=TEXT), "additionalProperties": {"type": "integer"}}))
        labels = node(model, "labels")
        assert labels.additional
        assert labels.items is not None
        assert labels.items.type == "integer"

    def test_an_object_without_further_fields_says_so(self) -> None:
        assert not node(both(obj(disk=obj(size=TEXT))), "disk").additional

    def test_only_the_first_sentence_of_a_description_is_kept(self) -> None:
        long = "word " * 100
        several = "Its size, e.g. 5.\nMore of it. And more."
        model = both(obj(a={**TEXT, "description": several}, b={**TEXT, "description": long}))
        assert node(model, "a").description == "Its size, e.g. 5."
        assert len(node(model, "b").description) <= 200

    def test_what_a_value_may_be_is_kept(self) -> None:
        model = both(
            obj(
                size={"type": "integer", "minimum": 1, "maximum": 9, "exclusiveMaximum": True, "default": 3},
                code={"type": "string", "pattern": "^a", "minLength": 1, "maxLength": 5, "x-nullable": True},
                tier={"type": "string", "enum": ["a", "b"], "x-ms-enum": {"name": "T", "modelAsString": True}},
                kind={"type": "string", "enum": ["a"], "x-ms-enum": {"name": "K", "modelAsString": False}},
                names={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 4},
                broken={"type": "integer", "default": "many", "minimum": "one", "maximum": 1e301},
            )
        )
        size, code, names, broken = (node(model, name) for name in ("size", "code", "names", "broken"))
        assert (size.minimum, size.maximum, size.default) == (1, 8, 3)
        assert (code.pattern, code.min_length, code.max_length, code.nullable) == ("^a", 1, 5, True)
        assert (node(model, "tier").open_enum, node(model, "kind").open_enum) == (True, False)
        assert (names.min_items, names.max_items) == (1, 4)
        assert (broken.default, broken.minimum, broken.maximum) == (None, None, None)

    def test_what_a_creation_needs_is_required(self) -> None:
        model = compiled(plain(obj(size_=TEXT, image_=TEXT), obj(size=TEXT, mode_=TEXT)))
        assert set(model.spec.required) == {"size", "image"}

    def test_the_constants_of_every_body_are_not_required(self) -> None:
        model = both(obj(size_=TEXT, api_=TEXT), overlay={"body": {"api": "v1"}})
        assert model.spec.required == ("size",)


ANIMALS = {
    "Animal": {**obj(kind_=TEXT, name=TEXT), "discriminator": "kind"},
    "Cat": {"allOf": [ref("Animal")], **obj(lives={"type": "integer"}), "x-ms-discriminator-value": "cat"},
    "Fish": {"allOf": [ref("Animal")], **obj(depth=TEXT, friend=ref("Animal"))},
}


class TestVariants:
    def test_the_discriminator_names_types(self) -> None:
        model = both(obj(pet=ref("Animal")), ANIMALS)
        pet = node(model, "pet")
        assert (pet.discriminator, pet.variants) == ("kind", {"cat": "Cat", "Fish": "Fish"})
        assert model.variant(pet, {"kind": "cat"}).properties["lives"].type == "integer"
        assert "name" in model.variant(pet, {"kind": "cat"}).properties
        assert "lives" not in model.variant(pet, {"kind": "Fish"}).properties

    def test_a_variant_may_hold_its_own_base(self) -> None:
        model = both(obj(pet=ref("Animal")), ANIMALS)
        fish = model.variant(node(model, "pet"), {"kind": "Fish"})
        assert model.node(fish.properties["friend"]).discriminator == "kind"

    def test_rows_name_the_variant_that_a_field_is_of(self) -> None:
        found = {(row.path, row.variant) for row in fields(both(obj(pet=ref("Animal")), ANIMALS))}
        assert {("pet.kind", ""), ("pet.lives", "cat"), ("pet.depth", "Fish"), ("pet.friend", "Fish")} <= found

    def test_a_choice_with_a_discriminator_is_one_of_its_types(self) -> None:
        def content(schema: Any) -> Any:
            return {"content": {"application/json": {"schema": schema}}}

        choice = {
            "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
            "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat", "dog": "Dog"}},
        }
        body = obj(pet=choice)
        tree = {
            "openapi": "3.0.0",
            "info": {"title": "Zoo", "version": "1"},
            "paths": {
                "/things": {"post": {"requestBody": content(body), "responses": {"201": {"description": "ok"}}}},
                PLAIN: {"get": {"responses": {"200": {"description": "ok", **content(body)}}}},
            },
            "components": {"schemas": {"Cat": obj(kind=TEXT, lives=TEXT), "Dog": obj(kind=TEXT, tricks=TEXT)}},
        }
        model = compiled(load({"zoo.json": json.dumps(tree).encode()}, "zoo.json"))
        pet = node(model, "pet")
        assert pet.discriminator == "kind"
        assert "tricks" in model.variant(pet, {"kind": "dog"}).properties


class TestLists:
    @pytest.mark.parametrize(
        ("marks", "item", "keys"),
        [
            ({}, obj(port=TEXT), ()),
            ({}, obj(name=TEXT), ()),
            ({}, obj(name_=TEXT), ("name",)),
            ({}, obj(id_=TEXT), ("id",)),
            ({}, obj(name_=TEXT, id_=TEXT), ("name",)),
            ({"x-ms-identifiers": ["/lun"]}, obj(lun=TEXT, name_=TEXT), ("lun",)),
            ({"x-ms-identifiers": ["/vault/id"]}, obj(vault=obj(id=TEXT)), ("vault.id",)),
            ({"x-ms-identifiers": []}, obj(name_=TEXT), ("name",)),
            ({"x-ms-identifiers": ["gone"]}, obj(name_=TEXT), ("name",)),
            ({"x-ms-identifiers": ["id"]}, obj(id={"type": "string", "readOnly": True}, port=TEXT), ()),
            ({"x-kubernetes-list-map-keys": ["port", "protocol"]}, obj(port=TEXT, protocol=TEXT), ("port", "protocol")),
            ({}, TEXT, ()),
        ],
    )
    def test_items_are_known_by_what_the_document_names_or_by_a_name_they_must_have(
        self, marks: dict[str, Any], item: dict[str, Any], keys: tuple[str, ...]
    ) -> None:
        assert node(both(obj(rules={"type": "array", "items": item, **marks})), "rules").keys == keys

    def test_a_patch_that_requires_nothing_does_not_take_the_key_away(self) -> None:
        whole = obj(rules={"type": "array", "items": obj(name_=TEXT)})
        model = compiled(arm(whole, patch=obj(rules={"type": "array", "items": obj(name=TEXT)})))
        assert node(model, "rules").keys == ("name",)

    def test_resources_within_a_resource_of_arm_are_known_by_their_names(self) -> None:
        child = obj(id=TEXT, name=TEXT, properties=obj(prefix=TEXT))
        assert node(compiled(arm(obj(subnets={"type": "array", "items": child}))), "subnets").keys == ("name",)

    def test_unique_scalars_are_a_set_and_objects_are_not(self) -> None:
        unique = {"type": "array", "uniqueItems": True}
        model = both(obj(names={**unique, "items": TEXT}, rules={**unique, "items": obj(port=TEXT)}))
        assert (node(model, "names").unordered, node(model, "rules").unordered) == (True, False)


class TestComparators:
    @pytest.mark.parametrize(
        ("name", "schema", "arm_says", "others_say"),
        [
            ("size", TEXT, "exact", "exact"),
            ("size", {"type": "integer"}, "exact", "exact"),
            ("tier", {"type": "string", "enum": ["A"]}, "caseless", "exact"),
            ("location", TEXT, "location", "exact"),
            ("grace", {"type": "string", "format": "duration"}, "duration", "duration"),
            ("until", {"type": "string", "format": "date-time"}, "date-time", "date-time"),
            ("count", {"type": "string", "format": "int64"}, "number", "number"),
            ("vault", {"type": "string", "format": "arm-id"}, "arm-id", "arm-id"),
            ("vault", {"type": "string", "x-ms-arm-id-details": {}}, "arm-id", "arm-id"),
        ],
    )
    def test_the_schema_says_when_two_values_are_the_same(
        self, name: str, schema: dict[str, Any], arm_says: str, others_say: str
    ) -> None:
        body = obj(properties=obj(**{name: schema}))
        assert node(compiled(arm(body)), f"properties.{name}").compare.value == arm_says
        assert node(both(body), f"properties.{name}").compare.value == others_say

    def test_an_id_says_which_type_of_resource_it_names(self) -> None:
        def vault(*types: str) -> dict[str, Any]:
            details = {"allowedResources": [{"type": each} for each in types]}
            return {"type": "string", "format": "arm-id", "x-ms-arm-id-details": details}

        model = compiled(
            arm(obj(a=vault("Microsoft.Zoo/cages"), b=vault("Microsoft.Zoo/cages", "Microsoft.Zoo/ponds")))
        )
        assert (node(model, "a").reference, node(model, "b").reference) == ("Microsoft.Zoo/cages", "*")

    def test_the_id_of_a_sub_resource_is_a_reference(self) -> None:
        definitions = {
            "SubResource": obj(id=TEXT),
            "Image": {"allOf": [ref("SubResource")], **obj(sku=TEXT)},
            "Group": obj(id=TEXT, location=TEXT, rules=TEXT),
            "Other": obj(id=TEXT, size=TEXT),
        }
        body = obj(vault=ref("SubResource"), image=ref("Image"), group=ref("Group"), other=ref("Other"))
        model = compiled(arm(body, definitions=definitions))
        for name in ("vault", "image", "group"):
            assert node(model, f"{name}.id").compare is Comparator.ARM_ID
            assert node(model, f"{name}.id").reference == "*"
        assert node(model, "other.id").compare is Comparator.EXACT


class TestModel:
    def test_it_is_the_same_after_a_journey_as_json(self) -> None:
        model = both(obj(pet=ref("Animal")), ANIMALS)
        again = DECODER.decode(ENCODER.encode(model))
        assert again == model
        assert model_digest(again) == model_digest(model)

    def test_the_same_document_gives_the_same_digest_and_another_does_not(self) -> None:
        assert model_digest(both(obj(a=TEXT, b=TEXT))) == model_digest(both(obj(a=TEXT, b=TEXT)))
        assert model_digest(both(obj(a=TEXT))) != model_digest(both(obj(b=TEXT)))

    def test_fields_are_counted_by_class(self) -> None:
        model = compiled(arm(obj(location=TEXT, size=TEXT, state={"type": "string", "readOnly": True}, password=TEXT)))
        assert count(model) == {"writable": 1, "read-only": 1, "create-only": 1, "secret": 1}

    def test_the_items_of_lists_are_rows_only_when_they_have_fields(self) -> None:
        model = both(obj(names={"type": "array", "items": TEXT}, rules={"type": "array", "items": obj(port=TEXT)}))
        assert list(rows(model)) == ["names", "rules", "rules[].port"]

    def test_and_when_they_are_secrets_though_what_holds_them_is_none(self) -> None:
        secret = {"type": "string", "format": "password"}
        model = both(
            obj(keys={"type": "object", "additionalProperties": secret}, old={"type": "array", "items": secret})
        )
        found = {path: (row.cls.value, row.why) for path, row in rows(model).items()}
        assert found == {
            "keys": ("writable", "default"),
            "keys.*": ("secret", "format: password"),
            "old": ("writable", "default"),
            "old[]": ("secret", "format: password"),
        }

    def test_and_when_the_overlay_decides_about_them(self) -> None:
        tags = {"type": "object", "additionalProperties": TEXT}
        overlay = {"fields": {"tags.*": {"class": "write-only"}}}
        model = compiled(plain(obj(tags=tags), obj(tags=tags)), overlay=overlay)
        assert [(path, row.cls.value, row.type) for path, row in rows(model).items()] == [
            ("tags", "writable", "map"),
            ("tags.*", "write-only", "string"),
        ]

    def test_a_body_that_is_not_described_takes_anything(self) -> None:
        model = compiled(plain({"type": "object"}, {"type": "object"}))
        assert model.spec == Node(type="object", additional=True, items=Node())

    def test_the_etag_of_a_body_is_known(self) -> None:
        assert compiled(arm(obj(etag=TEXT, size=TEXT))).etag == "etag"
        assert compiled(arm(obj(size=TEXT))).etag == ""

    def test_secrets_stay_secrets_in_shared_types(self) -> None:
        login = {"Login": obj(user=TEXT, password=TEXT)}
        model = both(obj(a=ref("Login"), b=ref("Login")), login)
        assert node(model, "b.password").field is FieldClass.SECRET


def test_types_that_multiply_are_listed_to_an_end() -> None:
    wide = {f"Level{n}": obj(**{f"f{i}": ref(f"Level{n + 1}") for i in range(5)}) for n in range(20)}
    wide["Level20"] = obj(size=TEXT, state={"type": "string", "readOnly": True})
    model = compiled(arm(obj(top=ref("Level0")), definitions=wide))
    assert len(model.types) == 20
    assert len(model.read_only) == 4096
    found = list(fields(model))
    assert len(found) == 20_001 + 4096
    assert found[20_000].path == "…"
