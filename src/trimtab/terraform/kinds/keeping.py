"""What the server did not keep of what it was sent: fields that it ignores, or writes in another way.

Such a field would be in every plan from now on, so the user is told which it is, once, when it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.kinds.converting import aligned
from trimtab.terraform.kinds.definition import OBJECT, SET, Shape
from trimtab.terraform.kinds.equality import means_the_same


def unkept(shape: Shape, given: Any, found: Any, path: Path = ROOT) -> Iterator[Path]:
    """Paths of given values that are not there, or are there as others. `found` is what will be shown of them."""
    if given is None or given in ({}, [], ""):
        return  # servers leave out what is empty
    items = shape.items
    if shape.form == OBJECT and isinstance(found, dict):
        for field in shape.fields:
            if not field.write_only:
                yield from unkept(field.shape, given.get(field.name), found.get(field.name), path.name(field.name))
    elif items is not None and isinstance(given, dict) and isinstance(found, dict):
        for key, item in given.items():
            yield from unkept(items, item, found.get(key), path.key(key))
    elif items is not None and items.form == OBJECT and isinstance(given, list) and isinstance(found, list):
        for at, (item, match) in enumerate(zip(given, aligned(shape, given, found), strict=True)):
            yield from unkept(items, item, match, path.index(at))
    elif shape.form == SET and items is not None and isinstance(found, list):
        if not all(any(means_the_same(items, item, one) for one in found) for item in given):
            yield path
    elif not _is_blank(given) and (found is None or not means_the_same(shape, given, found)):
        yield path


def _is_blank(given: Any) -> bool:
    return isinstance(given, dict) and all(item is None or _is_blank(item) for item in given.values())
