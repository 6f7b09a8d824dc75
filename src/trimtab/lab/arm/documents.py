"""What an API offers: from OpenAPI documents (2 and 3) to routes, and from a path to its route.

Literal parts of a path are found whatever their case, as ARM does. A path that begins with a parameter ("/{scope}/…") is
tried last, and that parameter takes as much of the path as is left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from trimtab.lab.arm.schemas import Field, Files, Raw

METHODS = ("get", "put", "post", "patch", "delete", "head")


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    body: Field | None = None
    answers: dict[str, Field | None] = {}
    long_running: bool = False
    items: str = ""  # of a list: the property with the items
    examples: tuple[Any, ...] = ()


class Names(msgspec.Struct, frozen=True):
    """What a resource may be called."""

    pattern: re.Pattern[str]
    shortest: int
    longest: int

    def allow(self, name: str) -> bool:
        return self.shortest <= len(name) <= self.longest and self.pattern.search(name) is not None


ANY = Names(re.compile(""), 1, 1000)


class Route(msgspec.Struct, kw_only=True):
    """A path of the documents. `type` is ARM's name of what is there."""

    template: str
    segments: tuple[str, ...]
    type: str
    operations: dict[str, Operation]
    versions: set[str]
    names: Names = ANY
    single: str = ""  # the only name there can be, as in blobServices/default
    embedded: dict[str, Route] = {}
    """Lists in `properties` whose items are resources of their own, with the route of those."""

    @property
    def schema(self) -> Field | None:
        """What a read shows."""
        for method, codes in (("GET", ("200",)), ("PUT", ("200", "201")), ("PATCH", ("200",))):
            operation = self.operations.get(method)
            for code in codes if operation else ():
                found = operation.answers.get(code) if operation else None
                if found is not None:
                    return found
        put = self.operations.get("PUT")
        return put.body if put else None


class Routes:
    """All paths of the documents."""

    def __init__(self) -> None:
        self._tree: dict[str, Any] = {}
        self._scoped: list[tuple[re.Pattern[str], Route]] = []
        self.all: list[Route] = []

    def add(
        self,
        template: str,
        operations: Mapping[str, Operation],
        version: str,
        single: str = "",
        names: Names = ANY,
    ) -> None:
        segments = tuple(part for part in template.split("?")[0].split("/") if part)
        if segments and segments[0].startswith("{"):
            known = next((route for _, route in self._scoped if _same(route.segments, segments)), None)
        else:
            node = self._tree
            for part in segments:
                node = node.setdefault("{" if part.startswith("{") else part.lower(), {})
            known = node.get("")
        if known is not None:
            known.operations.update(operations)
            known.versions.add(version)
            return
        route = Route(
            template=template,
            segments=segments,
            type=type_of(segments),
            operations=dict(operations),
            versions={version},
            names=names,
            single=single or ("" if not segments or segments[-1].startswith("{") else segments[-1]),
        )
        self.all.append(route)
        if segments and segments[0].startswith("{"):
            rest = "".join(r"/([^/]+)" if part.startswith("{") else f"/{re.escape(part)}" for part in segments[1:])
            self._scoped.append((re.compile(rf"(/.+?){rest}", re.IGNORECASE), route))
        else:
            node[""] = route

    def find(self, path: str) -> Route | None:
        found = _walk(self._tree, [part for part in path.lower().split("/") if part], 0)
        if found is not None:
            return found
        # the longest first, so that "/{scope}/providers/X/y/{name}" comes before "/{id}"
        fitting = (route for pattern, route in self._scoped if pattern.fullmatch(path))
        return max(fitting, key=lambda route: len(route.segments), default=None)

    def of_type(self, name: str) -> Route | None:
        """Where resources of a type are, by its name."""
        wanted = name.lower()
        found = (each for each in self.all if each.type.lower() == wanted and "PUT" in each.operations)
        return next(found, None)


def read(documents: Iterable[Path | Raw]) -> Routes:
    """The routes of documents: files, or what was read from them."""
    files, routes = Files(), Routes()
    for number, each in enumerate(documents):
        if isinstance(each, Path):
            name = str(each.resolve())
            document = files.load(name)
        else:
            name = f"/document-{number}.json"
            document = each
            files.add(name, document)
        _read(document, name, files, routes)
    for route in routes.all:
        _join_embedded(route, routes)
    return routes


def type_of(segments: tuple[str, ...]) -> str:
    """ARM's name of what is at a path: "Microsoft.Network/virtualNetworks/subnets"."""
    lower = [part.lower() for part in segments]
    if "providers" in lower:
        rest = segments[len(lower) - lower[::-1].index("providers") :]
        return "/".join(rest[:1] + rest[1::2])
    if lower[:1] == ["subscriptions"] and lower[2:3] == ["resourcegroups"]:
        return "Microsoft.Resources/" + "/".join((*segments[2::2],))
    return "Microsoft.Resources/" + "/".join(segments[::2])


def _read(document: Raw, name: str, files: Files, routes: Routes) -> None:
    version = str(document.get("info", {}).get("version", ""))
    prefix = str(document.get("basePath", "")).rstrip("/")
    for section in ("paths", "x-ms-paths"):
        for path, item in document.get(section, {}).items():
            item, place, _ = files.follow(item, name)
            shared = item.get("parameters", [])
            operations = {
                method.upper(): _operation(method.upper(), item[method], shared, place, files)
                for method in METHODS
                if method in item
            }
            own = _own_parameter(path, item, place, files)
            routes.add(prefix + path, operations, version, _single(own), _names(own))


