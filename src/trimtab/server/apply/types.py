"""How the fields of a kind merge: a view of its schema that knows lists that are sets or maps, and what is atomic.

A type allows a scalar, a list, a map, or several of them (a place without a type, or of a preserved unknown field,
whose type is deduced from its value). Fields are compiled when they are first met, so that a Pod costs what it uses
and recursive definitions end. The rules are those of `k8s.io/kube-openapi/pkg/schemaconv`.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from trimtab.model.schema import Schema

Document = Mapping[str, Any]


def root_type(schema: Schema) -> Root:
    """The type of a kind's objects, metadata included. Compiled once for each schema."""
    found = _roots.get(schema)
    if found is None:
        found = _roots[schema] = _compiled(schema)
    return found


class Type:
    """What may stand at a place, and how it merges."""

    __slots__ = ("list", "map", "scalar")

    def __init__(self, scalar: str = "", list: List | None = None, map: Map | None = None) -> None:  # noqa: A002
        self.scalar = scalar  # string, numeric, boolean, untyped; "" when no scalar may stand here
        self.list = list
        self.map = map


class Root(Type):
    """The type of whole objects, which are maps with metadata."""

    __slots__ = ("loose", "metadata")

    map: Map

    def __init__(self, map: Map, metadata: Map, *, loose: bool = False) -> None:  # noqa: A002
        """`loose`: some place in it has no type."""
        super().__init__(map=map)
        self.metadata = metadata
        self.loose = loose


class Map:
    """An object: declared fields, and the type of all others (None: there may be no others)."""

    __slots__ = ("atomic", "element", "fields")

    def __init__(self, fields: Fields, element: Type | None, atomic: bool) -> None:
        self.fields = fields
        self.element = element
        self.atomic = atomic


class List:
    """A list: atomic, a map by `keys`, or (without keys) a set. `defaults` are of keys that may be left out."""

    __slots__ = ("atomic", "defaults", "element", "keys")

    def __init__(self, element: Type, atomic: bool, keys: tuple[str, ...], defaults: dict[str, Any]) -> None:
        self.element = element
        self.atomic = atomic
        self.keys = keys
        self.defaults = defaults


class Fields(dict[str, Type | None]):
    """The types of a map's fields. What is not declared has the map's element type, and is not kept."""

    __slots__ = ("compiler", "element", "preserve", "properties")

    def __init__(self, properties: Document, compiler: Compiler, preserve: bool, element: Type | None) -> None:
        super().__init__()
        self.properties = properties
        self.compiler = compiler
        self.preserve = preserve
        self.element = element

    def __missing__(self, name: str) -> Type | None:
        declared = self.properties.get(name)
        if declared is None:
            return self.element
        found = self[name] = self.compiler.type(declared, self.preserve)
        return found


class Compiler:
    """Makes types of schemas. Named ones are made once, which also ends the recursion of those that hold themselves."""

    def __init__(self, definitions: Document) -> None:
        self.definitions = definitions
        self.named: dict[tuple[str, str], Type] = {}
        self.untyped = Type("untyped")
        self.untyped.list = List(self.untyped, True, (), {})
        self.untyped.map = Map(self._no_fields(self.untyped), self.untyped, True)
        self.deduced = Type("untyped", self.untyped.list)
        self.free = self.deduced.map = Map(self._no_fields(self.deduced), self.deduced, False)

    def type(self, schema: Document, preserve: bool) -> Type:
        if name := _reference(schema):
            return self._referenced(name, schema.get("x-kubernetes-map-type", ""))
        return self._filled(Type(), schema, preserve)

    def _referenced(self, name: str, relationship: str) -> Type:
        key = (name, relationship)
        found = self.named.get(key)
        if found is None:
            found = self.named[key] = Type()
            if name.endswith(".api.resource.Quantity"):
                found.scalar = "untyped"
            elif name.endswith(".runtime.RawExtension"):
                found.scalar, found.list, found.map = "untyped", self.untyped.list, self.untyped.map
            else:
                self._filled(found, self.definitions.get(name, {}), False)
            if relationship and found.map is not None:
                found.map = Map(found.map.fields, found.map.element, relationship == "atomic")
        return found

    def _filled(self, made: Type, schema: Document, preserve: bool) -> Type:
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        kind = schema.get("type", "")
        if kind in ("", "object"):
            made.map = self._map(schema, preserve)
        if kind in ("", "array"):
            made.list = self._list(schema, preserve)
        if kind == "":
            made.scalar = "untyped"
        elif kind in ("integer", "number"):
            made.scalar = "numeric"
        elif kind == "boolean":
            made.scalar = "boolean"
        elif kind == "string":
            made.scalar = "string" if schema.get("format", "") in ("", "byte") else "untyped"
        return made

    def _map(self, schema: Document, preserve: bool) -> Map:
        properties = schema.get("properties", {})
        if schema.get("x-kubernetes-embedded-resource"):
            properties = _TYPE_META | {"metadata": OBJECT_META} | properties
        others = schema.get("additionalProperties")
        element: Type | None
        if isinstance(others, Mapping):
            element = self.type(others, preserve)
        elif others is True or (others is None and (preserve or not properties)):
            element = self.deduced
        else:
            element = None
        fields = Fields(properties, self, preserve, element)
        return Map(fields, element, schema.get("x-kubernetes-map-type") == "atomic")

    def _list(self, schema: Document, preserve: bool) -> List:
        items = schema.get("items")
        element = self.type(items, preserve) if items else self.untyped
        atomic, keys = _relationship(schema)
        defaults = {}
        if keys and element.map is not None:
            declared = element.map.fields.properties
            defaults = {k: declared[k]["default"] for k in keys if declared.get(k, {}).get("default") is not None}
            if self.definitions and not _reference(items or {}).endswith(".ObjectReference"):
                defaults = {k: _zero(k, declared.get(k, {})) for k in keys} | defaults
        return List(element, atomic, keys, defaults)

    def _no_fields(self, element: Type) -> Fields:
        return Fields({}, self, True, element)


