"""Where in a document references are, told by the `Ref` markers of its class.

A path is the names of fields on the wire; `EACH` is every item of a list or every value of a map. Paths are found once for
a class, and a document is then changed along them: what is not on a path is shared between the old and the new one.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Union, get_args, get_origin

import msgspec

from trimtab.model.fields import fields_of, peel
from trimtab.model.hub import EVERYONE
from trimtab.model.markers import Marker, Ref

EACH = "[]"

Path = tuple[str, ...]


class Reference(msgspec.Struct, frozen=True):
    """A field that names objects of another kind; `type` is theirs in the storage service."""

    path: Path
    type: str


def references_of(cls: type, kinds: Mapping[str, str]) -> tuple[Reference, ...]:
    """The references of a class to hub kinds. `kinds`: what `Ref` says → type in the storage service. Other references
    (to Secrets, say) stay names everywhere."""
    found = _marked(cls, (), ())
    return tuple(Reference(path, kinds[kind]) for path, kind in found if kind in kinds)


def has_sharing(schema: Mapping[str, Any]) -> bool:
    """Whether objects of this schema can be shared: `spec.sharing` is of the hub's own type."""
    spec = (schema.get("properties") or {}).get("spec") or {}
    sharing = (spec.get("properties") or {}).get("sharing") or {}
    fields = sharing.get("properties") or ()
    return "enabled" in fields and "projects" in fields


Tree = dict[str, Any]
"""Paths that begin alike, together: step → what is below it; a text is the type that is named there."""


def tree_of(references: Iterable[Reference]) -> Tree:
    """All references of a kind, to go down a document once."""
    tree: Tree = {}
    for reference in references:
        place = tree
        for step in reference.path[:-1]:
            place = place.setdefault(step, {})
        place[reference.path[-1]] = reference.type
    return tree


def collected(value: Any, tree: Tree | str) -> Iterator[tuple[str, str]]:
    """Every (type, text) that a document has at the places of a tree."""
    if isinstance(tree, str):
        if isinstance(value, str):
            yield tree, value
    elif EACH in tree:
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from collected(item, tree[EACH])
    elif isinstance(value, dict):
        for step, below in tree.items():
            if step in value:
                yield from collected(value[step], below)


def placed(value: Any, path: Path, told: str = "") -> Iterator[tuple[str, str]]:
    """Every text at a path, with its place as users write it: `spec.addons[0].name`."""
    if not path:
        if isinstance(value, str):
            yield told, value
    elif path[0] == EACH:
        keyed = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, item in keyed:
            yield from placed(item, path[1:], f"{told}[{key}]")
    elif isinstance(value, dict) and path[0] in value:
        yield from placed(value[path[0]], path[1:], f"{told}.{path[0]}" if told else path[0])


def mapped(value: Any, tree: Tree | str, change: Callable[[str, str], str]) -> Any:
    """The value with every text at the places of a tree changed; `change` gets the type and the text. What is not on the
    way is shared with the old value, and one without any change is the old value."""
    if isinstance(tree, str):
        return change(tree, value) if isinstance(value, str) else value
    if EACH in tree:
        below = tree[EACH]
        if isinstance(value, list):
            return [mapped(item, below, change) for item in value]
        if isinstance(value, dict):
            return {key: mapped(item, below, change) for key, item in value.items()}
        return value
    if not isinstance(value, dict):
        return value
    changed: Any = value
    for step, below in tree.items():
        if step in value:
            old = value[step]
            new = mapped(old, below, change)
            if new is not old:
                if changed is value:
                    changed = dict(value)
                changed[step] = new
    return changed


def stays(name: str) -> bool:
    """Whether a name means no single object, and so has no ID."""
    return name in ("", EVERYONE)


def _kind_of(markers: Sequence[Marker]) -> str:
    return next((marker.kind for marker in markers if isinstance(marker, Ref)), "")


def _marked(annotation: Any, markers: Sequence[Marker], path: Path) -> Iterator[tuple[Path, str]]:
    """Every place below a type that names an object, with the kind that it names."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        for field in fields_of(annotation):
            if path or field.wire not in ("metadata", "apiVersion", "kind"):
                yield from _marked(field.type, field.markers, (*path, field.wire))
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        for member in arguments:
            bare, _, _, more = peel(member)
            yield from _marked(bare, (*markers, *more), path)
        return
    container = origin or annotation
    if isinstance(container, type) and not issubclass(container, str | bytes) and arguments:
        inner = None
        if issubclass(container, Mapping):
            inner = arguments[1]
        elif issubclass(container, Sequence | AbstractSet):
            inner = arguments[0]
        if inner is not None:  # a marker on a list of names means its items
            bare, _, _, more = peel(inner)
            yield from _marked(bare, (*markers, *more), (*path, EACH))
            return
    if kind := _kind_of(markers):
        yield path, kind
