"""A hub class as a proto3 file. What proto3 has no words for is said in options of the hub's own file, so that a kind that is
loaded from what was written is the same kind."""

from __future__ import annotations

import enum
import inspect
import json
import types
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import UNSET

from trimtab.hub.proto import common, lock
from trimtab.model.document import plain
from trimtab.model.fields import Field, fields_of, peel
from trimtab.model.hub import File, SharedWith, Sharing
from trimtab.model.markers import AlwaysEmit, Keyed, Marker, OneOf, Ref
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Definition, Resource, definition_of

PACKAGE = "trimtab.hub"


class Written(NamedTuple):
    path: str
    text: str
    lock: lock.Lock


class _Type(NamedTuple):
    name: str  # as it stands in the file: `string`, `repeated Part`, `map<string, string>`
    options: tuple[str, ...] = ()

    @property
    def many(self) -> bool:
        return self.name.startswith(("repeated ", "map<"))


class _Line(NamedTuple):
    name: str
    type: _Type
    field: Field


def kind_key(cls: type[Resource]) -> str:
    """The name of a kind in the lock: `infra/v3/Blueprint`."""
    definition = definition_of(cls)
    return f"{definition.group}/{definition.version}/{definition.kind}"


def written(cls: type[Resource], numbers: lock.Lock) -> Written:
    """A kind's file, and the lock with its numbers."""
    definition = definition_of(cls)
    messages = _Messages()
    messages.add(cls, definition.kind)
    shapes = {name: {line.name: line.type.name for line in lines} for name, (_, lines) in messages.found.items()}
    numbers = lock.updated(numbers, kind_key(cls), shapes)
    kept = numbers.kinds[kind_key(cls)]
    package = f"{PACKAGE}.{definition.group}.{definition.version}"
    imports = [common.FILE]
    if any("google.protobuf." in line.type.name for _, lines in messages.found.values() for line in lines):
        imports.append("google/protobuf/struct.proto")
    parts = [
        'syntax = "proto3";',
        f"package {package};",
        "\n".join(f'import "{path}";' for path in sorted(imports)),
    ]
    inner = [
        line
        for name, (owner, lines) in messages.found.items()
        if owner is not cls
        for line in ("", *_message(name, owner, lines, kept[name]))
    ]
    parts.append(
        "\n".join(
            _message(definition.kind, cls, messages.found[definition.kind][1], kept[definition.kind], definition, inner)
        )
    )
    path = f"{package.replace('.', '/')}/{definition.kind.lower()}.proto"
    return Written(path, "\n\n".join(parts) + "\n", numbers)


