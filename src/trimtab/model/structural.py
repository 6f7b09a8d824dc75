"""The structural schema of a class, as apiextensions.k8s.io/v1 takes it: types and markers become OpenAPI and CEL.

Caveats: a rule on the old state needs an old state to look at. Below an optional struct it holds while the struct is
there; below a list it needs `Keyed`, and a class that asks for more is refused here rather than by the API server.
"""

from __future__ import annotations

import enum
import inspect
import re
import types
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta

from trimtab.model.document import plain
from trimtab.model.fields import Field, fields_of, peel
from trimtab.model.markers import CreateOnly, Immutable, Keyed, Marker, OneOf, Rule, Sensitive, Unordered

Document = dict[str, Any]

RULED_ITEMS = 64
"""How many elements a list or map may have at most when rules are checked on each and the class gives no bound."""
RULED_LENGTH = 1024
"""How long a string below such a list may be, likewise. Without bounds the API server finds rules too costly."""


def structural(cls: type) -> Document:
    """The schema of a kind's class. TypeError where the class says what a schema cannot."""
    schema = _Writer().struct(cls, correlatable=True)
    properties = schema["properties"]
    properties["apiVersion"] = {"type": "string", "description": _API_VERSION}
    properties["kind"] = {"type": "string", "description": _KIND}
    properties["metadata"] = {"type": "object"}
    schema["properties"] = {name: properties[name] for name in ("apiVersion", "kind", "metadata")} | properties
    return schema


