"""A message of a proto3 file as a hub kind: its schema, where it refers to others, and where it names files.

A kind is a message with `metadata` and `spec`. Types that nobody brought a file for must be the hub's own, from a package whose
last word begins with `common`, or well-known ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.hub.artifacts.digests import EACH as EACH_FILE
from trimtab.hub.artifacts.digests import FilePaths
from trimtab.hub.proto import common
from trimtab.hub.proto.parser import Enum, Field, File, Message, parse
from trimtab.hub.proto.tokens import ProtoError
from trimtab.hub.references import EACH, Path
from trimtab.hub.scheme import HubConfig
from trimtab.model.kind import Kind
from trimtab.model.schema import Schema
from trimtab.model.structural import cel_name

Document = dict[str, Any]
MOST_FIELDS = 20_000
"""Of one kind: a schema has no references, so each use of a message is a copy."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A kind that came from a file. Its group has no suffix yet."""

    config: HubConfig
    files: FilePaths


def load(
    sources: Mapping[str, str],
    message: str = "",
    *,
    group: str = "",
    version: str = "",
    plural: str = "",
    versioned: bool = False,
) -> Loaded:
    """The kind that a message is. `sources`: path → text of the file and of those that it imports; `message` may be left out
    when only one of them can be a kind. Group, version and plural are its option's, unless they are given; the group gets
    its suffix when the kind is registered. `versioned`: what has a `spec.version` is published."""
    known = _Known({path: parse(text) for path, text in sources.items()})
    name, root = known.kind(message)
    said = _option(root.options, "kind") or {}
    group, version = group or said.get("group", ""), version or said.get("version", "")
    if not group or not version:
        lacks = " and ".join(word for word, said in (("group", group), ("version", version)) if not said)
        raise ProtoError(
            f"{root.name} has no {lacks}: give GROUP/VERSION=FILE, or the option (trimtab.hub.common.kind)"
        )
    walk = _Walk(known)
    schema = walk.message(root, name, ())
    properties = schema["properties"]
    properties["apiVersion"], properties["kind"] = {"type": "string"}, {"type": "string"}
    properties["metadata"] = {"type": "object"}
    order = ("apiVersion", "kind", "metadata")
    schema["properties"] = {word: properties[word] for word in order} | properties
    kind = Kind(
        group=group,
        version=version,
        kind=root.name,
        plural=plural or said.get("plural", "") or root.name.lower() + "s",
        namespaced=not said.get("cluster_scoped", False),
        schema=Schema(schema),
        status="status" in properties,
    )
    files = tuple(tuple(EACH_FILE if step == EACH else step for step in path) for path in walk.files)
    found = FilePaths(files)
    config = HubConfig(kind=kind, references=tuple(walk.references), files=found, versioned=versioned)
    return Loaded(config=config, files=found)


class _Known:
    """Every message and enum of some files, by full name."""

    def __init__(self, files: Mapping[str, File]) -> None:
        self.types: dict[str, Message | Enum] = {}
        self._top: list[str] = []
        for file in files.values():
            tops: list[Message | Enum] = [*file.messages.values(), *file.enums.values()]
            for each in tops:
                name = f"{file.package}.{each.name}".lstrip(".")
                self._top.append(name)
                self._add(name, each)

    def _add(self, name: str, each: Message | Enum) -> None:
        self.types[name] = each
        if isinstance(each, Message):
            inners: list[Message | Enum] = [*each.messages.values(), *each.enums.values()]
            for inner in inners:
                self._add(f"{name}.{inner.name}", inner)

    def kind(self, message: str) -> tuple[str, Message]:
        kinds = {name: each for name in self._top if isinstance(each := self.types[name], Message) and is_kind(each)}
        found = {name: each for name, each in kinds.items() if message in ("", name, each.name)}
        if len(found) != 1:
            told = ", ".join(sorted(each.name for each in kinds.values())) or "none"
            raise ProtoError(f"{message or 'which message'} is the kind? Those with metadata and spec are: {told}")
        return next(iter(found.items()))

    def resolve(self, name: str, scope: str) -> tuple[str, Message | Enum] | None:
        """As protobuf does: from the innermost scope out."""
        if name.startswith("."):
            found = self.types.get(name[1:])
            return None if found is None else (name[1:], found)
        parts = scope.split(".")
        for end in range(len(parts), -1, -1):
            full = ".".join([*parts[:end], name])
            if full in self.types:
                return full, self.types[full]
        return None


