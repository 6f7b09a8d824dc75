"""What the API tells of hub kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import orjson
import pytest

from tests.hub.served.conftest import HUB, INFRA, Home, addon
from tests.hub.served.test_served import answer
from tests.systems.rest.openapi_kit import told as told_of
from trimtab.server import openapi2
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.http import Request, Response
from trimtab.systems.rest.openapi import load


@pytest.mark.row(2)
@pytest.mark.row(30)
async def test_openapi_tells_the_two_words_of_metadata(home: Home) -> None:
    code, told = await answer(home, f"/openapi/v3/apis/{INFRA}")
    assert code == 200
    schemas = told["components"]["schemas"]
    metadata = schemas["dev.trimtab.infra.v3.Addon"]["properties"]["metadata"]
    [reference] = metadata["allOf"]
    words = schemas[reference["$ref"].rpartition("/")[2]]["properties"]
    assert {"project", "description", "name", "labels", "annotations", "managedFields"} <= words.keys()
    assert all(words[word].get("description") for word in ("project", "description"))


@pytest.mark.row(30)
async def test_openapi_has_words_for_every_field(home: Home) -> None:
    """`kubectl explain` says something wherever it is asked."""
    for api in (INFRA, HUB, "apps.trimtab.dev/v3", "infra.acme.io/v3"):
        _, told = await answer(home, f"/openapi/v3/apis/{api}")
        for name, schema in told["components"]["schemas"].items():
            assert schema.get("description"), name
            assert list(wordless(schema, name)) == []


def wordless(schema: Any, name: str) -> Iterator[str]:
    for word, part in (schema.get("properties") or {}).items():
        if not part.get("description"):
            yield f"{name}.{word}"
        yield from wordless(part, f"{name}.{word}")
    for below in ("items", "additionalProperties"):
        if isinstance(schema.get(below), dict):
            yield from wordless(schema[below], f"{name}[]")


@pytest.mark.row(30)
@pytest.mark.row(67)
async def test_openapi_of_every_kind_is_whole(home: Home) -> None:
    """Every reference leads somewhere, in every group, and both versions know every kind."""
    _, index = await answer(home, "/openapi/v3")
    paths = [path for path in index["paths"] if "trimtab.dev" in path or "acme.io" in path]
    assert len(paths) == 6
    for path in paths:
        _, told = await answer(home, f"/openapi/v3/{path}")
        assert told["openapi"].startswith("3.0")
        known = told["components"]["schemas"]
        missing = {one for one in references_in(told) if one.removeprefix("#/components/schemas/") not in known}
        assert not missing
    _, older = await answer(home, "/openapi/v2")
    for served in home.server.registry:
        if served.kind.group.endswith(("trimtab.dev", "acme.io")):
            assert any(f"/{served.kind.group}/" in path and served.kind.plural in path for path in older["paths"])


def references_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references_in, value.values()))
    return set().union(*map(references_in, value)) if isinstance(value, list) else set()


NAMED = f"/apis/{INFRA}/namespaces/{{namespace}}"


def parameters(told: dict[str, Any], path: str, method: str) -> set[str]:
    return {one["name"] for one in told["paths"][path][method].get("parameters", ())}


@pytest.mark.row(30)
async def test_openapi_tells_of_files_and_versions_only_where_a_kind_has_them(home: Home) -> None:
    _, infra = await answer(home, f"/openapi/v3/apis/{INFRA}")
    _, apps = await answer(home, "/openapi/v3/apis/apps.trimtab.dev/v3")
    _, hub = await answer(home, f"/openapi/v3/apis/{HUB}")
    parts = {path.partition("{name}/")[2]: path for path in infra["paths"] if "/blueprints/{name}/" in path}
    assert parts.keys() == {"status", "versions"}
    parts = {path.partition("{name}/")[2]: path for path in infra["paths"] if "/addons/{name}/" in path}
    assert parts.keys() == {"status", "versions", "artifacts", "artifacts/{path}"}
    assert {*infra["paths"][parts["artifacts/{path}"]]} == {"get", "put", "delete", "parameters"}
    parts = {path.partition("{name}/")[2]: path for path in infra["paths"] if "/clusters/{name}/" in path}
    assert parts.keys() == {"status"}
    assert not [path for path in hub["paths"] if path.endswith(("/artifacts", "/versions"))]
    assert f"/apis/{apps_of(home)}/namespaces/{{namespace}}/workloads/{{name}}/artifacts/{{path}}" in apps["paths"]


def apps_of(home: Home) -> str:
    return next(served.kind.api_version for served in home.server.registry if served.kind.kind == "Workload")


@pytest.mark.row(30)
async def test_openapi_tells_how_to_ask_for_a_version_and_for_lineage(home: Home) -> None:
    _, told = await answer(home, f"/openapi/v3/apis/{INFRA}")
    assert {"version", "includeLineage"} <= parameters(told, f"{NAMED}/addons/{{name}}", "get")
    assert "version" not in parameters(told, f"{NAMED}/clusters/{{name}}", "get")
    for method in ("get", "put", "patch"):
        assert "includeLineage" in parameters(told, f"{NAMED}/clusters/{{name}}", method)
    assert "includeLineage" in parameters(told, f"{NAMED}/addons", "get")
    assert "includeLineage" not in parameters(told, f"{NAMED}/addons/{{name}}", "delete")
    assert parameters(told, f"{NAMED}/addons/{{name}}/artifacts/{{path}}", "get") == {"version"}
    assert parameters(told, f"{NAMED}/addons/{{name}}/artifacts/{{path}}", "put") == {"digest", "fieldManager"}
    assert parameters(told, f"{NAMED}/addons/{{name}}/versions", "get") == set()


@pytest.mark.row(30)
async def test_a_kind_that_is_not_of_the_hub_has_none_of_it(home: Home) -> None:
    _, told = await answer(home, "/openapi/v3/apis/apps/v1")
    words = {one["name"] for path in told["paths"].values() for each in operations(path) for one in each}
    assert "dryRun" in words
    assert not {"version", "includeLineage", "digest"} & words


def operations(path: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [each.get("parameters", []) for method, each in path.items() if method != "parameters"]


@pytest.mark.row(30)
async def test_what_the_parts_answer_is_what_openapi_says(home: Home) -> None:
    await home.apply(addon("published", version="v1"))
    await home.apply(addon("draft"))
    _, told = await answer(home, f"/openapi/v3/apis/{INFRA}")
    for part, method in (
        ("published/versions", "get"),
        ("draft/artifacts", "get"),
        ("draft/artifacts/manifests/nginx.yaml", "put"),
        ("draft/artifacts", "get"),
        ("draft/artifacts/manifests/nginx.yaml", "delete"),
    ):
        body = "bytes" if method == "put" else None
        code, found = await answer(home, f"/apis/{INFRA}/namespaces/default/addons/{part}", method.upper(), body)
        template = f"{NAMED}/addons/{{name}}/{part.partition('/')[2].replace('manifests/nginx.yaml', '{path}')}"
        operation = told["paths"][template][method]
        schema = operation["responses"][str(code)]["content"]["application/json"]["schema"]
        check = jsonschema_rs.validator_for({**schema, "components": told["components"]})
        assert [str(error) for error in check.iter_errors(found)] == []
        known = told["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]
        assert found.keys() <= known.keys()


@pytest.mark.row(30)
@pytest.mark.row(67)
async def test_programs_that_read_openapi_read_ours(home: Home) -> None:
    """Every parameter of a path is declared, no operation has the name of another, and schemas are followed to their leaves."""
    for api in (INFRA, HUB, "apps.trimtab.dev/v3"):
        _, told = await answer(home, f"/openapi/v3/apis/{api}")
        read = load({"hub.json": orjson.dumps(told)}, "hub.json")
        names: list[str] = []
        for (method, path), operation in read.operations.items():
            placed = {param.name for param in operation.parameters if param.place == "path"}
            assert placed == set(re.findall(r"{(\w+)}", path)), (method, path)
            names.append(operation.id)
            assert told_of(read, (method, path))
        assert len(names) == len(set(names))
        assert any(name.endswith("NamespacedAddonArtifact") for name in names) == (api == INFRA)


@pytest.mark.row(30)
@pytest.mark.row(67)
async def test_the_older_form_tells_of_the_same_doors(home: Home) -> None:
    _, older = await answer(home, "/openapi/v2")
    addons = {path: each for path, each in older["paths"].items() if path.startswith(f"{NAMED}/addons/")}
    assert {path.partition("{name}")[2] for path in addons} >= {"", "/artifacts", "/artifacts/{path}", "/versions"}
    assert {"version", "includeLineage"} <= parameters(older, f"{NAMED}/addons/{{name}}", "get")
    assert "fieldValidation" in parameters(older, f"{NAMED}/addons/{{name}}", "patch")
    assert {*older["paths"][f"{NAMED}/addons/{{name}}/artifacts/{{path}}"]} == {"get", "put", "delete", "parameters"}
    missing = {one for one in references_in(older) if one.removeprefix("#/definitions/") not in older["definitions"]}
    assert not missing


@pytest.mark.row(30)
async def test_the_older_form_is_the_same_in_protobuf(home: Home) -> None:
    _, plain = await answer(home, "/openapi/v2")
    request = Request(
        method="GET",
        path="/openapi/v2",
        query={},
        headers={b"accept": openapi2.PROTOBUF},
        body=b"",
        user=User("ada", groups=(MASTERS, "system:authenticated")),
        warnings=[],
    )
    response = await home.server.handle(request)
    assert isinstance(response, Response)
    read = openapi2.message_class("Document").FromString(response.body)
    assert {named.name for named in read.definitions.additional_properties} == {*plain["definitions"]}
    found = {
        named.name: {field.name: {*map(named_parameter, value.parameters)} for field, value in doors(named.value)}
        for named in read.paths.path
    }
    assert found == {
        path: {
            method: {one["name"] for one in item[method].get("parameters", ())} for method in item if method in DOORS
        }
        for path, item in plain["paths"].items()
    }


DOORS = ("get", "put", "post", "delete", "patch")


def doors(item: Any) -> list[Any]:
    return [(field, value) for field, value in item.ListFields() if field.name in DOORS]


def named_parameter(item: Any) -> str:
    """The name, in whatever message that depends on the parameter's place."""
    one = item.parameter
    while not hasattr(one, "name"):
        ((_, one),) = one.ListFields()
    return str(one.name)


@pytest.mark.row(30)
async def test_wide_tables_say_why_a_resource_is_not_ready(home: Home) -> None:
    """Whatever kind has a column Ready has the words behind it, too: `kubectl get -o wide`."""
    kinds = [served.kind for served in home.server.registry if served.kind.group.endswith("trimtab.dev")]
    ready = {kind.kind for kind in kinds if any(column.name == "Ready" for column in kind.columns)}
    assert {"Project", "Cluster", "Workload", "Repository", "GitSync"} <= ready
    words = ".status.conditions[?(@.type=='Ready')].message"
    wide = {kind.kind for kind in kinds if any((c.path, c.priority) == (words, 1) for c in kind.columns)}
    assert wide == ready
