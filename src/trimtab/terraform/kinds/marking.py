"""Hints from the classes of kinds. The provider itself runs without those, and never imports this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args, get_origin

import msgspec

from trimtab.model.fields import fields_of, peel
from trimtab.model.markers import ReadOnly, Sensitive, WriteOnly
from trimtab.model.scheme import Scheme
from trimtab.terraform.kinds.hints import READ_ONLY, SENSITIVE, WRITE_ONLY, Hints, Path


def hints_of(classes: Iterable[Any], suffix: str = "trimtab.dev") -> dict[tuple[str, str], Hints]:
    """By group and kind, of classes of `trimtab.model.resource.Resource`."""
    scheme = Scheme(suffix)
    found = {}
    for cls in classes:
        kind = scheme.kind_of(cls)
        found[kind.group, kind.kind] = Hints(dict(_marks(cls, ())))
    return found


def _marks(cls: type, path: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    words = ((ReadOnly, READ_ONLY), (WriteOnly, WRITE_ONLY), (Sensitive, SENSITIVE))
    for one in fields_of(cls):
        if not path and one.wire in ("metadata", "status"):
            continue
        here = (*path, one.wire)
        if marks := frozenset(word for marker, word in words if one.marker(marker)):
            yield here, marks
        yield from _inside(one.type, here)


def _inside(annotation: Any, path: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    """Marks of structs in this type: itself, items of a list, values of a map."""
    bare = peel(annotation)[0]
    origin, arguments = get_origin(bare), get_args(bare)
    if isinstance(bare, type) and origin is None and issubclass(bare, msgspec.Struct):
        yield from _marks(bare, path)
    elif isinstance(origin, type) and arguments:
        inner = arguments[1] if issubclass(origin, Mapping) and len(arguments) > 1 else arguments[0]
        yield from _inside(inner, (*path, "*"))