class _Walk:
    """Writes the schema, and collects references and files on the way."""

    def __init__(self, known: _Known) -> None:
        self._known = known
        self._within: list[str] = []
        self._fields = 0
        self.references: list[tuple[Path, str]] = []
        self.files: list[Path] = []

    def message(self, message: Message, name: str, path: Path) -> Document:
        if name in self._within:
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}  # a schema cannot contain itself
        self._within.append(name)
        properties: Document = {}
        required: list[str] = []
        for field in message.fields:
            if not path and field.json_name in ("apiVersion", "kind", "metadata"):
                continue
            self._fields += 1
            if self._fields > MOST_FIELDS:
                raise ProtoError(
                    f"{name} brings it over {MOST_FIELDS} fields: messages that name others unfold in each place"
                )
            properties[field.json_name] = self._field(field, name, (*path, field.json_name))
            if _option(field.options, "required"):
                required.append(field.json_name)
        self._within.pop()
        schema: Document = {"type": "object", "properties": properties}
        if message.comment:
            schema["description"] = message.comment
        if required:
            schema["required"] = required
        if rules := [_one_of(message, name, options) for name, options in message.oneofs.items()]:
            schema["x-kubernetes-validations"] = rules
        return schema

    def _field(self, field: Field, scope: str, path: Path) -> Document:
        many = field.repeated or bool(field.key)
        schema = self._type(field.type, scope, (*path, EACH) if many else path)
        if kind := _option(field.options, "ref"):
            self.references.append(((*path, EACH) if many else path, str(kind)))
        if values := _options(field.options, "values"):
            schema["enum"] = [str(value) for value in values]
        if form := _option(field.options, "format"):
            schema["format"] = str(form)
        if field.key:
            schema = {"type": "object", "additionalProperties": schema}
        elif field.repeated:
            keys = [str(key) for key in _options(field.options, "keys")]
            schema = {"type": "array", "items": schema, "x-kubernetes-list-type": "map" if keys else "atomic"}
            if keys:
                schema["x-kubernetes-list-map-keys"] = keys
        if field.comment:
            schema["description"] = field.comment
        default = _option(field.options, "default")
        if default is not None:
            try:
                schema["default"] = json.loads(str(default))
            except ValueError:
                raise ProtoError(f"{field.name}: its default is no JSON: {default}") from None
        return schema

    def _type(self, name: str, scope: str, path: Path) -> Document:
        if name in _SCALARS:
            return dict(_SCALARS[name])
        if name.lstrip(".") in _WELL_KNOWN:
            return dict(_WELL_KNOWN[name.lstrip(".")])
        package, _, short = name.lstrip(".").rpartition(".")
        if package.rpartition(".")[2].startswith("common"):
            try:
                schema = common.schema_of(short)
            except KeyError:
                schema = None
            if schema is not None:
                self._note(short, path)
                return json.loads(json.dumps(schema))  # type: ignore[no-any-return]
        found = self._known.resolve(name, scope)
        if found is None:
            raise ProtoError(f"{scope} has a field of type {name}, which no file brings")
        full, each = found
        if isinstance(each, Enum):
            schema = {"type": "string", "enum": list(each.values)}
            return schema | ({"description": each.comment} if each.comment else {})
        return self.message(each, full, path)

    def _note(self, name: str, path: Path) -> None:
        if name in common.PROJECTS:
            self.references.append(((*path, "name"), "Project"))
        elif name in common.SHARING:
            self.references.append(((*path, "projects", EACH, "name"), "Project"))
        elif name in common.FILES:
            self.files.append(path)


def is_kind(message: Message) -> bool:
    """Whether a message has the shape of a resource."""
    return {"metadata", "spec"} <= {field.json_name for field in message.fields}


def _one_of(message: Message, name: str, options: dict[str, list[Any]]) -> Document:
    names = [field.json_name for field in message.fields if field.oneof == name]
    count = " + ".join(f"(has(self.{cel_name(each)}) ? 1 : 0)" for each in names)
    listed = ", ".join(names)
    if _option(options, "one_required"):
        return {"rule": f"{count} == 1", "message": f"exactly one of {listed} must be set"}
    return {"rule": f"{count} <= 1", "message": f"at most one of {listed} may be set"}


def _options(options: Mapping[str, list[Any]], name: str) -> list[Any]:
    """An option of ours, however its package is written."""
    for said, values in options.items():
        package, _, short = said.rpartition(".")
        if short == name and package.rpartition(".")[2] in ("common", "hub"):
            return values
    return []


def _option(options: Mapping[str, list[Any]], name: str) -> Any:
    return next(iter(_options(options, name)), None)


_INT64 = {"type": "integer", "format": "int64"}
_INT32 = {
    "type": "integer",
    "format": "int32",
    "minimum": -(2**31),
    "maximum": 2**31 - 1,
}  # a format alone bounds nothing
_UINT32 = {**_INT64, "minimum": 0, "maximum": 2**32 - 1}
_NUMBER = {"type": "number", "format": "double"}
_SCALARS: dict[str, Document] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "double": _NUMBER,
    "float": {"type": "number", "format": "float"},
    **dict.fromkeys(("int32", "sint32", "sfixed32"), _INT32),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), _INT64),
    **dict.fromkeys(("uint32", "fixed32"), _UINT32),
    **{name: {**_INT64, "minimum": 0} for name in ("uint64", "fixed64")},
}
_OPEN: Document = {"x-kubernetes-preserve-unknown-fields": True}
_WELL_KNOWN: dict[str, Document] = {
    "google.protobuf.Struct": {"type": "object", **_OPEN},
    "google.protobuf.Any": {"type": "object", **_OPEN},
    "google.protobuf.Value": _OPEN,
    "google.protobuf.ListValue": {"type": "array", "items": _OPEN, "x-kubernetes-list-type": "atomic"},
    "google.protobuf.Empty": {"type": "object"},
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string"},
    "google.protobuf.FieldMask": {"type": "string"},
    **{
        f"google.protobuf.{name}": {**schema, "nullable": True}
        for name, schema in (
            ("StringValue", _SCALARS["string"]),
            ("BoolValue", _SCALARS["bool"]),
            ("BytesValue", _SCALARS["bytes"]),
            ("DoubleValue", _NUMBER),
            ("FloatValue", _SCALARS["float"]),
            ("Int32Value", _INT32),
            ("Int64Value", _INT64),
            ("UInt32Value", _SCALARS["uint32"]),
            ("UInt64Value", _SCALARS["uint64"]),
        )
    },
}
