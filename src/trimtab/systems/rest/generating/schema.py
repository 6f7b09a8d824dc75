"""From the tree of a spec to its structural schema (apiextensions v1).

A structural schema has no references, so types are written out where they occur. A type inside itself is cut off there;
`Detail` bounds the rest. A resource ID may be a reference to another object, and a secret must be one to a Secret: of both
the schema says nothing, since admission says it better. Who writes a secret in plain text reads what to write instead.

What is required is asked for unless `resourceID` is given: of what exists already, a spec need not say everything.

An enumeration whose values the service takes in any case is not closed here, or what it answers could not be imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.schema.patterns import BadPattern, matcher
from trimtab.systems.rest.model import Comparator, FieldClass, Model, Node

Document = dict[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
NODES = 40_000
"""How many schemas a definition may have at most; one of them takes some 20 bytes."""
DESCRIPTION = 400
SCALARS = ("string", "integer", "number", "boolean")


class TooLarge(Exception):  # noqa: N818 - it reads as what happened
    """A schema that no API server would take."""


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a tree is written."""

    descriptions: bool = True
    variants: bool = True
    depth: int = 24


def body_schema(model: Model, detail: Detail) -> Document:
    """Of `spec`, without the control fields. What a creation needs is not required here: one that adopts by its ID needs
    nothing, and admission names what is missing. Raises TooLarge."""
    schema = _Writer(model, detail).written(model.spec, "", 0)
    _without_required(schema)
    return schema


def asked(model: Model, node: Node, path: str) -> list[str]:
    """Those of an object's required fields that a spec must have: nobody else gives them."""
    filled = {model.identity.field, *model.overlay.body}
    return [
        name
        for name in node.required
        if name in node.properties and _is_asked(node.properties[name], path, name, filled)
    ]


def _is_asked(node: Node, path: str, name: str, filled: set[str]) -> bool:
    return not (node.field is FieldClass.READ_ONLY or node.fill or _below(path, name) in filled)


def matchable(pattern: str) -> bool:
    """Whether an API server can match it: it has RE2's syntax, which knows no look-around and no back references."""
    try:
        matcher(pattern)
    except BadPattern:
        return False
    return True


class _Writer:
    """Writes one spec. `_within` are the types around the current one."""

    def __init__(self, model: Model, detail: Detail) -> None:
        self._model, self._detail = model, detail
        self._within: list[str] = []
        self._count = 0

    def written(self, node: Node, path: str, depth: int) -> Document:
        self._count += 1
        if self._count > NODES:
            raise TooLarge(f"{self._model.kind} has more than {NODES} fields")
        followed = self._model.node(node)
        if not node.ref or followed.reference or followed.field is FieldClass.SECRET:
            return self._node(followed, path, depth)
        if node.ref in self._within:
            return self._described(_open(followed), followed)
        self._within.append(node.ref)
        try:
            return self._node(followed, path, depth)
        finally:
            self._within.pop()

    def _node(self, node: Node, path: str, depth: int) -> Document:
        if node.field is FieldClass.SECRET or node.reference:
            return self._described({PRESERVE: True}, node)
        if node.type in SCALARS:
            return self._described(_scalar(node), node)
        if node.type == "any" or depth >= self._detail.depth:
            return self._described(_open(node), node)
        shape = {"array": self._list, "map": self._map}.get(node.type, self._object)
        return self._described(shape(node, path, depth), node)

    def _object(self, node: Node, path: str, depth: int) -> Document:
        properties = self._properties(node, path, depth)
        if node.discriminator and node.variants and self._detail.variants:
            self._add_variants(properties, node, path, depth)
        schema: Document = {"type": "object", "properties": properties, PRESERVE: True}
        if required := asked(self._model, node, path):
            schema["required"] = required
            for name in required if self._detail.descriptions else ():
                properties[name]["description"] = (
                    f"{properties[name].get('description', '')} Needed at creation.".strip()
                )
        return schema

    def _properties(self, node: Node, path: str, depth: int) -> Document:
        return {
            name: self.written(inner, _below(path, name), depth + 1)
            for name, inner in node.properties.items()
            if inner.field is not FieldClass.READ_ONLY
        }

    def _add_variants(self, properties: Document, node: Node, path: str, depth: int) -> None:
        """What any variant has. Where two mean different things by one name, it takes both."""
        for name in dict.fromkeys(node.variants.values()):
            if name in self._within:
                continue
            self._within.append(name)
            more = self._properties(self._model.node(self._model.types[name]), path, depth)
            self._within.pop()
            for key, schema in more.items():
                if key not in properties:
                    properties[key] = schema
                elif key not in node.properties and _without_text(properties[key]) != _without_text(schema):
                    properties[key] = _either(properties[key], schema)

    def _map(self, node: Node, path: str, depth: int) -> Document:
        if node.items is None:
            return {"type": "object", PRESERVE: True}
        values = self.written(node.items, _below(path, "*"), depth + 1)
        return {"type": "object", "additionalProperties": values}

    def _list(self, node: Node, path: str, depth: int) -> Document:
        items = {PRESERVE: True} if node.items is None else self.written(node.items, path + "[]", depth + 1)
        schema: Document = {"type": "array", "items": items}
        if node.min_items is not None:
            schema["minItems"] = node.min_items
        if node.max_items is not None:
            schema["maxItems"] = node.max_items
        schema["x-kubernetes-list-type"] = "atomic"
        if items.get("nullable"):
            return schema
        if node.keys and _tells_apart(items, node.keys):
            schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(node.keys)}
        elif node.unordered and items.get("type") in SCALARS:
            schema["x-kubernetes-list-type"] = "set"
        return schema

    def _described(self, schema: Document, node: Node) -> Document:
        if node.nullable or node.type == "any":
            schema["nullable"] = True
        if self._detail.descriptions and (text := _description(node)):
            schema["description"] = text
        return schema


