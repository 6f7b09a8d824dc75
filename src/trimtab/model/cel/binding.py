"""Types made from structural schemas, and objects seen through them.

Values are bound lazily: strings, integers, booleans and lists or maps of them are used as they are; objects become
views that convert a field when it is read. Fields that a schema does not describe cannot be seen.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model.cel import times
from trimtab.model.cel import types as t
from trimtab.model.cel.errors import EvaluationError
from trimtab.model.cel.values import ABSENT, EACH, MAPS, Duration, Timestamp, equals, find, spend
from trimtab.model.cel.values import Mapping as MappingValue
from trimtab.model.cel.values import Sequence as SequenceValue

REQUEST_SIZE = 3 * 1024 * 1024
_EXPANDED = re.compile(r"__|[-./]")
_WORDS = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ROOT_FIELDS = {
    "kind": {"type": "string"},
    "apiVersion": {"type": "string"},
    "metadata": {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}},
}


def type_of_schema(document: Mapping[str, Any], *, root: bool = False, name: str = "selfType0") -> t.Type | None:
    """The type of a structural schema, or None when expressions cannot see its values."""
    if document.get("x-kubernetes-int-or-string"):
        return Bounded(t.DYN, REQUEST_SIZE - 2, 1)
    if root or document.get("x-kubernetes-embedded-resource"):
        document = with_object_meta(document)
    match document.get("type"):
        case "object":
            additional = document.get("additionalProperties")
            if isinstance(additional, Mapping) and additional:
                value = type_of_schema(additional, name=f"{name}.@elem")
                return None if value is None else MapType(document, value)
            return SchemaObject(document, name)
        case "array":
            items = document.get("items")
            item = type_of_schema(items, name=f"{name}.@idx") if isinstance(items, Mapping) else None
            return None if item is None else ListType(document, item)
        case "string":
            return _string(document)
        case "boolean":
            return Bounded(t.BOOL, 0, 4, nullable=_nullable(document))
        case "integer":
            return Bounded(t.INT, 0, 1, nullable=_nullable(document))
        case "number":
            return Number(t.DOUBLE, 0, 1, nullable=_nullable(document))
    return None


def with_object_meta(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a resource: its name, kind and version can always be seen."""
    return {**document, "properties": {**document.get("properties", {}), **_ROOT_FIELDS}}


def escape(name: str) -> str | None:
    """A property's name as an expression writes it, or None when it cannot be written."""
    if not name or "0" <= name[0] <= "9":
        return None
    if name in t.RESERVED:
        return f"__{name}__"
    if not re.fullmatch(r"[a-zA-Z0-9_./-]+", name):
        return None
    return _EXPANDED.sub(lambda match: _WORDS[match[0]], name)


def min_size(kind: t.Type) -> int:
    """The fewest bytes that a value takes as JSON."""
    return getattr(kind, "min_size", 0)


def _nullable(document: Mapping[str, Any]) -> bool:
    return bool(document.get("nullable"))


def _null(nullable: bool) -> None:
    if not nullable:
        raise EvaluationError("invalid data, got null for schema with nullable=false")


def _limit(document: Mapping[str, Any], name: str, estimate: int) -> int:
    value = document.get(name)
    return estimate if value is None else max(int(value), 0)


class Bounded(t.Type):
    """A simple type with the bounds of its values."""

    __slots__ = ("_max", "min_size", "nullable")

    def __init__(self, kind: t.Type, most: int, least: int, *, nullable: bool = False) -> None:
        super().__init__(kind.kind, kind.name)
        self._max = most
        self.min_size = least
        self.nullable = nullable

    @property
    def max_size(self) -> int:
        return self._max

    def bind(self, value: Any) -> Any:
        if value is None:
            _null(self.nullable)
        return value


class Number(Bounded):
    __slots__ = ()

    def bind(self, value: Any) -> Any:
        return super().bind(value) if value is None else float(value)


class Formatted(Bounded):
    """A string whose format makes another value of it."""

    __slots__ = ("_read",)

    def __init__(self, kind: t.Type, most: int, least: int, read: Any, nullable: bool) -> None:
        super().__init__(kind, most, least, nullable=nullable)
        self._read = read

    def bind(self, value: Any) -> Any:
        if value is None:
            return super().bind(value)
        try:
            return self._read(value)
        except ValueError as error:
            raise EvaluationError(f"Invalid {self.name} formatted string {value}: {error}") from None


