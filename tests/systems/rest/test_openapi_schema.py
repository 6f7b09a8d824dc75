"""What a schema's handle says, in OpenAPI 2.0, 3.0 and 3.1, and what an operation says of its parameters and bodies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trimtab.systems.rest.openapi import Document, Schema, from_path, load

DOCUMENTS = Path(__file__).parent / "documents"
GROUP = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Acme.Fleet"
SHIP = f"{GROUP}/ships/{{shipName}}"


@pytest.fixture(scope="module")
def fleet() -> Document:
    return from_path(DOCUMENTS / "specification/fleet/2026-01-01/fleet.json")


@pytest.fixture(scope="module")
def zoo() -> Document:
    return from_path(DOCUMENTS / "zoo-3.1.yaml")


def body(document: Document, method: str, path: str) -> Schema:
    found = document.operations[method, path].body
    assert found is not None
    return found


def named(document: Document, name: str) -> Schema:
    return next(schema for schema in document.definitions() if schema.name == name)


def small(definitions: dict[str, Any], spec: str = "2.0") -> Document:
    if spec == "2.0":
        tree: dict[str, Any] = {"swagger": "2.0", "paths": {}, "definitions": definitions}
    else:
        tree = {"openapi": f"{spec}.0", "paths": {}, "components": {"schemas": definitions}}
    return load({"api": json.dumps(tree).encode()}, "api")


class TestReferences:
    def test_what_is_next_to_a_reference_counts_for_that_use_only(self, fleet: Document) -> None:
        state = body(fleet, "PUT", SHIP).properties["properties"].properties["state"]
        assert (state.name, state.get("readOnly"), state.get("description")) == ("State", True, "How it is.")
        assert state.get("enum") == ["Succeeded", "Failed", "Updating"]
        assert named(fleet, "State").get("readOnly") is None

    def test_the_same_type_has_the_same_key_however_it_is_reached(self, fleet: Document) -> None:
        crew = named(fleet, "Crew")
        assert crew.properties["captain"].key == crew.key
        assert crew.properties["captain"].get("description") == "Who leads."

    def test_a_type_may_contain_itself(self, fleet: Document) -> None:
        crew = named(fleet, "Crew")
        members = crew.properties["members"].items
        assert members is not None
        assert members.properties["members"].items is members.properties["members"].items
        assert members.key == crew.key

    def test_types_of_one_name_in_two_files_are_two(self, fleet: Document) -> None:
        ship = body(fleet, "PUT", SHIP)
        toy = ship.properties["properties"].properties["toy"]
        assert (ship.name, toy.name) == ("Ship", "Ship")
        assert ship.key != toy.key

    def test_properties_next_to_a_reference_make_another_type(self) -> None:
        document = small(
            {
                "A": {"properties": {"x": {"type": "string"}}},
                "B": {"properties": {"a": {"$ref": "#/definitions/A", "properties": {"y": {"type": "string"}}}}},
            }
        )
        both = named(document, "B").properties["a"]
        assert (list(both.properties), both.name) == (["x", "y"], "")
        assert both.key != named(document, "A").key

    def test_a_reference_to_a_reference_is_the_last_one(self) -> None:
        document = small(
            {
                "A": {"type": "string"},
                "B": {"$ref": "#/definitions/A", "description": "b"},
                "C": {"properties": {"b": {"$ref": "#/definitions/B"}}},
            }
        )
        used = named(document, "C").properties["b"]
        assert (used.name, used.type, used.get("description")) == ("A", "string", "b")


class TestComposition:
    def test_properties_of_all_of_come_first_and_own_ones_replace_them(self, fleet: Document) -> None:
        ship = body(fleet, "PUT", SHIP)
        assert list(ship.properties) == ["id", "name", "type", "location", "tags", "properties", "sku"]
        assert ship.required == ("location",)
        assert ship.type == "object"

    def test_all_of_that_leads_back_to_itself_ends(self) -> None:
        document = small(
            {
                "A": {"allOf": [{"$ref": "#/definitions/B"}], "properties": {"a": {"type": "string"}}},
                "B": {"allOf": [{"$ref": "#/definitions/A"}], "properties": {"b": {"type": "string"}}},
            }
        )
        assert list(named(document, "A").properties) == ["b", "a"]
        assert list(named(document, "B").properties) == ["a", "b"]

    def test_all_of_one_is_that_one_with_a_few_words_more(self, zoo: Document) -> None:
        home = named(zoo, "Pet").properties["home"]
        assert (home.name, home.get("readOnly"), home.type) == ("Home", True, "object")

    def test_a_choice_between_one_and_null_is_that_one_or_null(self, zoo: Document) -> None:
        chip = named(zoo, "Pet").properties["chip"]
        assert (chip.name, chip.nullable, chip.get("description")) == ("Chip", True, "Below the skin.")
        assert not named(zoo, "Chip").nullable

    def test_a_choice_is_offered_as_it_is(self, zoo: Document) -> None:
        weight = named(zoo, "Pet").properties["weight"]
        assert ([part.type for part in weight.one_of], weight.type) == (["integer", "string"], "")

    @pytest.mark.parametrize(
        ("schema", "spec", "expected"),
        [
            ({"type": "string", "x-nullable": True}, "2.0", ("string", True)),
            ({"type": "string", "nullable": True}, "3.0", ("string", True)),
            ({"type": ["string", "null"]}, "3.1", ("string", True)),
            ({"oneOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}, "3.1", ("", True)),
            ({"type": ["string", "integer"]}, "3.1", ("", False)),
            ({"properties": {}}, "2.0", ("object", False)),
            ({"items": {}}, "2.0", ("array", False)),
            ({"enum": ["a", None]}, "3.0", ("string", False)),
            ({}, "2.0", ("", False)),
            (True, "3.1", ("", False)),
        ],
    )
    def test_a_type_is_one_word_and_null_is_a_matter_of_its_own(
        self, schema: Any, spec: str, expected: tuple[str, bool]
    ) -> None:
        found = named(small({"A": schema}, spec), "A")
        assert (found.type, found.nullable) == expected

    def test_what_other_properties_may_be_is_said_or_not(self, zoo: Document, fleet: Document) -> None:
        tags = body(fleet, "PUT", SHIP).properties["tags"].additional
        assert isinstance(tags, Schema)
        assert tags.type == "string"
        assert named(zoo, "Chip").additional is False
        assert named(zoo, "Home").additional is True
        assert named(zoo, "Pet").additional is None


class TestDiscriminators:
    def test_in_openapi_2_all_definitions_that_derive_are_variants(self, fleet: Document) -> None:
        cargo = body(fleet, "PUT", SHIP).properties["properties"].properties["cargo"].items
        assert cargo is not None
        assert cargo.discriminator is not None
        assert cargo.discriminator.property == "kind"
        variants = {value: list(schema.properties) for value, schema in cargo.discriminator.mapping.items()}
        assert variants == {"liquid": ["kind", "weight", "volume"], "Oil": ["kind", "weight", "volume", "grade"]}

    def test_a_variant_with_variants_has_the_discriminator_of_what_it_derives_from(self, fleet: Document) -> None:
        liquid = named(fleet, "Liquid").discriminator
        assert liquid is not None
        assert (liquid.property, list(liquid.mapping)) == ("kind", ["Oil"])
        assert named(fleet, "Oil").discriminator is None

    def test_in_openapi_3_a_mapping_names_schemas_or_refers_to_them(self, zoo: Document) -> None:
        animal = body(zoo, "POST", "/animals").discriminator
        assert animal is not None
        assert animal.property == "species"
        assert {animal.mapping["cat"].name, animal.mapping["dog"].name} == {"Cat", "Dog"}

    def test_in_openapi_3_without_a_mapping_the_names_are_the_values(self) -> None:
        document = small(
            {
                "Pet": {"properties": {"kind": {"type": "string"}}, "discriminator": {"propertyName": "kind"}},
                "Cat": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"properties": {"lives": {}}}]},
            },
            "3.0",
        )
        pet = named(document, "Pet").discriminator
        assert pet is not None
        assert list(pet.mapping) == ["Cat"]


class TestOperations:
    def test_a_path_with_a_query_is_the_path_with_constants(self, fleet: Document) -> None:
        cargo = fleet.operations["GET", f"{SHIP}/cargo"]
        assert (cargo.path, cargo.query) == (f"{SHIP}/cargo", {"all": ""})

    def test_a_path_with_a_query_does_not_hide_the_one_without(self, fleet: Document) -> None:
        assert fleet.operations["GET", SHIP].id == "Ships_Get"
        full = fleet.operations["GET", f"{SHIP}?view=full"]
        assert (full.id, full.path, full.query) == ("Ships_Full", SHIP, {"view": "full"})

    def test_parameters_have_their_place_and_what_azure_says_of_them(self, fleet: Document) -> None:
        operation = fleet.operations["PUT", f"{GROUP}/ports/{{portName}}/{{berthType}}/{{berthName}}"]
        places = {param.name: param.place for param in operation.parameters}
        assert places["api-version"] == "query"
        assert places["body"] == "body"
        client = {param.name for param in operation.parameters if param.of_client}
        assert client == {"subscriptionId", "api-version"}
        assert [param.name for param in operation.parameters if not param.encode] == ["berthName"]
        name = operation.parameter("berthType")
        assert name is not None
        assert name.schema.get("enum") == ["dry", "wet"]

    def test_parameters_of_the_path_belong_to_all_its_operations(self, zoo: Document) -> None:
        found = zoo.operations["DELETE", "/animals/{id}"].parameter("id")
        assert found is not None
        assert (found.schema.type, found.required) == ("integer", True)

    def test_a_parameter_of_the_operation_replaces_that_of_the_path(self) -> None:
        path = {
            "parameters": [{"name": "a", "in": "query", "type": "string"}],
            "get": {"parameters": [{"name": "a", "in": "query", "type": "integer"}], "responses": {}},
        }
        document = load({"api": json.dumps({"swagger": "2.0", "paths": {"/x": path}}).encode()}, "api")
        assert [param.schema.type for param in document.operations["GET", "/x"].parameters] == ["integer"]

    def test_json_is_preferred_among_bodies(self, zoo: Document) -> None:
        create = zoo.operations["POST", "/animals"]
        assert create.content_types == ("text/plain", "application/json")
        assert create.body is not None
        assert create.body.name == "Animal"

    def test_a_list_of_steps_is_the_last_choice_of_bodies(self, zoo: Document) -> None:
        patch = zoo.operations["PATCH", "/animals/{id}"]
        assert patch.body is not None
        assert patch.body.name == "Animal"
        steps = patch.body_of("application/json-patch+json")
        assert steps is not None
        assert steps.type == "array"
        assert patch.body_of("text/html") is None

    def test_responses_are_by_status_with_their_headers(self, zoo: Document) -> None:
        responses = zoo.operations["POST", "/animals"].responses
        assert list(responses) == [201, "default"]
        assert responses[201].headers == ("Location",)
        problem = responses["default"].schema
        assert problem is not None
        assert problem.name == "Problem"
        assert "2XX" in zoo.operations["GET", "/animals/{id}"].responses

    def test_a_path_may_be_in_another_file(self, zoo: Document) -> None:
        keepers = zoo.operations["GET", "/keepers"].responses[200].schema
        assert keepers is not None
        assert keepers.items is not None
        assert keepers.items.properties["pets"].name == "Pet"

    def test_what_consumes_says_for_all_counts_for_each(self, fleet: Document) -> None:
        assert fleet.operations["PUT", SHIP].content_types == ("application/json",)

    def test_an_extension_is_found_by_its_name(self, fleet: Document) -> None:
        assert fleet.operations["GET", f"{GROUP}/ships"].extension("x-ms-pageable") == {"nextLinkName": "nextLink"}
        flag = body(fleet, "PUT", SHIP).properties["properties"].properties["flag"]
        assert flag.extension("x-ms-mutability") == ["create", "read"]
