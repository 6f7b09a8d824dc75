"""What an applier no longer says goes away, unless someone else owns it.

Only what the applier owned by its last configuration can go: fields that nobody owns (defaults, say) stay, unless their
container goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trimtab.server.apply.elements import UnkeyedError, element_of
from trimtab.server.apply.fieldset import SELF, FieldSet, difference, intersection, union
from trimtab.server.apply.typed import fields_of
from trimtab.server.apply.types import List, Map, Root, Type


def prune(kind: Root, merged: dict[str, Any], last: FieldSet, owned: Iterable[FieldSet]) -> dict[str, Any]:
    """`merged` without what `last` holds and none of `owned`, the sets of all managers, does."""
    whole = named(kind, fields_of(kind, merged))
    last = named(kind, last)
    kept = named(kind, fields_of(kind, remove(kind, merged, last)))
    for fields in owned:
        kept = union(kept, named(kind, fields))
    kept = named(kind, fields_of(kind, remove(kind, merged, difference(whole, kept))))
    return remove(kind, merged, intersection(difference(whole, kept), last))


def remove(kind: Root, document: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    """The document without these fields."""
    if not fields:
        return document
    return _removed(kind, document, fields) or {}


def named(kind: Type | None, fields: FieldSet) -> FieldSet:
    """The set with the declared fields on the way to its members as members too."""
    result = {}
    changed = False
    for element, below in fields.items():
        node = below
        if below:
            node = named(_below(kind, element), below)
            declared = kind is not None and kind.map is not None and element[2:] in kind.map.fields.properties
            if element[0] == "f" and declared and SELF not in node:
                node = {SELF: {}, **node}
            changed = changed or node is not below
        result[element] = node
    return result if changed else fields


def reconciled(kind: Type | None, fields: FieldSet) -> FieldSet:
    """A set that was written under an older schema: what is atomic now is owned as a whole."""
    if kind is None or (kind.map is not None and _is_free(kind.map)):
        return fields
    result = fields
    for element, below in fields.items():
        if not below:
            continue
        child = _below(kind, element)
        node = {} if _is_atomic(child) else reconciled(child, below)
        if node is not below:
            if result is fields:
                result = dict(fields)
            result[element] = node
    return result


def _is_atomic(kind: Type | None) -> bool:
    if kind is None:
        return False
    if kind.map is not None:
        return kind.map.atomic and not _is_free(kind.map)
    return not kind.scalar and kind.list is not None and kind.list.atomic


def _is_free(shape: Map) -> bool:
    """Whether nothing is known of a map's fields, so that no older schema can have known more."""
    element = shape.element
    if shape.fields.properties or element is None or element.scalar != "untyped":
        return False
    return element.map is None or not element.map.atomic


def _below(kind: Type | None, element: str) -> Type | None:
    if kind is None:
        return None
    if element[0] == "f":
        return kind.map.fields[element[2:]] if kind.map is not None else None
    if element[0] == "k":
        return kind.list.element if kind.list is not None else None
    return None


def _removed(kind: Type | None, value: Any, fields: FieldSet) -> Any:
    """What remains of a value. As on the real server, null when nothing does: for a built-in kind that is an absent
    field, a custom resource has to allow it."""
    if kind is not None and isinstance(value, dict) and kind.map is not None:
        return _removed_from_map(kind.map, value, fields)
    if kind is not None and isinstance(value, list) and kind.list is not None:
        return _removed_from_list(kind.list, value, fields)
    return value


def _removed_from_map(shape: Map, value: dict[str, Any], fields: FieldSet) -> Any:
    if shape.atomic:
        return None
    rest = {}
    for name, below in value.items():
        node = fields.get("f:" + name)
        if node is None:
            rest[name] = below
        elif node and SELF not in node:
            rest[name] = _removed(shape.fields[name], below, node)
    return rest or None


def _removed_from_list(series: List, value: list[Any], fields: FieldSet) -> Any:
    if series.atomic:
        return None
    rest = []
    for item in value:
        try:
            node = fields.get(element_of(series, item))
        except UnkeyedError:
            node = None
        if node is None:
            rest.append(item)
        elif node and SELF not in node:
            rest.append(_removed(series.element, item, node))
    return rest or None