def _without_required(schema: Document) -> None:
    """The keys of a list's items stay: without them nobody knows which item is meant."""
    schema.pop("required", None)
    for below in schema.get("properties", {}).values():
        _without_required(below)
    for values in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(values, dict):
            _without_required(values)
    if keys := schema.get("x-kubernetes-list-map-keys"):
        schema["items"]["required"] = list(keys)


def _scalar(node: Node) -> Document:
    schema: Document = {"type": node.type}
    if node.type in ("integer", "number"):
        if node.format in _FORMATS[node.type]:
            schema["format"] = node.format
        for word, bound in (("minimum", node.minimum), ("maximum", node.maximum)):
            if bound is not None:
                schema[word] = int(bound) if float(bound).is_integer() else bound
    if node.type == "string":
        if node.min_length is not None:
            schema["minLength"] = node.min_length
        if node.max_length is not None:
            schema["maxLength"] = node.max_length
        if node.pattern and matchable(node.pattern):
            schema["pattern"] = node.pattern
    if closed(node):
        schema["enum"] = list(dict.fromkeys(node.enum))
    return schema


def closed(node: Node) -> bool:
    """Whether only the values of its enumeration are taken, exactly as they are written. Not where null is one more:
    API servers refuse it, even when it is listed."""
    return bool(node.enum) and not (node.open_enum or node.nullable or node.compare is Comparator.CASELESS)


def _open(node: Node) -> Document:
    """Anything, of this type where it is known."""
    if node.type in ("object", "map"):
        return {"type": "object", PRESERVE: True}
    if node.type == "array":
        return {"type": "array", "items": {PRESERVE: True}, "x-kubernetes-list-type": "atomic"}
    return _scalar(node) if node.type in SCALARS else {PRESERVE: True}


def _either(one: Document, other: Document) -> Document:
    """What takes whatever two schemas take."""
    both_objects = one.get("type") == other.get("type") == "object"
    return {"type": "object", PRESERVE: True} if both_objects else {PRESERVE: True}


def _tells_apart(items: Document, keys: tuple[str, ...]) -> bool:
    """API servers take keys that are scalars and always there."""
    properties, required = items.get("properties", {}), items.get("required", ())
    return all(
        key in required and properties.get(key, {}).get("type") in SCALARS and not properties[key].get("nullable")
        for key in keys
    )


def _description(node: Node) -> str:
    text = " ".join(node.description.split())
    if len(text) > DESCRIPTION:
        text = text[: DESCRIPTION - 1].rstrip() + "…"
    if node.enum and not closed(node):
        text = f"{text} One of: {', '.join(str(value) for value in node.enum)}.".strip()
    if said := _CLASSES.get(node.field):
        text = f"{text} ({said})".strip()
    if node.reference:
        text = f"{text} (An ID, or a ref to another object.)".strip()
    return text


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _without_text(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {k: _without_text(v) for k, v in schema.items() if not (k == "description" and isinstance(v, str))}
    return schema


_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}
_CLASSES = {
    FieldClass.CREATE_ONLY: "Only at creation.",
    FieldClass.INITIAL: "At creation; then whoever else sets it is left alone.",
    FieldClass.SECRET: "A secret: {secretRef: {name, key}}, a key of a Secret in the same namespace.",
    FieldClass.WRITE_ONLY: "Never returned.",
}
