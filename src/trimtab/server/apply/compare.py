"""What changed between two objects: the fields that were added, modified and removed.

This is on the path of every write, so whatever `==` finds equal is left alone; only what differs is walked with its
type. (`==` takes true for 1. A schema keeps them apart; where it gives some place no type, they are told apart beforehand.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trimtab.server.apply.elements import indexed
from trimtab.server.apply.fieldset import SELF, FieldSet, ordered, recursive_difference
from trimtab.server.apply.types import List, Map, Root, Type

# What nobody manages. The object's identity and what the server alone sets.
UNMANAGED = frozenset({"apiVersion", "kind", "metadata"})  # metadata is compared on its own
UNMANAGED_METADATA = frozenset(
    {
        "name",
        "namespace",
        "project",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)


class Comparison(NamedTuple):
    """Three sets without a common member. All empty: the objects were equal."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    def without(self, fields: FieldSet) -> Comparison:
        """The comparison as if these fields, and all below them, did not exist."""
        if not fields:
            return self
        return Comparison(*[recursive_difference(part, fields) if part else part for part in self])


# A part of a comparison at one node: None is nothing, an empty set the node itself (as in FieldsV1).
_Node = FieldSet | None
_Parts = tuple[_Node, _Node, _Node]


def compare(kind: Root, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """What made `new` of `old`, both whole objects. Fields that nobody manages are left out."""
    if kind.loose:
        old = told_apart(old, new)
    parts = _compare_maps(kind.map, old, new, UNMANAGED)
    before, after = old.get("metadata") or {}, new.get("metadata") or {}
    if before is not after:
        for part, below in zip(parts, _compare_maps(kind.metadata, before, after, UNMANAGED_METADATA), strict=True):
            if below:
                part["f:metadata"] = below
    return Comparison(*[ordered(part) if len(part) > 1 else part for part in parts])


def told_apart(old: Any, new: Any) -> Any:
    """`old`, with what is a truth where `new` has a number, or a number where it has a truth, equal to nothing."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = {name: told_apart(value, new[name]) for name, value in old.items() if name in new}
        return old | found if any(value is not old[name] for name, value in found.items()) else old
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        items = [told_apart(one, other) for one, other in zip(old, new, strict=True)]
        return items if any(made is not item for made, item in zip(items, old, strict=True)) else old
    return _OTHER if isinstance(old, bool) != isinstance(new, bool) and old == new else old


_OTHER = object()


def everything(kind: Type | None, value: Any) -> FieldSet:
    """The node of a value that exists on one side only: itself and all below it."""
    if kind is None or not value:
        return {}
    if isinstance(value, dict):
        shape = kind.map
        if shape is None or shape.atomic:
            return {}
        node: FieldSet = {SELF: {}}
        if not shape.fields.properties and (element := shape.element) and element.map is None and element.list is None:
            for name in sorted(value):
                node["f:" + name] = {}
            return node
        fields = shape.fields
        for name in sorted(value):
            below = value[name]
            node["f:" + name] = everything(fields[name], below) if isinstance(below, (dict, list)) else {}
        return node
    if isinstance(value, list):
        series = kind.list
        if series is None or series.atomic:
            return {}
        node = {SELF: {}}
        for path_element, items in indexed(series, value).items():
            node[path_element] = everything(series.element, items[0]) if len(items) == 1 else {}
        return ordered(node)
    return {}


def _compare_maps(
    shape: Map, old: dict[str, Any], new: dict[str, Any], left_out: frozenset[str] = frozenset()
) -> tuple[FieldSet, FieldSet, FieldSet]:
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    fields = shape.fields
    for name, value in new.items():
        if name in left_out:
            continue
        if name not in old:
            added["f:" + name] = everything(fields[name], value)
        elif (before := old[name]) != value:
            more, other, less = _compare(fields[name], before, value)
            if more is not None:
                added["f:" + name] = more
            if other is not None:
                modified["f:" + name] = other
            if less is not None:
                removed["f:" + name] = less
    for name, value in old.items():
        if name not in new and name not in left_out:
            removed["f:" + name] = everything(fields[name], value)
    if len(added) > 1:
        added = ordered(added)
    if len(modified) > 1:
        modified = ordered(modified)
    if len(removed) > 1:
        removed = ordered(removed)
    return added, modified, removed


def _compare(kind: Type | None, old: Any, new: Any) -> _Parts:
    """Two values that differ."""
    if kind is None or (kind.map is None and kind.list is None):
        return None, {}, None
    if isinstance(old, dict) and isinstance(new, dict):
        if kind.map is None or kind.map.atomic:
            return None, {}, None
        return _parts(_compare_maps(kind.map, old, new))
    if isinstance(old, list) and isinstance(new, list):
        if kind.list is None or kind.list.atomic:
            return None, {}, None
        return _compare_lists(kind.list, old, new)
    # The kind of value changed: what was a container lost its children, what is one gained them.
    less, more = _children(kind, old), _children(kind, new)
    leaf = (less is None and old is not None) or (more is None and new is not None) or (less is None and more is None)
    return more, {} if leaf else None, less


def _compare_lists(series: List, old: list[Any], new: list[Any]) -> _Parts:
    before, after = indexed(series, old), indexed(series, new)
    added: FieldSet = {}
    modified: FieldSet = {}
    removed: FieldSet = {}
    for element, items in after.items():
        earlier = before.get(element, [])
        if len(items) > 1 and len(earlier) > 1:  # duplicates are one atomic thing
            if items != earlier:
                modified[element] = {}
        elif len(items) > 1:
            added[element] = {}
            if earlier:
                removed[element] = everything(series.element, earlier[0])
        elif len(earlier) > 1:
            added[element] = everything(series.element, items[0])
            removed[element] = {}
        elif not earlier:
            added[element] = everything(series.element, items[0])
        elif items != earlier:
            more, other, less = _compare(series.element, earlier[0], items[0])
            if more is not None:
                added[element] = more
            if other is not None:
                modified[element] = other
            if less is not None:
                removed[element] = less
    for element, items in before.items():
        if element not in after:
            removed[element] = everything(series.element, items[0]) if len(items) == 1 else {}
    return _parts((ordered(added), ordered(modified), ordered(removed)))


def _children(kind: Type, value: Any) -> _Node:
    """The node of a container's children, without itself; None when it is a leaf."""
    node = everything(kind, value)
    return {element: below for element, below in node.items() if element != SELF} or None


def _parts(parts: tuple[FieldSet, FieldSet, FieldSet]) -> _Parts:
    added, modified, removed = parts
    return added or None, modified or None, removed or None