def _string(document: Mapping[str, Any]) -> t.Type:
    nullable = _nullable(document)
    match document.get("format"):
        case "byte":
            most = _limit(document, "maxLength", REQUEST_SIZE - 2)
            return Formatted(t.BYTES, most, 2, lambda text: base64.b64decode(text, validate=True), nullable)
        case "duration":
            return Formatted(t.DURATION, 32, 3, times.loose_duration, nullable)
        case "date":
            return Formatted(t.TIMESTAMP, 12, 12, times.date, nullable)
        case "date-time":
            return Formatted(t.TIMESTAMP, 32, 21, times.timestamp, nullable)
    if document.get("maxLength") is not None:
        most = max(int(document["maxLength"]), 0) * 4  # maxLength counts characters, the bound is in bytes
    elif document.get("enum"):
        most = max((len(value.encode()) for value in document["enum"] if isinstance(value, str)), default=0)
    else:
        most = REQUEST_SIZE - 2
    return Bounded(t.STRING, most, 2, nullable=nullable)


def _plain(kind: t.Type) -> bool:
    """Whether a list or map of this type may be used as it is."""
    if isinstance(kind, ListType | MapType):
        return kind.plain
    return type(kind) is Bounded and not kind.nullable


class MapType(t.Type):
    __slots__ = ("document", "plain", "value")

    def __init__(self, document: Mapping[str, Any], value: t.Type) -> None:
        super().__init__(t.MAP, "map", (t.STRING, value))
        self.document = document
        self.value = value
        self.plain = _plain(value) and not _nullable(document)

    @property
    def min_size(self) -> int:
        return 2

    @property
    def max_size(self) -> int:
        return _limit(self.document, "maxProperties", (REQUEST_SIZE - 2) // (min_size(self.value) + 6))

    def bind(self, value: Any) -> Any:
        if value is None:
            return _null(_nullable(self.document))
        return value if self.plain else MapView(value, self.value)


class ListType(t.Type):
    __slots__ = ("document", "item", "plain")

    def __init__(self, document: Mapping[str, Any], item: t.Type) -> None:
        super().__init__(t.LIST, "list", (item,))
        self.document = document
        self.item = item
        unordered = document.get("x-kubernetes-list-type") in ("set", "map")
        self.plain = _plain(item) and not unordered and not _nullable(document)

    @property
    def min_size(self) -> int:
        return 2

    @property
    def max_size(self) -> int:
        return _limit(self.document, "maxItems", (REQUEST_SIZE - 2) // (min_size(self.item) + 1))

    def bind(self, value: Any) -> Any:
        if value is None:
            return _null(_nullable(self.document))
        if self.plain:
            return value
        match self.document.get("x-kubernetes-list-type"):
            case "set":
                return SetView(value, self.item)
            case "map":
                return KeyedView(value, self.item, self.document.get("x-kubernetes-list-map-keys", ()))
        return ListView(value, self.item)


class SchemaObject(t.Type):
    """An object type; its fields are made when they are first asked for."""

    __slots__ = ("_fields", "_min", "document")

    def __init__(self, document: Mapping[str, Any], name: str) -> None:
        super().__init__(t.STRUCT, name)
        self.document = document
        self._fields: dict[str, t.Field] | None = None
        self._min = -1

    @property
    def fields(self) -> Mapping[str, t.Field]:
        if self._fields is None:
            self._fields = {}
            for key, schema in self.document.get("properties", {}).items():
                name = escape(key)
                if name is not None:
                    kind = type_of_schema(schema, name=f"{self.name}.{name}")
                    if kind is not None:
                        self._fields[name] = t.Field(key, kind)
        return self._fields

    @property
    def min_size(self) -> int:
        if self._min < 0:
            total = 2
            properties = self.document.get("properties", {})
            for key in dict.fromkeys(self.document.get("required") or ()):
                schema = properties.get(key)
                kind = type_of_schema(schema) if schema is not None and schema.get("default") is None else None
                if kind is not None:
                    total += len(key.encode()) + min_size(kind) + 4
            self._min = total
        return self._min

    def bind(self, value: Any) -> Any:
        if value is None:
            return _null(_nullable(self.document))
        return ObjectView(value, self)


class ObjectView(MappingValue):
    """An object through its type: a field whose value is null is absent."""

    __slots__ = ("type", "value")

    def __init__(self, value: Mapping[str, Any], kind: t.Type) -> None:
        self.value = value
        self.type = kind

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[str]:
        return (name for name, field in self.type.fields.items() if field.key in self.value)

    def find(self, key: Any) -> Any:
        field = self.type.field(key)
        if field is None:
            return ABSENT
        value = self.value.get(field.key)
        return ABSENT if value is None else field.type.bind(value)

    def equals(self, other: Any) -> bool:
        if len(self) != len(other):
            return False
        spend(len(self) + EACH)
        known = {field.key: (name, field) for name, field in self.type.fields.items()}
        for key, value in self.value.items():
            if key not in known:
                if isinstance(other, ObjectView) and key in other.value and not equals(other.value[key], value):
                    return False
                continue
            name, field = known[key]
            theirs = find(other, name)
            if theirs is ABSENT:
                if value is None and isinstance(other, ObjectView) and key in other.value:
                    continue
                return False
            if value is None or not equals(field.type.bind(value), theirs):
                return False
        return True


class MapView(MappingValue):
    __slots__ = ("type", "value")

    def __init__(self, value: Mapping[str, Any], kind: t.Type) -> None:
        self.value = value
        self.type = kind

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def find(self, key: Any) -> Any:
        value = self.value.get(key, ABSENT)
        return value if value is ABSENT else self.type.bind(value)


class ListView(SequenceValue):
    __slots__ = ("type", "value")

    def __init__(self, value: list[Any], kind: t.Type) -> None:
        self.value = value
        self.type = kind

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: int) -> Any:
        return self.type.bind(self.value[index])

    def __iter__(self) -> Iterator[Any]:
        return map(self.type.bind, self.value)

    def added(self, other: Any) -> Any:
        return [*self, *other]


class SetView(ListView):
    """A list of type set: order does not matter, and `+` is the union."""

    __slots__ = ()

    def equals(self, other: Any) -> bool:
        if len(self) != len(other):
            return False
        mine, others = list(self), list(other)
        if {*map(type, mine), *map(type, others)} == {str}:
            spend(len(mine))
            return set(mine).issuperset(others)
        spend(len(mine) ** 2)
        return all(any(equals(item, each) for each in mine) for item in others)

    def added(self, other: Any) -> Any:
        values = list(self.value)
        for item in other:
            raw = unbound(item)
            spend(len(values))
            if not any(equals(item, self.type.bind(value)) for value in values):
                values.append(raw)
        return SetView(values, self.type)


class KeyedView(ListView):
    """A list of type map: items are found by their keys, and `+` overwrites those that are there."""

    __slots__ = ("keys",)

    def __init__(self, value: list[Any], kind: t.Type, keys: Any) -> None:
        super().__init__(value, kind)
        self.keys = tuple(keys)

    def _key(self, raw: Any) -> tuple[Any, ...]:
        return tuple(raw.get(key) for key in self.keys)

    def equals(self, other: Any) -> bool:
        if len(self) != len(other):
            return False
        spend(len(self))
        mine = {self._key(raw): raw for raw in self.value}
        for item in other:
            raw = mine.get(self._key(unbound(item)))
            if raw is None or not equals(self.type.bind(raw), item):
                return False
        return True

    def added(self, other: Any) -> Any:
        merged = {self._key(raw): raw for raw in self.value}
        for item in other:
            raw = unbound(item)
            merged[self._key(raw)] = raw
        return KeyedView(list(merged.values()), self.type, self.keys)


def unbound(value: Any) -> Any:
    """The JSON that a value was bound from."""
    if isinstance(value, ObjectView | MapView | ListView):
        return value.value
    if isinstance(value, Duration | Timestamp):
        return times.shown(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if not isinstance(value, MAPS):
        return value
    spend(len(value) + EACH)
    return {key: unbound(find(value, key)) for key in value}