class _Messages:
    """Every struct below a class, each under a name of its own."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[type, list[_Line]]] = {}
        self._names: dict[type, str] = {}

    def add(self, cls: type, name: str) -> str:
        if cls in self._names:
            return self._names[cls]
        unique, count = name, 1
        while unique in self.found:
            count += 1
            unique = f"{name}{count}"
        self._names[cls] = unique
        lines: list[_Line] = []
        self.found[unique] = (cls, lines)
        for field in fields_of(cls):
            kind = (
                _Type(f"{common.PACKAGE}.Metadata")
                if field.wire == "metadata"
                else self.typed(field.type, field.markers)
            )
            lines.append(_Line(field.name, kind, field))
        return unique

    def typed(self, annotation: Any, markers: Sequence[Marker] = ()) -> _Type:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Literal:
            return _enumerated(arguments)
        if annotation is Any or origin in (Union, types.UnionType):
            return _Type("google.protobuf.Value")
        container = origin or annotation
        if isinstance(container, type) and not issubclass(container, str | bytes):
            if issubclass(container, Mapping):
                return self._map(arguments)
            if issubclass(container, Sequence | AbstractSet):
                return self._list(arguments, markers)
        if not isinstance(annotation, type):
            raise TypeError(f"proto3 cannot say {annotation}")
        if issubclass(annotation, msgspec.Struct):
            return self._struct(annotation)
        if issubclass(annotation, enum.Enum):
            return _enumerated([member.value for member in annotation])
        if hasattr(annotation, "schema"):  # a text with a form of its own: a duration, a quantity
            return _Type("string")
        for python, name in _SCALARS.items():
            if annotation is python:
                return _Type(*name)
        raise TypeError(f"proto3 cannot say {annotation}")

    def _struct(self, cls: type) -> _Type:
        own = next((name for known, name in _OWN if issubclass(cls, known)), "")
        return _Type(f"{common.PACKAGE}.{own}" if own else self.add(cls, cls.__name__))

    def _map(self, arguments: tuple[Any, ...]) -> _Type:
        if not arguments or arguments[1] is Any:
            return _Type("google.protobuf.Struct")
        bare, _, _, markers = peel(arguments[1])
        value = self.typed(bare)
        if value.many:
            return _Type("google.protobuf.Struct")  # proto3 has no map of lists
        return _Type(f"map<string, {value.name}>", (*value.options, *_refs(markers)))

    def _list(self, arguments: tuple[Any, ...], markers: Sequence[Marker]) -> _Type:
        bare, _, _, more = peel(arguments[0])
        item = self.typed(bare)
        if item.many:
            item = _Type("google.protobuf.Value")  # nor a list of lists
        keyed = next((marker for marker in markers if isinstance(marker, Keyed)), None)
        keys = tuple(f"keys) = {_quoted(key)}" for key in keyed.keys) if keyed else ()
        return _Type(f"repeated {item.name}", (*item.options, *_refs(more), *keys))


def _message(
    name: str,
    cls: type,
    lines: Sequence[_Line],
    kept: lock.MessageLock,
    definition: Definition | None = None,
    inner: Sequence[str] = (),
) -> Iterator[str]:
    """`inner`: the messages in it. All of a kind are in its own, so that two kinds of a group may use the same names."""
    yield from _comment(inspect.cleandoc(cls.__dict__.get("__doc__") or ""), "")
    yield f"message {name} {{"
    if definition is not None:
        said = f"group: {_quoted(definition.group)} version: {_quoted(definition.version)}"
        scope = "" if definition.namespaced else " cluster_scoped: true"
        yield f"  option ({common.PACKAGE}.kind) = {{ {said} plural: {_quoted(definition.plural)}{scope} }};"
    if kept.reserved:
        yield f"  reserved {', '.join(str(each.number) for each in kept.reserved)};"
        names = dict.fromkeys(each.name for each in kept.reserved if each.name not in kept.fields)
        if names:
            yield f"  reserved {', '.join(map(_quoted, names))};"
    chosen = _choices(cls, lines)
    done: set[str] = set()
    for line in lines:
        one = chosen.get(line.field.wire)
        if one is None:
            yield from _field(line, kept.fields[line.name].number, "  ")
        elif one.names[0] not in done:
            done.add(one.names[0])
            yield f"  oneof {_choice(len(done), lines)} {{"
            if one.required:
                yield f"    option ({common.PACKAGE}.one_required) = true;"
            for each in lines:
                if each.field.wire in one.names:
                    yield from _field(each, kept.fields[each.name].number, "    ", chosen=True)
            yield "  }"
    yield from (f"  {line}".rstrip() for line in inner)
    yield "}"


def _choice(number: int, lines: Sequence[_Line]) -> str:
    """A name that no field has."""
    name = f"choice{number if number > 1 else ''}"
    while any(line.name == name for line in lines):
        name += "_"
    return name


def _choices(cls: type, lines: Sequence[_Line]) -> dict[str, OneOf]:
    """Which fields are branches of a oneof. A list can be none, so a choice with one in it stays a rule of the server's."""
    many = {line.field.wire for line in lines if line.type.many}
    found: dict[str, OneOf] = {}
    for one in getattr(cls, "__one_of__", ()):
        if not many & set(one.names) and not found.keys() & set(one.names):
            found |= dict.fromkeys(one.names, one)
    return found


def _field(line: _Line, number: int, indent: str, *, chosen: bool = False) -> Iterator[str]:
    field, kind = line.field, line.type
    yield from _comment(field.description, indent)
    said = [f"({common.PACKAGE}.{option}" for option in (*kind.options, *_refs(field.markers))]
    if _camel(line.name) != field.wire:
        said.append(f"json_name = {_quoted(field.wire)}")
    if not field.optional:
        said.append(f"({common.PACKAGE}.required) = true")
    if field.marker(AlwaysEmit):
        said.append(f"({common.PACKAGE}.always_emit) = true")
    if field.default is not UNSET and not _is_empty(field.default) and field.wire not in _NAMED:
        said.append(f"({common.PACKAGE}.default) = {_quoted(json.dumps(plain(field.default), sort_keys=True))}")
    scalar = kind.name in {name for name, *_ in _SCALARS.values()}
    optional = "optional " if field.optional and field.default is UNSET and scalar and not chosen else ""
    options = f" [{', '.join(said)}]" if said else ""
    yield f"{indent}{optional}{kind.name} {line.name} = {number}{options};"


def _enumerated(values: Sequence[Any]) -> _Type:
    if all(isinstance(value, str) for value in values):
        return _Type("string", tuple(f"values) = {_quoted(value)}" for value in values))
    return _Type("int64")


def _refs(markers: Sequence[Marker]) -> tuple[str, ...]:
    return tuple(f"ref) = {_quoted(marker.kind)}" for marker in markers if isinstance(marker, Ref))


def _comment(text: str, indent: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"{indent}// {line}".rstrip()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _is_empty(value: Any) -> bool:
    if isinstance(value, msgspec.Struct):
        return not plain(value)
    return isinstance(value, Mapping | Sequence | AbstractSet) and not isinstance(value, str | bytes) and not value


_NAMED = ("apiVersion", "kind", "metadata")
_OWN = ((Sharing, "Sharing"), (SharedWith, "ProjectRef"), (File, "File"), (ObjectMeta, "Metadata"))
_SCALARS: dict[Any, tuple[str, ...] | tuple[str, tuple[str, ...]]] = {
    str: ("string",),
    bool: ("bool",),
    int: ("int64",),
    float: ("double",),
    bytes: ("bytes",),
    datetime: ("string", ('format) = "date-time"',)),
}
