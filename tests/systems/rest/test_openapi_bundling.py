"""A part of a document as one file says the same as the whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.systems.rest.openapi_kit import FLEET, OWN, azure, others, real, told
from trimtab.systems.rest.openapi import Document, DocumentError, bundle, from_path, load

SHIP = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/Acme.Fleet/ships/{shipName}"


def again(document: Document, *keys: tuple[str, str]) -> Document:
    return load({"openapi.json": bundle(document, keys or document.operations)}, "openapi.json")


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_all_operations_in_one_file_are_the_same(path: Path) -> None:
    document = from_path(path)
    bundled = again(document)
    assert list(bundled.operations) == list(document.operations)
    assert (bundled.title, bundled.version, bundled.spec) == (document.title, document.version, document.spec)
    assert (bundled.base_path, bundled.is_arm) == (document.base_path, document.is_arm)
    for key in document.operations:
        assert told(bundled, key) == told(document, key)


def test_only_what_an_operation_reaches_is_in_the_file() -> None:
    bundled = again(from_path(FLEET), ("GET", f"{SHIP}/instanceView"))
    assert [schema.name for schema in bundled.definitions()] == ["ShipView"]
    assert list(bundled.operations) == [("GET", f"{SHIP}/instanceView")]


def test_variants_that_nobody_refers_to_are_in_the_file() -> None:
    bundled = again(from_path(FLEET), ("PUT", SHIP))
    assert {"Cargo", "Liquid", "Oil"} <= {schema.name for schema in bundled.definitions()}


def test_the_first_files_names_are_kept_where_two_are_the_same() -> None:
    bundled = again(from_path(FLEET), ("PUT", SHIP))
    ship = bundled.operations["PUT", SHIP].body
    assert ship is not None
    assert ship.name == "Ship"
    assert ship.properties["properties"].properties["toy"].name == "Ship_2"


def test_a_variant_that_gets_another_name_keeps_its_value() -> None:
    other = {
        "definitions": {
            "Base": {"discriminator": "kind", "properties": {"kind": {"type": "string"}}},
            "Cat": {"allOf": [{"$ref": "#/definitions/Base"}]},
        }
    }
    schemas = {
        "Cat": {"properties": {"own": {"type": "string"}}},
        "All": {"properties": {"one": {"$ref": "#/definitions/Cat"}, "two": {"$ref": "b.json#/definitions/Base"}}},
    }
    get = {"get": {"responses": {"200": {"description": "", "schema": {"$ref": "#/definitions/All"}}}}}
    tree = {"swagger": "2.0", "paths": {"/x": get}, "definitions": schemas}
    document = load({"a.json": json.dumps(tree).encode(), "b.json": json.dumps(other).encode()}, "a.json")
    assert told(again(document), ("GET", "/x")) == told(document, ("GET", "/x"))


def test_examples_are_left_out() -> None:
    assert b"example.json" not in bundle(from_path(FLEET), [("PUT", SHIP)])
    assert b"x-ms-examples" not in bundle(from_path(FLEET), [("PUT", SHIP)])


def test_an_operation_that_is_not_there_is_named() -> None:
    with pytest.raises(DocumentError, match="has no operation GET /nowhere"):
        bundle(from_path(FLEET), [("GET", "/nowhere")])


@pytest.mark.slow
def test_the_real_documents_of_azure_are_the_same_in_one_file() -> None:
    for path in azure():
        if path.stat().st_size < 300_000:
            document = from_path(path)
            bundled = again(document)
            assert all(told(bundled, key) == told(document, key) for key in document.operations), path.name


def test_other_real_documents_are_the_same_in_one_file() -> None:
    for path in others():
        if path.stat().st_size < 200_000:
            document = from_path(path)
            bundled = again(document)
            assert all(told(bundled, key) == told(document, key) for key in document.operations), path.name


def test_one_kind_of_a_large_document_fits_a_config_map() -> None:
    path = real("azure-specs/specification/web/resource-manager/Microsoft.Web/stable/2024-04-01/WebApps.json")
    document = from_path(path)
    site = next(path for method, path in document.operations if path.endswith("/sites/{name}"))
    small = bundle(document, [key for key in document.operations if key[1] == site])
    assert len(small) < 150_000
