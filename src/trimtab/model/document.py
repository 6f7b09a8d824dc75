"""Between typed objects and documents. A write says only what is meant: what is unset or has its default is not sent.

An object that came from the API keeps its raw document, and what is written is laid over that: fields that the class
does not know survive, also inside lists, whose items are found again by their keys or by their place.
"""

from __future__ import annotations

import base64
import enum
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from trimtab.model.clock import format_time
from trimtab.model.duration import Duration
from trimtab.model.fields import Field, fields_of
from trimtab.model.markers import AlwaysEmit, Initial, Keyed
from trimtab.model.quantity import Quantity
from trimtab.model.resource import Resource, remember

Document = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R", bound=Resource)


def to_document(obj: msgspec.Struct, raw: Mapping[str, Any] | None = None) -> Document:
    """What to send for `obj`, laid over `raw`; a Resource is laid over its own."""
    if raw is None and isinstance(obj, Resource):
        raw = obj.raw
    known, names = _known(type(obj))
    document: Document = {} if raw is None else {name: value for name, value in raw.items() if name not in names}
    for name, wire, default, keyed in known:
        value = getattr(obj, name)
        if value is UNSET or value is None:
            continue
        before = UNSET if raw is None else raw.get(wire, UNSET)
        if before is UNSET and value == default:  # a default that nobody wrote is not sent
            continue
        document[wire] = value if type(value) in _PLAIN else _laid(value, before, keyed)
    return document


@cache
def _known(cls: type) -> tuple[tuple[tuple[str, str, Any, Keyed | None], ...], frozenset[str]]:
    """What `to_document` needs of a class: (name, name on the wire, the default that is not sent, the keys of a list's
    items) of its fields, and their names on the wire."""
    known = tuple(
        (each.name, each.wire, UNSET if each.marker(AlwaysEmit) else each.default, each.marker(Keyed))
        for each in fields_of(cls)
    )
    return known, frozenset(wire for _, wire, _, _ in known)


def plain(value: Any) -> Any:
    """Any value of a typed object as JSON has it."""
    return _laid(value, UNSET, None)


def convert(document: Any, cls: type[T]) -> T:
    """Read a document as `cls`. msgspec.ValidationError when it is of another shape; unknown fields are left aside."""
    made = msgspec.convert(document, cls, dec_hook=_read)
    if isinstance(made, Resource):
        remember(made, document)
    return made


def read(body: bytes, cls: type[R]) -> R:
    """Read JSON as `cls` in one pass; its document is read only when someone asks for it. Raises as `convert` does, and
    msgspec.DecodeError for what is no JSON."""
    decoder = _DECODERS.get(cls)
    if decoder is None:
        decoder = _DECODERS[cls] = msgspec.json.Decoder(cls, dec_hook=_read)
    made: R = decoder.decode(body)
    remember(made, body)
    return made


_DECODERS: dict[type[Resource], msgspec.json.Decoder[Any]] = {}


def patch_between(old: R, new: R) -> Document:
    """The JSON merge patch (RFC 7386) that turns what the API has for `old` into `new`; empty when nothing changed.

    Fields marked Initial are someone else's by now, and most of the metadata is the server's: both are left out.
    """
    patch = _changed(old, _with_initial(new, old), old.raw)
    metadata = {name: value for name, value in (patch.pop("metadata", None) or {}).items() if name in _OURS}
    meant = {name: value for name, value in patch.items() if name not in ("apiVersion", "kind")}
    return {"metadata": metadata, **meant} if metadata else meant


def _changed(old: msgspec.Struct, new: msgspec.Struct, raw: Mapping[str, Any] | None) -> Document:
    """The merge patch between two structs of one class that were laid over `raw`. What `replace` left alone is the same
    object, and is not looked at: a status is written often, and what it belongs to is large."""
    patch: Document = {}
    for field in fields_of(type(old)):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before is after:
            continue
        inner = raw.get(field.wire) if raw is not None else None
        if isinstance(before, msgspec.Struct) and type(before) is type(after) and isinstance(inner, Mapping):
            if found := _changed(before, after, inner):
                patch[field.wire] = found
        else:
            patch |= merge_diff(_written(old, field, raw), _written(new, field, raw))
    return patch


def _written(obj: msgspec.Struct, field: Field, raw: Mapping[str, Any] | None) -> Document:
    """What `to_document` writes for one field."""
    value = getattr(obj, field.name)
    before = UNSET if raw is None else raw.get(field.wire, UNSET)
    if value is UNSET or value is None:
        return {}
    if before is UNSET and value == field.default and not field.marker(AlwaysEmit):
        return {}
    return {field.wire: _laid(value, before, field.marker(Keyed))}