class _Writer:
    """Walks a class. `_within` are the classes around the current one: a schema cannot contain itself."""

    def __init__(self) -> None:
        self._within: list[type] = []

    def struct(self, cls: type, *, correlatable: bool) -> Document:
        if cls in self._within:
            raise TypeError(f"{cls.__name__} contains itself, which a structural schema cannot say")
        self._within.append(cls)
        schema: Document = {"type": "object"}
        if text := cls.__dict__.get("__doc__"):
            schema["description"] = inspect.cleandoc(text)
        properties: Document = {}
        rules: list[Document] = []
        for field in fields_of(cls):
            try:
                properties[field.wire] = self._field(field, rules, correlatable)
            except TypeError as error:
                raise TypeError(f"{cls.__name__}.{field.name}: {error}") from None
        schema["properties"] = properties
        if required := [field.wire for field in fields_of(cls) if not field.optional]:
            schema["required"] = required
        rules += [_one_of(one, cls) for one in getattr(cls, "__one_of__", ())]
        rules += [_rule(rule) for rule in getattr(cls, "__rules__", ())]
        if rules:
            schema["x-kubernetes-validations"] = rules
        self._within.pop()
        return schema

    def _field(self, field: Field, parent_rules: list[Document], correlatable: bool) -> Document:
        schema = self.value(field.type, field.metas, field.markers, correlatable)
        if field.default is not UNSET and (not _is_empty(field.default) or isinstance(field.default, msgspec.Struct)):
            schema["default"] = _spelled_out(field.default)
        frozen, once = field.marker(Immutable), field.marker(CreateOnly)
        if frozen or once:
            if not correlatable:
                raise TypeError("a list item has no old state to compare with; mark the list as Keyed")
            schema.setdefault("x-kubernetes-validations", []).append(
                {"rule": "self == oldSelf", "message": "may not be changed"}
            )
            if field.optional and field.default is UNSET:
                name = cel_name(field.wire)
                if frozen:
                    rule, says = f"has(self.{name}) == has(oldSelf.{name})", "may be neither set nor removed later"
                else:
                    rule, says = f"!has(self.{name}) || has(oldSelf.{name})", "may be given only at creation"
                parent_rules.append(_at(field.wire, {"rule": rule, "message": f"{field.wire} {says}"}))
        return schema

    def value(self, annotation: Any, metas: Sequence[Meta], markers: Sequence[Marker], correlatable: bool) -> Document:
        schema = self._type(annotation, markers, correlatable)
        for meta in metas:
            _constrain(schema, meta)
        for marker in markers:
            if isinstance(marker, Sensitive) and schema.get("type") == "string":
                schema["format"] = "password"
            if isinstance(marker, Rule):
                schema.setdefault("x-kubernetes-validations", []).append(_rule(marker))
        return schema

    def _nested(self, annotation: Any, correlatable: bool) -> Document:
        bare, absent, metas, markers = peel(annotation)
        schema = self.value(bare, metas, markers, correlatable)
        if absent:
            schema["nullable"] = True
        return schema

    def _type(self, annotation: Any, markers: Sequence[Marker], correlatable: bool) -> Document:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if annotation is Any:
            return {"x-kubernetes-preserve-unknown-fields": True}
        if origin is Literal:
            return _enumerated(arguments)
        if origin in (Union, types.UnionType):
            if set(arguments) == {int, str}:
                return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
            raise TypeError(f"a schema has no union such as {annotation}")
        container = origin or annotation
        if isinstance(container, type):
            if issubclass(container, Mapping):
                return self._map(arguments, correlatable)
            if issubclass(container, Sequence | AbstractSet) and not issubclass(container, str | bytes):
                return self._list(arguments, markers, correlatable)
        if not isinstance(annotation, type):
            raise TypeError(f"a schema cannot say {annotation}")
        if issubclass(annotation, msgspec.Struct):
            return self.struct(annotation, correlatable=correlatable)
        if issubclass(annotation, enum.Enum):
            return _enumerated([member.value for member in annotation])
        if hasattr(annotation, "schema"):
            return dict(annotation.schema())
        for python, schema in _SCALARS.items():
            if annotation is python:
                return dict(schema)
        raise TypeError(f"a schema cannot say {annotation}")

    def _map(self, arguments: tuple[Any, ...], correlatable: bool) -> Document:
        if not arguments or arguments[1] is Any:
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        values = self._nested(arguments[1], correlatable)
        schema: Document = {"type": "object", "additionalProperties": values}
        if _has_rules(values):
            _bound(values)
            schema["maxProperties"] = RULED_ITEMS
        return schema

    def _list(self, arguments: tuple[Any, ...], markers: Sequence[Marker], correlatable: bool) -> Document:
        members = [argument for argument in arguments if argument is not Ellipsis]
        if len(members) != 1:
            raise TypeError("a list has one type of items")
        keyed = next((marker for marker in markers if isinstance(marker, Keyed)), None)
        items = self._nested(members[0], correlatable and keyed is not None)
        schema: Document = {"type": "array", "items": items}
        if _has_rules(items):
            _bound(items)
            schema["maxItems"] = RULED_ITEMS
        if keyed:
            properties = items.get("properties", {})
            for key in keyed.keys:
                if key not in properties:
                    raise TypeError(f"items have no field {key} to be told apart by")
                if key not in items.get("required", ()) and "default" not in properties[key]:
                    raise TypeError(f"{key} tells items apart, so it must be required or have a default")
            schema["x-kubernetes-list-type"] = "map"
            schema["x-kubernetes-list-map-keys"] = list(keyed.keys)
        elif any(isinstance(marker, Unordered) for marker in markers):
            if items.get("type") in ("object", "array", None):
                raise TypeError("only a list of scalars can be Unordered")
            schema["x-kubernetes-list-type"] = "set"
        else:
            schema["x-kubernetes-list-type"] = "atomic"
        return schema


def cel_name(wire: str) -> str:
    """A property as CEL names it: reserved words and signs are escaped."""
    if wire in _CEL_RESERVED:
        return f"__{wire}__"
    escaped = wire.replace("__", "__underscores__")
    for sign, word in ((".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")):
        escaped = escaped.replace(sign, word)
    return escaped


