"""A kind in the shape that Terraform sees it: names on both sides, forms of values, what may change and what may not.

Pure data, made from the server's schema once and kept in a file; `pack` and `unpack` are its compact JSON form. Fields
have two names: `name` in Terraform, `wire` in documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STRING, NUMBER, INTEGER, BOOL = "string", "number", "integer", "bool"
JSON = "json"
"""Anything, as JSON text. Terraform's own dynamic type may not be inside lists and maps of objects, and cannot say which
of its parts are unknown; text can be anywhere, and `jsonencode` writes it."""
INT_OR_STRING, QUANTITY, DURATION, TIME = "int_or_string", "quantity", "duration", "time"
TEXTS = frozenset({STRING, JSON, INT_OR_STRING, QUANTITY, DURATION, TIME})
"""Forms that are strings in Terraform."""
OBJECT, LIST, SET, MAP, KEYED = "object", "list", "set", "map", "keyed"
"""KEYED is a list in documents whose items are told apart by one field, and a map by that field in Terraform."""

Packed = dict[str, Any]


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()
"""No default; None would be one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Fields of an object of which one is set; none is allowed too when it is not `required`."""

    wires: tuple[str, ...]
    required: bool = True


@dataclass(frozen=True, slots=True)
class Shape:
    """The form of a value."""

    form: str
    fields: tuple[Field, ...] = ()
    """Of an object, by name."""
    items: Shape | None = None
    keys: tuple[str, ...] = ()
    """Wire names of the fields by which items of a list are told apart; KEYED has exactly one."""
    key_form: str = STRING
    choices: tuple[Choice, ...] = ()
    values: tuple[Any, ...] = ()
    """All that it may be, when they are few."""
    atomic: bool = False
    """An object or map that has one owner as a whole. Lists without keys always have."""

    def field(self, wire: str) -> Field | None:
        return next((field for field in self.fields if field.wire == wire), None)


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    wire: str
    shape: Shape
    required: bool = False
    computed: bool = False
    """Written by the system, never by users."""
    sensitive: bool = False
    write_only: bool = False
    replace: bool = False
    """Never changes: another value is another object."""
    default: Any = NOTHING
    """As documents have it, when nobody gives one."""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """One kind as a resource."""

    name: str
    """Without the provider's: `infra_cluster`."""
    plural_name: str
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    hub: bool
    """Kinds of the hub live in projects, and are described."""
    root: Shape
    description: str = ""
    branch: tuple[str, ...] = ()
    """Wire path of the one branch of a choice that this resource is about; () for the kind as a whole."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def place(self) -> str:
        """What the place of an object is called: `project`, `namespace`, or "" where objects are in none."""
        if not self.namespaced:
            return ""
        return "project" if self.hub else "namespace"

    @property
    def observed(self) -> bool:
        """Whether somebody is to tell by conditions how objects do."""
        status = self.root.field("status")
        return status is not None and {"conditions", "observedGeneration"} <= {one.wire for one in status.shape.fields}


def pack(shape: Shape) -> Packed:
    packed: Packed = {"f": shape.form}
    if shape.fields:
        packed["a"] = [_pack_field(one) for one in shape.fields]
    if shape.items is not None:
        packed["i"] = pack(shape.items)
    if shape.keys:
        packed["k"] = list(shape.keys)
        if shape.key_form != STRING:
            packed["kf"] = shape.key_form
    if shape.choices:
        packed["c"] = [[list(one.wires), one.required] for one in shape.choices]
    if shape.values:
        packed["v"] = list(shape.values)
    if shape.atomic:
        packed["w"] = 1
    return packed


def unpack(packed: Mapping[str, Any]) -> Shape:
    return Shape(
        form=packed["f"],
        fields=tuple(_unpack_field(one) for one in packed.get("a", ())),
        items=unpack(packed["i"]) if "i" in packed else None,
        keys=tuple(packed.get("k", ())),
        key_form=packed.get("kf", STRING),
        choices=tuple(Choice(tuple(wires), required) for wires, required in packed.get("c", ())),
        values=tuple(packed.get("v", ())),
        atomic=bool(packed.get("w")),
    )


_FLAGS = ("required", "computed", "sensitive", "write_only", "replace")


def _pack_field(one: Field) -> list[Any]:
    flags = sum(1 << bit for bit, flag in enumerate(_FLAGS) if getattr(one, flag))
    packed = [one.name, one.wire if one.wire != one.name else 0, pack(one.shape), flags, one.description]
    return packed if one.default is NOTHING else [*packed, one.default]


def _unpack_field(packed: list[Any]) -> Field:
    name, wire, shape, flags, description = packed[:5]
    return Field(
        name=name,
        wire=wire or name,
        shape=unpack(shape),
        description=description,
        default=packed[5] if len(packed) > 5 else NOTHING,
        **{flag: bool(flags >> bit & 1) for bit, flag in enumerate(_FLAGS)},
    )


def pack_definition(definition: Definition) -> Packed:
    """All of it; `head` of the snapshot's index is a part of this."""
    return {**head(definition), "root": pack(definition.root), "description": definition.description}


def head(definition: Definition) -> Packed:
    """What can be told of a kind without its fields."""
    return {
        "name": definition.name,
        "plural_name": definition.plural_name,
        "group": definition.group,
        "version": definition.version,
        "kind": definition.kind,
        "plural": definition.plural,
        "namespaced": definition.namespaced,
        "hub": definition.hub,
        "branch": list(definition.branch),
    }


def unpack_definition(packed: Mapping[str, Any]) -> Definition:
    given = {name: packed[name] for name in Definition.__dataclass_fields__ if name not in ("root", "branch")}
    return Definition(**given, root=unpack(packed["root"]), branch=tuple(packed["branch"]))
