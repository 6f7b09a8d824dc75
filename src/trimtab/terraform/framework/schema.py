"""The schema of a resource, a data source, an ephemeral resource or a provider: attributes and blocks under a version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block, body_type
from trimtab.terraform.framework.paths import ROOT, Every, Index, Key, Name, Path
from trimtab.terraform.framework.types import (
    ListOf,
    MapOf,
    ObjectOf,
    SetOf,
    TupleOf,
    Type,
    holds_dynamic,
)

RESERVED = frozenset({"connection", "count", "depends_on", "for_each", "lifecycle", "provider", "provisioner"})
"""Names at the root of a resource that Terraform keeps for itself."""
RESERVED_BY_PROVIDERS = frozenset({"alias", "version"})

_NAME = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Schema:
    attributes: Mapping[str, Attribute]
    blocks: Mapping[str, Block] = field(default_factory=dict)
    version: int = 0
    """Raised when the state changes its form; `Resource.upgraders` says how to get from the one before."""
    description: str = ""
    deprecated: str = ""

    def value_type(self) -> ObjectOf:
        return body_type(self.attributes, self.blocks)


class SchemaError(ValueError):
    """The provider's own schema is wrong; its author is told, with the place."""


def clipped(path: Path, type_: Type) -> Path:
    """The path as far as the type leads: it ends at a set, whose elements have no place."""
    for at, step in enumerate(path.steps):
        inner = _stepped(type_, step)
        if inner is None or isinstance(type_, SetOf):
            return Path(path.steps[:at])
        type_ = inner
    return path


def leads(path: Path, type_: Type) -> bool:
    """Whether there is such a place in values of the type."""
    for step in path.steps:
        inner = _stepped(type_, step)
        if inner is None:
            return False
        type_ = inner
    return True


def _stepped(type_: Type, step: object) -> Type | None:
    match type_, step:
        case ObjectOf(attributes), Name(name):
            return attributes.get(name)
        case ((ListOf(inner) | SetOf(inner)), (Index() | Every())):
            return inner
        case MapOf(inner), (Key() | Every()):
            return inner
        case TupleOf(items), Index(index) if index < len(items):
            return items[index]
    return None


def check(schema: Schema, reserved: frozenset[str] = RESERVED) -> None:
    """SchemaError with all that Terraform, or this framework, would stumble over later."""
    faults = list(_body(schema.attributes, schema.blocks, ROOT))
    names = (*schema.attributes, *schema.blocks)
    faults += [f"{name}: Terraform keeps this name for itself" for name in names if name in reserved]
    if faults:
        raise SchemaError("; ".join(faults))


def _body(attributes: Mapping[str, Attribute], blocks: Mapping[str, Block], place: Path) -> Iterator[str]:
    for name, attribute in attributes.items():
        yield from _name(name, place)
        yield from _attribute(attribute, place.name(name))
    for name, block in blocks.items():
        yield from _name(name, place)
        if name in attributes:
            yield f"{place.name(name)}: is an attribute and a block"
        if block.nesting != "single" and holds_dynamic(block.object_type()):
            yield f"{place.name(name)}: a collection cannot hold dynamic values"
        yield from _body(block.attributes, block.blocks, place.name(name))


def _name(name: str, place: Path) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f"{place.name(name)}: a name is made of a-z, 0-9 and _, and starts with no digit"


def _attribute(attribute: Attribute, place: Path) -> Iterator[str]:
    if not (attribute.required or attribute.optional or attribute.computed):
        yield f"{place}: must be required, optional or computed"
    if attribute.required and (attribute.optional or attribute.computed):
        yield f"{place}: what is required is neither optional nor computed"
    if attribute.write_only and attribute.computed:
        yield f"{place}: what is write-only is not computed and has no default"
    if isinstance(attribute.type, Nested):
        nested = attribute.type
        if nested.nesting != "single" and holds_dynamic(nested.object_type()):
            yield f"{place}: a collection cannot hold dynamic values"
        for name, inner in nested.attributes.items():
            if attribute.write_only != inner.write_only and (attribute.write_only or nested.nesting == "set"):
                yield f"{place.name(name)}: is write-only, or not, as the object around it"
            if attribute.computed and not attribute.optional and not inner.computed:
                yield f"{place.name(name)}: must be computed, as the object around it"
        if attribute.write_only and nested.nesting == "set":
            yield f"{place}: a set cannot be write-only"
        yield from _body(nested.attributes, {}, place)
    elif holds_dynamic(attribute.type) and isinstance(attribute.type, ListOf | SetOf | MapOf):
        yield f"{place}: a collection cannot hold dynamic values"