def merge_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> Document:
    """The JSON merge patch from one document to another. Lists are replaced whole."""
    patch: Document = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name, UNSET)
        if before is not UNSET and before == value and isinstance(before, bool) is isinstance(value, bool):
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := merge_diff(before, value):
                patch[name] = inner
        else:
            patch[name] = value
    return patch


def equal(one: Any, other: Any) -> bool:
    """Equal in JSON's eyes: true is not 1, and 1.0 is written in another way than 1."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def same(one: Any, other: Any) -> bool:
    """Whether two values say the same: true is not 1, as `equal` has it, but 1 is 1.0."""
    if one is other:
        return True
    if one != other:
        return False
    if not isinstance(one, dict | list):
        return _same(one, other)
    try:
        if _encode(one) == _encode(other):
            return True  # by far the most, in a fraction of the time
    except (TypeError, ValueError):
        pass
    return _same(one, other)


def _same(one: Any, other: Any) -> bool:
    """What Python finds equal, with its own idea of truth values."""
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and all(
            name in other and _same(value, other[name]) for name, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


_encode = msgspec.json.Encoder().encode
_OURS = ("annotations", "finalizers", "labels", "ownerReferences")
"""The metadata that a writer may change."""


def _with_initial(obj: Any, old: Any) -> Any:
    """`obj` with the Initial fields as they are in `old`."""
    changes: dict[str, Any] = {}
    for field in fields_of(obj.__class__):
        ours, theirs = getattr(obj, field.name), getattr(old, field.name)
        if ours is theirs:
            continue
        if field.marker(Initial):
            if ours != theirs:
                changes[field.name] = theirs
        elif isinstance(ours, msgspec.Struct) and type(ours) is type(theirs):
            inner = _with_initial(ours, theirs)
            if inner is not ours:
                changes[field.name] = inner
    return msgspec.structs.replace(obj, **changes) if changes else obj


def _laid(value: Any, before: Any, keyed: Keyed | None) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        olds = before if isinstance(before, dict) else _NOTHING
        return {
            key: item if type(item) in _PLAIN else _laid(item, olds.get(key, UNSET), None)
            for key, item in value.items()
        }
    if kind is tuple or kind is list:
        return _laid_list(value, before, keyed)
    if isinstance(value, msgspec.Struct):
        return to_document(value, before if type(before) is dict or isinstance(before, Mapping) else None)
    if isinstance(value, Duration | Quantity):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {key: _laid(item, UNSET, None) for key, item in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(_laid(item, UNSET, None) for item in value)
    if isinstance(value, Sequence):
        return _laid_list(value, before, keyed)
    raise TypeError(f"{type(value).__name__} cannot be written in a document")


_PLAIN = frozenset({str, int, float, bool, type(None)})
_NOTHING: Document = {}


def _laid_list(value: Sequence[Any], before: Any, keyed: Keyed | None) -> list[Any]:
    olds = before if isinstance(before, list) else []
    if keyed is None:
        return [_laid(item, olds[i] if i < len(olds) else UNSET, None) for i, item in enumerate(value)]
    by_key = {tuple(old.get(key) for key in keyed.keys): old for old in olds if isinstance(old, Mapping)}
    return [_laid(item, by_key.get(_key(item, keyed.keys), UNSET), None) for item in value]


def _key(item: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """What an item's document says at its keys."""
    if not isinstance(item, msgspec.Struct):
        return tuple(_laid(item, UNSET, None).get(name) for name in names)
    values = [(getattr(item, name, UNSET), default) for name, default in _keys(type(item), names)]
    return tuple(
        None if value is UNSET or value is None or value == default else _laid(value, UNSET, None)
        for value, default in values
    )


@cache
def _keys(cls: type, names: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """(name, default that is not sent) of the fields with these names on the wire."""
    known = {wire: (name, default) for name, wire, default, _ in _known(cls)[0]}
    return tuple(known.get(name, ("", UNSET)) for name in names)


def _read(cls: type, value: Any) -> Any:
    if issubclass(cls, Duration):
        if not isinstance(value, str):
            raise ValueError("a duration is a string")
        return cls(value)
    if cls is Quantity:
        if not isinstance(value, str | int | float):
            raise ValueError("a quantity is a string or a number")
        return Quantity(str(value))
    raise NotImplementedError(f"{cls.__name__} cannot be read from a document")
