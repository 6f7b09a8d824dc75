"""What a class declares, field by field: names on the wire, types, defaults and markers. Schemas, documents, Terraform
and docs all read classes through this."""

from __future__ import annotations

import types
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, UnsetType

from trimtab.model.markers import Marker

M = TypeVar("M", bound=Marker)


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a struct. `type` has Annotated and the ways to be absent taken off at the outermost level."""

    name: str  # in Python
    wire: str  # in documents
    type: Any
    optional: bool  # may be absent: unset, None, or with a default
    default: Any = UNSET  # UNSET: none
    metas: tuple[Meta, ...] = ()
    markers: tuple[Marker, ...] = ()

    def marker(self, kind: type[M]) -> M | None:
        return next((marker for marker in self.markers if isinstance(marker, kind)), None)

    @property
    def description(self) -> str:
        return next((meta.description for meta in self.metas if meta.description), "")


@cache
def fields_of(cls: type) -> tuple[Field, ...]:
    """The fields in the order of the class."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_field(field, hints[field.name]) for field in msgspec.structs.fields(cls))


def peel(annotation: Any) -> tuple[Any, bool, tuple[Meta, ...], tuple[Marker, ...]]:
    """Take Annotated, `| UnsetType` and `| None` off: (type, may be absent, metas, markers)."""
    metas: tuple[Meta, ...] = ()
    markers: tuple[Marker, ...] = ()
    absent = False
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *extras = get_args(annotation)
            metas += tuple(extra for extra in extras if isinstance(extra, Meta))
            markers += tuple(extra for extra in extras if isinstance(extra, Marker))
            continue
        if origin in (Union, types.UnionType):
            members = [m for m in get_args(annotation) if m not in (UnsetType, types.NoneType)]
            absent = absent or len(members) < len(get_args(annotation))
            if len(members) == 1:
                annotation = members[0]
                continue
            annotation = Union[tuple(members)]  # noqa: UP007 - built at run time
        return annotation, absent, metas, markers


def _field(field: msgspec.structs.FieldInfo, annotation: Any) -> Field:
    bare, absent, metas, markers = peel(annotation)
    default: Any = UNSET
    if field.default is not NODEFAULT:
        default = field.default
    elif field.default_factory is not NODEFAULT:
        default = field.default_factory()
    if default is None:
        default = UNSET
    return Field(
        name=field.name,
        wire=field.encode_name,
        type=bare,
        optional=absent or not field.required,
        default=default,
        metas=metas,
        markers=markers,
    )
