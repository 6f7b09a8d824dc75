"""Which class a field has, and what decided it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.systems.rest.compiling_kit import TEXT, arm, compiled, node, obj, plain, ref, rows
from trimtab.systems.rest.model import FieldClass, Node, Writer

CREATED, CHANGED = Writer.CREATE | Writer.UPDATE, Writer.UPDATE | Writer.PATCH


@pytest.mark.parametrize(
    ("marks", "cls", "why"),
    [
        ({}, "writable", "default"),
        ({"x-ms-mutability": ["read"]}, "read-only", "x-ms-mutability: read"),
        ({"x-ms-mutability": ["create", "read"]}, "create-only", "x-ms-mutability: create, read"),
        ({"x-ms-mutability": ["create"]}, "create-only", "x-ms-mutability: create"),
        ({"x-ms-mutability": ["create", "update"]}, "write-only", "x-ms-mutability: create, update"),
        ({"x-ms-mutability": ["create", "read", "update"]}, "writable", "x-ms-mutability: create, read, update"),
        ({"readOnly": True}, "read-only", "readOnly"),
        ({"writeOnly": True}, "write-only", "writeOnly"),
        ({"x-ms-secret": True}, "secret", "x-ms-secret"),
        ({"format": "password"}, "secret", "format: password"),
        ({"writeOnly": True, "format": "password"}, "secret", "format: password"),
        ({"x-ms-mutability": ["create", "update"], "x-ms-secret": True}, "secret",
         "x-ms-mutability: create, update; x-ms-secret"),
        ({"x-ms-mutability": ["create", "read"], "readOnly": False}, "create-only", "x-ms-mutability: create, read"),
    ],
)  # fmt: skip
def test_marks_decide_the_class(marks: dict[str, Any], cls: str, why: str) -> None:
    model = compiled(arm(obj(tags=TEXT, size={"type": "string", **marks})))
    row = rows(model)["size"]
    assert (row.cls.value, row.why) == (cls, why)


@pytest.mark.parametrize("name", ["id", "type", "etag", "systemData"])
def test_arms_own_fields_are_read_only_at_the_top(name: str) -> None:
    model = compiled(arm(obj(**{name: TEXT}, properties=obj(**{name: TEXT}))))
    assert rows(model)[name].why == f"built-in: ARM's own {name}"
    assert rows(model)[f"properties.{name}"].cls is FieldClass.WRITABLE


def test_the_location_of_arm_is_create_only_at_the_top_alone() -> None:
    model = compiled(arm(obj(location=TEXT, properties=obj(location=TEXT))))
    assert rows(model)["location"].cls is FieldClass.CREATE_ONLY
    assert rows(model)["properties.location"].cls is FieldClass.WRITABLE


def test_a_mark_of_the_document_wins_over_what_is_known_of_arm() -> None:
    model = compiled(arm(obj(location={"type": "string", "x-ms-mutability": ["create", "update", "read"]})))
    assert rows(model)["location"].cls is FieldClass.WRITABLE


def test_the_provisioning_state_is_read_only_without_a_mark() -> None:
    model = compiled(arm(obj(properties=obj(provisioningState=TEXT, size=TEXT))))
    assert model.read_only == {"properties.provisioningState": "built-in: ARM's own provisioningState"}


def test_arms_rules_are_not_those_of_other_services() -> None:
    model = compiled(plain(obj(id=TEXT, location=TEXT), obj(id=TEXT, location=TEXT)))
    assert {row.cls for row in rows(model).values()} == {FieldClass.WRITABLE}


def test_a_service_may_be_said_to_follow_arms_contract() -> None:
    document = plain(obj(location=TEXT), obj(location=TEXT))
    model = compiled(document, service={"contract": "arm"})
    assert rows(model)["location"].cls is FieldClass.CREATE_ONLY


def test_a_list_of_objects_may_change_inside_where_its_items_may_not() -> None:
    items = {"type": "array", "items": obj(port=TEXT), "x-ms-mutability": ["create", "read"]}
    names = {"type": "array", "items": TEXT, "x-ms-mutability": ["create", "read"]}
    model = compiled(arm(obj(rules=items, names=names)))
    assert rows(model)["rules"].cls is FieldClass.WRITABLE
    assert "not their fields" in rows(model)["rules"].why
    assert rows(model)["names"].cls is FieldClass.CREATE_ONLY


def test_what_is_below_a_create_only_field_is_create_only_too() -> None:
    model = compiled(arm(obj(disk={**obj(size=TEXT), "x-ms-mutability": ["create", "read"]})))
    assert rows(model)["disk.size"].cls is FieldClass.CREATE_ONLY
    assert node(model, "disk.size").field is FieldClass.WRITABLE


def test_what_is_below_a_read_only_field_is_not_in_the_spec() -> None:
    model = compiled(arm(obj(size=TEXT, state={**obj(a=TEXT, b=obj(c=TEXT)), "readOnly": True})))
    assert list(model.spec.properties) == ["size"]
    assert model.read_only == {"state": "readOnly"}


def test_a_read_only_mark_next_to_a_reference_counts_for_that_use() -> None:
    definitions = {"Disk": obj(size=TEXT)}
    model = compiled(arm(obj(disk=ref("Disk"), seen=ref("Disk", readOnly=True)), definitions=definitions))
    assert list(model.spec.properties) == ["disk"]


def test_an_object_with_read_only_fields_alone_is_read_only() -> None:
    model = compiled(arm(obj(size=TEXT, state=obj(a={"type": "string", "readOnly": True}))))
    assert model.read_only == {"state": "all of its fields are read-only"}


def test_a_map_stays_writable_though_its_values_are_read_only() -> None:
    identity = obj(principalId={"type": "string", "readOnly": True})
    model = compiled(arm(obj(identities={"type": "object", "additionalProperties": identity})))
    assert node(model, "identities").type == "map"
    assert model.read_only == {"identities.*.principalId": "readOnly"}


@pytest.mark.parametrize(
    "name", ["password", "adminPassword", "secret", "clientSecret", "privateKey", "connectionString"]
)
def test_a_field_that_is_named_as_secrets_are_is_one(name: str) -> None:
    assert rows(compiled(plain(obj(**{name: TEXT}), obj(**{name: TEXT}))))[name].cls is FieldClass.SECRET


@pytest.mark.parametrize("name", ["secretName", "primaryKey", "disablePasswordAuthentication"])
def test_a_field_that_is_named_nearly_so_is_none(name: str) -> None:
    assert rows(compiled(plain(obj(**{name: TEXT}), obj(**{name: TEXT}))))[name].cls is FieldClass.WRITABLE


def test_the_value_of_a_secure_string_is_a_secret() -> None:
    secure = {"SecureString": obj(type=TEXT, value=TEXT)}
    model = compiled(arm(obj(password=ref("SecureString")), definitions=secure))
    assert rows(model)["password.value"].cls is FieldClass.SECRET


class TestSchemas:
    def test_what_is_read_and_never_written_is_read_only(self) -> None:
        model = compiled(plain(obj(size=TEXT), obj(size=TEXT), obj(size=TEXT, uptime=TEXT)))
        assert model.read_only == {"uptime": "schemas: read, in no body that is written"}

    def test_what_is_written_and_never_read_is_write_only(self) -> None:
        model = compiled(plain(obj(size=TEXT, token=TEXT), obj(size=TEXT, token=TEXT), obj(size=TEXT)))
        assert rows(model)["token"].why == "schemas: written, not in what is read"
        assert rows(model)["token"].cls is FieldClass.WRITE_ONLY

    @pytest.mark.parametrize("read", [None, {"type": "object"}, {**obj(a=TEXT), "additionalProperties": True}])
    def test_an_answer_that_tells_nothing_decides_nothing(self, read: Any) -> None:
        model = compiled(plain(obj(size=TEXT), obj(size=TEXT), read))
        assert rows(model)["size"].cls is FieldClass.WRITABLE

    def test_what_only_a_creation_takes_is_create_only(self) -> None:
        model = compiled(plain(obj(size=TEXT, image=TEXT), obj(size=TEXT), obj(size=TEXT, image=TEXT)))
        assert rows(model)["image"].why == "schemas: in create, not in update"
        assert rows(model)["image"].writers is Writer.CREATE

    def test_what_a_patch_alone_changes_is_not_create_only(self) -> None:
        both = obj(size=TEXT, image=TEXT)
        model = compiled(plain(both, None, both, obj(size=TEXT)))
        assert rows(model)["size"].cls is FieldClass.WRITABLE
        assert rows(model)["image"].why == "schemas: in create, not in patch"

    def test_a_field_below_is_decided_as_one_at_the_top(self) -> None:
        whole = obj(disk=obj(size=TEXT, image=TEXT))
        model = compiled(plain(whole, obj(disk=obj(size=TEXT)), whole))
        assert rows(model)["disk.image"].cls is FieldClass.CREATE_ONLY
        assert rows(model)["disk.size"].cls is FieldClass.WRITABLE

    def test_one_body_for_creation_and_update_makes_nothing_create_only(self) -> None:
        model = compiled(arm(obj(size=TEXT), patch=obj(tags=TEXT)))
        assert rows(model)["size"].cls is FieldClass.WRITABLE

    def test_where_nothing_can_be_changed_all_is_create_only(self) -> None:
        model = compiled(plain(obj(size=TEXT, disk=obj(size=TEXT)), None, obj(size=TEXT)))
        assert {row.cls for row in rows(model).values()} == {FieldClass.CREATE_ONLY}

    def test_what_an_update_marks_read_only_is_create_only_when_a_creation_takes_it(self) -> None:
        fixed = obj(size=TEXT, image={"type": "string", "readOnly": True})
        model = compiled(plain(obj(size=TEXT, image=TEXT), fixed, obj(size=TEXT, image=TEXT)))
        assert rows(model)["image"].cls is FieldClass.CREATE_ONLY
        assert rows(model)["image"].writers is Writer.CREATE


class TestWriters:
    def test_each_call_takes_what_its_body_has(self) -> None:
        model = compiled(
            plain(obj(a=TEXT, b=TEXT), obj(a=TEXT, c=TEXT), obj(a=TEXT, b=TEXT, c=TEXT), obj(a=TEXT, c=TEXT))
        )
        assert rows(model)["a"].writers is Writer.ALL
        assert rows(model)["b"].writers is Writer.CREATE
        assert rows(model)["c"].writers == CHANGED

    def test_what_is_below_a_field_that_patch_does_not_take_is_not_patched_either(self) -> None:
        model = compiled(arm(obj(tags=TEXT, properties=obj(size=TEXT)), patch=obj(tags=TEXT)))
        assert rows(model)["tags"].writers is Writer.ALL
        assert rows(model)["properties.size"].writers == CREATED

    def test_a_patch_of_a_free_object_takes_all_below_it(self) -> None:
        model = compiled(arm(obj(properties=obj(size=TEXT)), patch=obj(properties={"type": "object"})))
        assert rows(model)["properties.size"].writers is Writer.ALL

    def test_an_instruction_to_patch_alone_is_no_field(self) -> None:
        model = compiled(arm(obj(tags=TEXT), patch=obj(tags=TEXT, force=TEXT)))
        assert list(model.spec.properties) == ["tags"]

    def test_a_read_only_mark_in_the_patch_body_keeps_only_patch_from_it(self) -> None:
        model = compiled(arm(obj(size=TEXT), patch=obj(size={"type": "string", "readOnly": True})))
        assert rows(model)["size"].writers == CREATED


class TestObserved:
    def test_read_only_fields_are_where_a_read_has_them(self) -> None:
        state = {"type": "string", "readOnly": True, "description": "How it goes. And more."}
        model = compiled(arm(obj(rules={"type": "array", "items": obj(port=TEXT, state=state)})))
        rules = model.observed.properties["rules"].items
        assert rules is not None
        assert rules.properties["state"].description == "How it goes."
        assert model.read_only == {"rules[].state": "readOnly"}

    @pytest.mark.parametrize("marks", [{"x-ms-secret": True}, {"format": "password"}])
    def test_a_secret_that_is_only_read_is_known_as_one(self, marks: dict[str, Any]) -> None:
        keys = {**obj(first={"type": "string", **marks}, count=TEXT), "readOnly": True}
        model = compiled(arm(obj(size=TEXT, keys=keys)))
        found = model.observed.properties["keys"]
        assert found.properties["first"].field is FieldClass.SECRET
        assert "count" not in found.properties

    def test_a_key_that_is_only_read_is_taken_for_a_secret_by_its_name(self) -> None:
        model = compiled(arm(obj(size=TEXT, keys={**obj(primaryKey=TEXT), "readOnly": True})))
        assert model.observed.properties["keys"].properties["primaryKey"].field is FieldClass.SECRET

    def test_an_overlay_may_show_it_or_hide_another(self) -> None:
        keys = {**obj(primaryKey=TEXT, hint=TEXT), "readOnly": True}
        overlay = {"fields": {"keys.primaryKey": {"class": "read-only"}, "keys.hint": {"class": "secret"}}}
        model = compiled(arm(obj(size=TEXT, keys=keys)), overlay=overlay)
        found = model.observed.properties["keys"].properties
        assert found["primaryKey"].field is FieldClass.READ_ONLY
        assert found["hint"].field is FieldClass.SECRET

    def test_what_a_variant_hides_is_hidden_with_the_whole_field(self) -> None:
        definitions = {
            "Key": {**obj(kind=TEXT), "discriminator": "kind"},
            "Shown": {"allOf": [ref("Key")], **obj(accessKey=TEXT)},
        }
        seen = {"allOf": [ref("Key")], "readOnly": True}
        model = compiled(arm(obj(size=TEXT, key=seen), definitions=definitions))
        assert model.observed.properties["key"].field is FieldClass.SECRET

    def test_a_type_that_contains_itself_and_a_secret_is_hidden_from_the_second_on(self) -> None:
        group = {"Group": obj(title=TEXT, accessKey=TEXT, child=ref("Group"))}
        model = compiled(arm(obj(size=TEXT, group=ref("Group", readOnly=True)), definitions=group))
        found = model.observed.properties["group"].properties
        assert {name: each.field for name, each in found.items()} == {
            "accessKey": FieldClass.SECRET,
            "child": FieldClass.SECRET,
        }

    def test_types_that_multiply_are_hidden_before_they_are_too_many(self) -> None:
        wide = {f"Level{n}": obj(**{f"f{i}": ref(f"Level{n + 1}") for i in range(9)}) for n in range(8)}
        wide["Level8"] = obj(accessKey=TEXT)
        model = compiled(arm(obj(size=TEXT, top=ref("Level0", readOnly=True)), definitions=wide))

        def size(found: Node) -> int:
            return 1 + sum(size(each) for each in found.properties.values())

        assert size(model.observed) < 4000
