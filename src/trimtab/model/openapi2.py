"""OpenAPI v2 (Swagger) of all kinds, made from the documents of v3: for clients that know nothing newer, as helm, Go's
`discovery.OpenAPISchema()` and kubectl before 1.29.

What v2 cannot say is left out, so that an old client never refuses what the server takes: alternatives (oneOf, anyOf, not),
everything about a field that may be null, and the fields of objects with unknown ones. Defaults are the server's own work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Document = dict[str, Any]

V3, V2 = "#/components/schemas/", "#/definitions/"
METHODS = ("get", "put", "post", "delete", "patch")
SECURITY: Document = {
    "securityDefinitions": {
        "BearerToken": {
            "description": "Bearer Token authentication",
            "type": "apiKey",
            "name": "authorization",
            "in": "header",
        }
    },
    "security": [{"BearerToken": []}],
}
_DROPPED = frozenset(("default", "nullable", "oneOf", "anyOf", "not", "example", "deprecated", "writeOnly"))
_ABOUT = frozenset(("description", "title"))
_SHAPE = frozenset(("type", "format", "items", "properties", "additionalProperties", "required", "allOf"))


def document(documents: Iterable[Mapping[str, Any]], *, version: str) -> Document:
    """One document for all groups and versions."""
    paths: Document = {}
    definitions: Document = {}
    for each in documents:
        paths |= {path: _item(item) for path, item in each["paths"].items()}
        for name, definition in each["components"]["schemas"].items():
            if name not in definitions:
                definitions[name] = schema(definition)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        **SECURITY,
    }


def schema(said: Mapping[str, Any]) -> Document:
    """A schema of v3 as v2 can say it."""
    if (
        said.get("nullable")
        or said.get("x-kubernetes-int-or-string")
        or said.get("x-kubernetes-preserve-unknown-fields")
    ):
        gone = _SHAPE if said.get("nullable") or not said.get("x-kubernetes-group-version-kind") else _SHAPE - {"type"}
        kept = {word: value for word, value in said.items() if word in _ABOUT or word.startswith("x-")}
        return kept | {word: said[word] for word in ("type",) if word in said and word not in gone}
    written: Document = {}
    for word, value in said.items():
        if word in _DROPPED:
            continue
        match word:
            case "$ref":
                written[word] = value.replace(V3, V2)
            case "allOf":
                if len(value) == 1 and "$ref" in value[0]:
                    written["$ref"] = value[0]["$ref"].replace(V3, V2)
            case "properties":
                written[word] = {name: schema(inner) for name, inner in value.items()}
            case "items" | "additionalProperties":
                written[word] = schema(value) if isinstance(value, Mapping) else value
            case _:
                written[word] = value
    return written


def _item(item: Mapping[str, Any]) -> Document:
    written: Document = {method: _operation(item[method]) for method in METHODS if method in item}
    if parameters := item.get("parameters"):
        written["parameters"] = [_parameter(one) for one in parameters]
    return written


def _operation(said: Mapping[str, Any]) -> Document:
    body = said.get("requestBody")
    written: Document = {word: said[word] for word in ("description",) if word in said}
    written["consumes"] = list(body["content"]) if body else ["*/*"]
    answers = [answer["content"] for answer in said["responses"].values() if "content" in answer]
    written["produces"] = list(answers[0]) if answers else ["application/json"]
    written["schemes"] = ["https"]
    written["tags"] = said["tags"]
    written["operationId"] = said["operationId"]
    parameters = [_parameter(one) for one in said.get("parameters") or ()]
    if body:
        parameters.insert(0, _body(body))
    if parameters:
        written["parameters"] = parameters
    written["responses"] = {code: _answer(answer) for code, answer in said["responses"].items()}
    return {**written, **{word: value for word, value in said.items() if word.startswith("x-")}}


def _body(body: Mapping[str, Any]) -> Document:
    form = next(iter(body["content"].values()))["schema"]
    required = {"required": True} if body.get("required") else {}
    return {"name": "body", "in": "body", **required, "schema": schema(form)}


def _parameter(said: Mapping[str, Any]) -> Document:
    written: Document = {"uniqueItems": True, "type": said["schema"]["type"]}
    return {**written, **{word: value for word, value in said.items() if word != "schema"}}


def _answer(said: Mapping[str, Any]) -> Document:
    written: Document = {"description": said["description"]}
    if content := said.get("content"):
        written["schema"] = schema(next(iter(content.values()))["schema"])
    return written