def _operation(method: str, raw: Raw, shared: list[Raw], file: str, files: Files) -> Operation:
    body: Field | None = None
    for each in (*shared, *raw.get("parameters", ())):
        parameter, place, _ = files.follow(each, file)
        if parameter.get("in") == "body" and "schema" in parameter:
            body = files.field(parameter["schema"], place)
    if "requestBody" in raw:
        body = _content(*files.follow(raw["requestBody"], file)[:2], files)
    answers: dict[str, Field | None] = {}
    for code, each in raw.get("responses", {}).items():
        answer, place, _ = files.follow(each, file)
        answers[code] = files.field(answer["schema"], place) if "schema" in answer else _content(answer, place, files)
    return Operation(
        method=method,
        body=body,
        answers=answers,
        long_running=bool(raw.get("x-ms-long-running-operation")),
        items=_items(raw, answers),
        examples=tuple(files.example(each, file) for each in list(raw.get("x-ms-examples", {}).values())[:1]),
    )


def _content(whole: Raw, file: str, files: Files) -> Field | None:
    for kind, each in whole.get("content", {}).items():
        if "json" in kind and "schema" in each:
            return files.field(each["schema"], file)
    return None


def _items(raw: Raw, answers: Mapping[str, Field | None]) -> str:
    pageable = raw.get("x-ms-pageable")
    if isinstance(pageable, dict):
        return str(pageable.get("itemName", "value"))
    answer = answers.get("200")
    value = answer.schema.properties.get("value") if answer is not None else None
    return "value" if value is not None and value.schema.type == "array" else ""


def _own_parameter(path: str, item: Raw, file: str, files: Files) -> Raw:
    """The last parameter of a path, which is the resource's own name."""
    last = path.rstrip("/").rpartition("/")[2]
    for method in METHODS if last.startswith("{") else ():
        for each in (*item.get("parameters", ()), *item.get(method, {}).get("parameters", ())):
            parameter = files.follow(each, file)[0]
            if parameter.get("in") == "path" and parameter.get("name") == last.strip("{}"):
                return {**parameter, **parameter.get("schema", {})}
    return {}


def _single(parameter: Raw) -> str:
    """The only value, when there is but one."""
    values = parameter.get("enum", ())
    return str(values[0]) if len(values) == 1 else ""


def _names(parameter: Raw) -> Names:
    try:
        pattern = re.compile(parameter.get("pattern", ""))
    except re.error:  # of another dialect
        pattern = re.compile("")
    return Names(pattern, parameter.get("minLength", 1), parameter.get("maxLength", 1000))


def _join_embedded(route: Route, routes: Routes) -> None:
    """A list in `properties` whose items have the type of a child resource's body."""
    field = route.schema
    inner = field.schema.properties.get("properties") if field is not None else None
    for name, each in inner.schema.properties.items() if inner is not None and "PUT" in route.operations else ():
        child = routes.find(f"{route.template}/{name}/x")
        body = child.operations["PUT"].body if child is not None and "PUT" in child.operations else None
        items = each.schema.items
        if child is not None and body is not None and items is not None and body.schema is items.schema:
            route.embedded = {**route.embedded, name: child}


def _walk(node: dict[str, Any], parts: list[str], at: int) -> Route | None:
    if at == len(parts):
        found: Route | None = node.get("")
        return found
    for key in (parts[at], "{"):
        below = node.get(key)
        found = _walk(below, parts, at + 1) if below is not None else None
        if found is not None:
            return found
    return None


def _same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    blank = [re.sub(r"\{[^}]*\}", "{", "/".join(each)).lower() for each in (one, other)]
    return blank[0] == blank[1]


BUILT_IN: Raw = json.loads(
    """
{"swagger": "2.0", "info": {"version": "2021-04-01"}, "paths": {
 "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}": {
  "put": {"parameters": [{"in": "body", "name": "body", "schema": {"$ref": "#/definitions/ResourceGroup"}}],
   "responses": {"200": {"schema": {"$ref": "#/definitions/ResourceGroup"}},
    "201": {"schema": {"$ref": "#/definitions/ResourceGroup"}}}},
  "patch": {"parameters": [{"in": "body", "name": "body", "schema": {"$ref": "#/definitions/Patchable"}}],
   "responses": {"200": {"schema": {"$ref": "#/definitions/ResourceGroup"}}}},
  "get": {"responses": {"200": {"schema": {"$ref": "#/definitions/ResourceGroup"}}}},
  "head": {"responses": {"204": {}, "404": {}}},
  "delete": {"responses": {"200": {}, "202": {}}, "x-ms-long-running-operation": true}},
 "/subscriptions/{subscriptionId}/resourceGroups": {
  "get": {"responses": {"200": {}}, "x-ms-pageable": {"nextLinkName": "nextLink"}}},
 "/subscriptions/{subscriptionId}/resources": {
  "get": {"responses": {"200": {}}, "x-ms-pageable": {"nextLinkName": "nextLink"}}},
 "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/resources": {
  "get": {"responses": {"200": {}}, "x-ms-pageable": {"nextLinkName": "nextLink"}}}},
"definitions": {
 "Patchable": {"type": "object", "properties": {"managedBy": {"type": "string"}, "tags": {"$ref": "#/definitions/Tags"}}},
 "Tags": {"type": "object", "additionalProperties": {"type": "string"}},
 "ResourceGroup": {"type": "object", "required": ["location"], "properties": {
  "id": {"type": "string", "readOnly": true}, "name": {"type": "string", "readOnly": true},
  "type": {"type": "string", "readOnly": true}, "managedBy": {"type": "string"},
  "location": {"type": "string", "x-ms-mutability": ["create", "read"]}, "tags": {"$ref": "#/definitions/Tags"},
  "properties": {"type": "object", "properties": {"provisioningState": {"type": "string", "readOnly": true}}}}}}}
"""
)
"""Resource groups, which every resource is in, and the lists of everything."""