def _constrain(schema: Document, meta: Meta) -> None:
    """What msgspec.Meta says, in the words of OpenAPI v3.0."""
    for bound, word, exclusive in (
        (meta.ge, "minimum", ""),
        (meta.le, "maximum", ""),
        (meta.gt, "minimum", "exclusiveMinimum"),
        (meta.lt, "maximum", "exclusiveMaximum"),
    ):
        if bound is not None:
            schema[word] = bound
            if exclusive:
                schema[exclusive] = True
    sized = {"array": "Items", "object": "Properties"}.get(schema.get("type", ""), "Length")
    for size, end in ((meta.min_length, "min"), (meta.max_length, "max")):
        if size is not None:
            schema[end + sized] = size
    for value, word in (
        (meta.multiple_of, "multipleOf"),
        (meta.pattern, "pattern"),
        (meta.title, "title"),
        (meta.description, "description"),
    ):
        if value is not None:
            schema[word] = value
    if meta.examples:
        schema["example"] = meta.examples[0]
    schema.update(meta.extra_json_schema or {})


def _enumerated(values: Sequence[Any]) -> Document:
    kinds = {_SCALARS[type(value)]["type"] for value in values if type(value) in _SCALARS}
    if len(kinds) != 1:
        raise TypeError(f"an enumeration is of strings or of integers, not {list(values)}")
    return {"type": kinds.pop(), "enum": list(values)}


def _one_of(one: OneOf, cls: type) -> Document:
    known = {field.wire: field for field in fields_of(cls)}
    for name in one.names:
        if name not in known:
            raise TypeError(f"{cls.__name__} has no field {name} for OneOf")
        if not known[name].optional or known[name].default is not UNSET:
            raise TypeError(f"{cls.__name__}: {name} is always set, so OneOf cannot choose it")
    count = " + ".join(f"(has(self.{cel_name(name)}) ? 1 : 0)" for name in one.names)
    listed = ", ".join(one.names)
    if one.required:
        return {"rule": f"{count} == 1", "message": f"exactly one of {listed} must be set"}
    return {"rule": f"{count} <= 1", "message": f"at most one of {listed} may be set"}


def _rule(rule: Rule) -> Document:
    written: Document = {"rule": rule.rule, "message": rule.message}
    if rule.reason:
        written["reason"] = rule.reason
    if rule.field:
        written["fieldPath"] = rule.field
    return written


def _at(wire: str, rule: Document) -> Document:
    """Point a rule on a struct at one of its fields."""
    plain_name = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", wire)
    return {**rule, "fieldPath": f".{wire}" if plain_name else f"['{wire}']"}


def _has_rules(schema: Document) -> bool:
    if "x-kubernetes-validations" in schema:
        return True
    return any(_has_rules(inner) for inner in _inner(schema))


def _bound(schema: Document) -> None:
    kind = schema.get("type")
    if kind == "string" and "enum" not in schema:
        schema.setdefault("maxLength", RULED_LENGTH)
    elif kind == "array":
        schema.setdefault("maxItems", RULED_ITEMS)
    elif "additionalProperties" in schema:
        schema.setdefault("maxProperties", RULED_ITEMS)
    for inner in _inner(schema):
        _bound(inner)


def _inner(schema: Document) -> list[Document]:
    found = list(schema.get("properties", {}).values())
    found += [schema[word] for word in ("items", "additionalProperties") if isinstance(schema.get(word), dict)]
    return found


def _spelled_out(value: Any) -> Any:
    """A default with the defaults inside it: the API server checks rules on it as it stands."""
    if not isinstance(value, msgspec.Struct):
        return plain(value)
    given = ((field.wire, getattr(value, field.name)) for field in fields_of(type(value)))
    return {wire: _spelled_out(inner) for wire, inner in given if inner is not UNSET and inner is not None}


def _is_empty(value: Any) -> bool:
    return isinstance(value, Mapping | Sequence | AbstractSet) and not isinstance(value, str | bytes) and not value


_SCALARS: dict[type, Document] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
}
_CEL_RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_API_VERSION = "The version of the schema that this representation of the object has."
_KIND = "The kind of object that this is, in CamelCase. It cannot be changed."
