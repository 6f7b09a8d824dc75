"""Small documents with one resource each, and the Models of them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from trimtab.systems.rest.compiling.compile import compile_model
from trimtab.systems.rest.compiling.fields import FieldRow, fields
from trimtab.systems.rest.compiling.problems import CompileError
from trimtab.systems.rest.kinds import RestDefinition, RestServiceSpec
from trimtab.systems.rest.model import Model, Node
from trimtab.systems.rest.openapi import Document
from trimtab.systems.rest.openapi.loading import load

PLAIN = "/things/{name}"
ARM = "/subscriptions/{subscriptionId}/resourceGroups/{group}/providers/Microsoft.Zoo/widgets/{widgetName}"
TEXT = {"type": "string"}


def obj(**properties: Any) -> dict[str, Any]:
    """An object's schema; `required` are those whose names end with an underscore."""
    needed = [name.removesuffix("_") for name in properties if name.endswith("_")]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name.removesuffix("_"): of for name, of in properties.items()},
    }
    return {**schema, "required": needed} if needed else schema


def ref(name: str, **siblings: Any) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{name}", **siblings}


def operation(
    *, body: Any = None, answer: Any = None, status: int = 200, parameters: Any = (), headers: Any = None, **more: Any
) -> dict[str, Any]:
    response: dict[str, Any] = {"description": "ok"}
    if answer is not None:
        response["schema"] = answer
    if headers:
        response["headers"] = {name: {"type": "string"} for name in headers}
    given = [{"name": "body", "in": "body", "schema": body}] if body is not None else []
    return {"parameters": [*given, *parameters], "responses": {str(status): response}, **more}


def swagger(paths: dict[str, Any], definitions: dict[str, Any] | None = None, **more: Any) -> Document:
    tree = {
        "swagger": "2.0",
        "info": {"title": "Zoo", "version": "2024-01-01"},
        "paths": paths,
        "definitions": definitions or {},
        **more,
    }
    return load({"zoo.json": json.dumps(tree).encode()}, "zoo.json")


def plain(
    create: Any, update: Any = None, read: Any = None, patch: Any = None, definitions: dict[str, Any] | None = None
) -> Document:
    """POST to the collection; what is left out is not there."""
    item: dict[str, Any] = {"get": operation(answer=read), "delete": operation(status=204)}
    if update is not None:
        item["put"] = operation(body=update)
    if patch is not None:
        item["patch"] = operation(body=patch)
    return swagger({"/things": {"post": operation(body=create, status=201)}, PLAIN: item}, definitions)


def arm(put: Any, patch: Any = None, read: Any = None, definitions: dict[str, Any] | None = None) -> Document:
    """PUT to the resource's own URL; GET answers the same unless something else is said."""
    item = {"put": operation(body=put), "get": operation(answer=read or put), "delete": operation(status=204)}
    if patch is not None:
        item["patch"] = operation(body=patch)
    return swagger({ARM: item}, definitions, host="management.azure.com")


def definition(document: Document, **spec: Any) -> RestDefinition:
    """All operations of the one resource, without those that are None, and what else is said of it."""
    methods = {"GET": "read", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    operations: dict[str, Any] = {}
    for method, path in document.operations:
        if path == "/things" and method == "POST":
            operations["create"] = {"method": method, "path": path}
        elif path in (PLAIN, ARM):
            operations[methods[method]] = {"method": method, "path": path}
    operations.setdefault("create", operations.get("update"))
    operations |= spec.pop("operations", {})
    base = {
        "serviceRef": "zoo",
        "names": {"kind": "Thing", "plural": "things"},
        "operations": {verb: each for verb, each in operations.items() if each is not None},
    }
    tree = {
        "apiVersion": "rest.trimtab.dev/v1alpha1",
        "kind": "RestDefinition",
        "metadata": {"name": "things"},
        "spec": base | spec,
    }
    return msgspec.convert(tree, RestDefinition, dec_hook=lambda kind, text: kind(text))


def compiled(document: Document, *, service: dict[str, Any] | None = None, **spec: Any) -> Model:
    about = {"endpoint": "http://127.0.0.1:1", "document": {"inline": "{}"}} | (service or {})
    return compile_model(
        document,
        definition(document, **spec),
        service=msgspec.convert(about, RestServiceSpec),
        service_name="zoo",
        group="zoo.rest.trimtab.dev",
    )


def problems(document: Document, **spec: Any) -> dict[str, str]:
    """By the field that has to change."""
    with pytest.raises(CompileError) as error:
        compiled(document, **spec)
    return {problem.path: problem.text for problem in error.value.problems}


def rows(model: Model) -> dict[str, FieldRow]:
    return {row.path: row for row in fields(model)}


def node(model: Model, path: str) -> Node:
    """The field at a path of names; `[]` is an item, `*` a value."""
    found = model.spec
    for name in path.replace("[]", ".[]").split("."):
        found = model.node(found)
        inner = found.items if name in ("[]", "*") else found.properties.get(name)
        assert inner is not None, f"there is no {name} of {path}"
        found = inner
    return model.node(found)
