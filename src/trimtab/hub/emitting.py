"""What of a document is shown, and in which order: the same for the same document, so that a diff shows changes only.

Five words of metadata; the rest in the order of the kind's definition, keys of maps sorted. What has its default is left out,
unless the class says `AlwaysEmit`.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin

import msgspec

from trimtab.hub.contract import Hub
from trimtab.hub.references import EACH, Path
from trimtab.model.document import equal
from trimtab.model.fields import fields_of, peel
from trimtab.model.hub import own_metadata
from trimtab.model.kind import Kind
from trimtab.model.markers import AlwaysEmit


@cache
def always(cls: type) -> frozenset[Path]:
    """The fields of a class that are sent though they have their defaults."""
    return frozenset(_always(cls, ()))


def shown(hub: Hub, kind: Kind, emitted: Collection[Path] = (), *, without: Collection[str] = ()) -> Hub:
    """A document as it is written. `without`: annotations that are left out."""
    metadata = own_metadata(hub.get("metadata") or {})
    for word in ("labels", "annotations"):
        if word in metadata:
            kept = {name: value for name, value in sorted(metadata[word].items()) if name not in without}
            metadata[word] = kept
    metadata = {word: value for word, value in metadata.items() if value}
    properties = kind.schema.document.get("properties") or {}
    found: Hub = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    for word in (*properties, *sorted(hub.keys() - properties.keys())):
        if word not in ("apiVersion", "kind", "metadata") and hub.get(word) is not None:
            found[word] = _ordered(hub[word], properties.get(word) or {}, (word,), emitted)
    return found


def _ordered(value: Any, schema: Mapping[str, Any], path: Path, emitted: Collection[Path]) -> Any:
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_ordered(item, items, (*path, EACH), emitted) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    found: dict[str, Any] = {}
    for name, part in properties.items():
        below = (*path, name)
        if name in value and (_kept(below, emitted) or not _is_default(value[name], part)):
            found[name] = _ordered(value[name], part, below, emitted)
    for name in sorted(value.keys() - properties.keys()):
        found[name] = _ordered(value[name], others if isinstance(others, Mapping) else {}, (*path, EACH), emitted)
    return found


def _kept(path: Path, emitted: Collection[Path]) -> bool:
    """Whether this, or something in it, is always sent."""
    return any(each[: len(path)] == path for each in emitted)


def _is_default(value: Any, schema: Mapping[str, Any]) -> bool:
    given = schema.get("default")
    return given is not None and equal(value, given)


def _always(annotation: Any, path: Path) -> Iterator[Path]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        for field in fields_of(annotation):
            if path or field.wire != "metadata":
                if field.marker(AlwaysEmit):
                    yield (*path, field.wire)
                yield from _always(field.type, (*path, field.wire))
        return
    origin = get_origin(annotation)
    for member in get_args(annotation):
        if member is not Ellipsis:
            step = () if origin in (Union, types.UnionType) else (EACH,)
            yield from _always(peel(member)[0], (*path, *step))
