"""What an applier no longer says goes away, unless someone else owns it.

Only what the applier owned by its last configuration can go: fields that nobody owns (defaults, say) stay, unless their
container goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trimtab.server.apply.elements import UnkeyedError, element_of
from trimtab.server.apply.fieldset import SELF, FieldSet, difference, intersection, union
from trimtab.server.apply.typed import fields_of
from trimtab.server.apply.types import List, Map, Type


def prune(kind: Type | None, merged: Any, last: FieldSet, fields: FieldSet, owned: Sequence[FieldSet]) -> Any:
    """`merged` without what its applier's `last` set holds and none of `owned`, the sets of all managers, does.

    `fields` is the applier's new set, one of `owned`. Where all that it gave up lies below one field, of which it still
    says something, only that field is looked at.
    """
    given_up = difference(last, fields)
    if not given_up:
        return merged
    if len(given_up) == 1 and kind is not None and kind.map is not None and isinstance(merged, dict):
        element = next(iter(given_up))
        name = element[2:]
        if fields.get(element) and name in merged:
            theirs = [below[element] for below in owned if element in below]
            part = prune(kind.map.fields[name], merged[name], last[element], fields[element], theirs)
            return merged | {name: part}
    return prune_here(kind, merged, last, owned)


def prune_here(kind: Type | None, merged: Any, last: FieldSet, owned: Iterable[FieldSet]) -> Any:
    """The same by the whole value: take out all of `last`, put back what someone owns, let go only what was owned."""
    whole = named(kind, fields_of(kind, merged))
    last = named(kind, last)
    kept = named(kind, fields_of(kind, remove(kind, merged, last)))
    for fields in owned:
        kept = union(kept, named(kind, fields))
    kept = named(kind, fields_of(kind, remove(kind, merged, difference(whole, kept))))
    return remove(kind, merged, intersection(difference(whole, kept), last))


def remove(kind: Type | None, value: Any, fields: FieldSet) -> Any:
    """The value without these fields. As on the real server, null when nothing is left of it: for a built-in kind that
    is an absent field, a custom resource has to allow it."""
    if not fields or kind is None:
        return value
    if isinstance(value, dict) and kind.map is not None:
        return _removed_from_map(kind.map, value, fields)
    if isinstance(value, list) and kind.list is not None:
        return _removed_from_list(kind.list, value, fields)
    return value


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


def _removed_from_map(shape: Map, value: dict[str, Any], fields: FieldSet) -> Any:
    if shape.atomic:
        return None
    rest = {}
    for name, below in value.items():
        node = fields.get("f:" + name)
        if node is None:
            rest[name] = below
        elif node and SELF not in node:
            rest[name] = remove(shape.fields[name], below, node)
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
            rest.append(remove(series.element, item, node))
    return rest or None