def _reference(schema: Document) -> str:
    """The name of the definition that a schema refers to; "" when it speaks for itself."""
    parts = schema.get("allOf", ())
    reference: str = schema.get("$ref") or (parts[0].get("$ref", "") if len(parts) == 1 else "")
    return reference.rpartition("/")[2]


def _zero(key: str, schema: Document) -> Any:
    """What the key of a built-in kind's list element is when it is left out, where its definition does not say."""
    if key == "protocol":
        return "TCP"
    return 0 if schema.get("type") == "integer" else ""


def _relationship(schema: Document) -> tuple[bool, tuple[str, ...]]:
    """Whether a list is atomic, and its keys."""
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        return False, tuple(sorted(schema.get("x-kubernetes-list-map-keys", ())))
    if kind is not None:
        return kind != "set", ()
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    if strategy in ("merge", "merge,retainKeys"):
        key = schema.get("x-kubernetes-patch-merge-key")
        return False, (key,) if key else ()
    return True, ()


def _compiled(schema: Schema) -> Root:
    compiler = Compiler(schema.definitions)
    root = compiler.type(schema.document, False).map or compiler.free
    fields = root.fields
    declared = fields.properties.get("metadata") or {}
    if not ("$ref" in declared or "allOf" in declared):
        own = {**OBJECT_META["properties"], **(declared.get("properties") or {})}
        properties = {**_TYPE_META, **fields.properties, "metadata": {**OBJECT_META, "properties": own}}
        fields = Fields(properties, compiler, fields.preserve, fields.element)
    metadata = fields["metadata"]
    loose = not schema.native and _is_loose(schema.document)
    return Root(Map(fields, root.element, False), (metadata and metadata.map) or compiler.free, loose=loose)


def _is_loose(schema: Document) -> bool:
    """Whether there may be a truth or a number, as one likes."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
        return True
    if not schema.get("type"):
        return not schema.get("x-kubernetes-int-or-string")
    others, items = schema.get("additionalProperties"), schema.get("items")
    inner = (*(schema.get("properties") or {}).values(), *(part for part in (others, items) if part is not None))
    return any(part is True or (isinstance(part, Mapping) and _is_loose(part)) for part in inner)


_STRING = {"type": "string"}
_STRINGS = {"type": "object", "additionalProperties": _STRING}
_TIME = {"type": "string", "format": "date-time"}
_INTEGER = {"type": "integer", "format": "int64"}
_TYPE_META: dict[str, Any] = {"apiVersion": _STRING, "kind": _STRING}

OBJECT_META: dict[str, Any] = {
    "type": "object",
    "properties": {
        "annotations": _STRINGS,
        "creationTimestamp": _TIME,
        "deletionGracePeriodSeconds": _INTEGER,
        "deletionTimestamp": _TIME,
        "finalizers": {"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"},
        "generateName": _STRING,
        "generation": _INTEGER,
        "labels": _STRINGS,
        "managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
        "name": _STRING,
        "namespace": _STRING,
        "ownerReferences": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "apiVersion": _STRING,
                    "blockOwnerDeletion": {"type": "boolean"},
                    "controller": {"type": "boolean"},
                    "kind": _STRING,
                    "name": _STRING,
                    "uid": _STRING,
                },
                "x-kubernetes-map-type": "atomic",
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
        "resourceVersion": _STRING,
        "selfLink": _STRING,
        "uid": _STRING,
    },
}

_roots: weakref.WeakKeyDictionary[Schema, Root] = weakref.WeakKeyDictionary()
