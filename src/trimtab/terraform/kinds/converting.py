"""Documents and Terraform values, turned into each other by a shape. Pure and lossless, in both directions:

- `to_document(shape, from_document(shape, document))` is the document, as far as the shape knows its fields, without nulls;
- `from_document(shape, to_document(shape, value))` is the value, if nothing in it is unknown; JSON may be spelled anew.

A null is an absent field, or an absent item of a map or keyed list. Nothing unknown gets into a document: `UnknownValue`
says where one was.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.values import UNKNOWN
from trimtab.terraform.kinds.definition import INTEGER, OBJECT, Shape

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")
"""As many digits as 64 bits have."""
NOT_NULL = "must not be null: leave it out instead"
WHOLE_NUMBER = "must be a whole number"


class BadValue(ValueError):  # noqa: N818 - it is what the user gave
    """A value that no document can hold; the message names it."""

    def __init__(self, path: Path, rule: str) -> None:
        super().__init__(f"{path} {rule}" if path.steps else rule)
        self.path = path


class UnknownValue(ValueError):  # noqa: N818 - it is what was found
    """A value that is not known yet was to become a part of a document."""


class Misfit(ValueError):  # noqa: N818 - likewise
    """A document has another form than its schema says."""


def from_document(shape: Shape, document: Any) -> Any:
    """The Terraform value of a part of a document. Fields that the shape does not know are left out."""
    if document is None:
        return None
    match shape.form:
        case "object":
            _expect(document, dict)
            return {field.name: from_document(field.shape, document.get(field.wire)) for field in shape.fields}
        case "list" | "set":
            _expect(document, list)
            return [from_document(_items(shape), item) for item in document]
        case "map":
            _expect(document, dict)
            return {str(key): from_document(_items(shape), item) for key, item in document.items()}
        case "keyed":
            _expect(document, list)
            return {_key_of(shape, item): from_document(_items(shape), item) for item in document}
    return scalar_from(shape.form, document)


def scalar_from(form: str, value: Any) -> Any:
    match form:
        case "json":
            return spelled(value)
        case "bool":
            _expect(value, bool)
            return value
        case "number" | "integer":
            if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
                raise Misfit(f"expected a number, not {called(value)}")
            return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
        case "int_or_string" | "quantity" if isinstance(value, bool | dict | list):
            raise Misfit(f"expected a number or a string, not {called(value)}")
        case "int_or_string":
            if isinstance(value, str) and int_or_string(value) != value:
                return json.dumps(value, ensure_ascii=False)  # in quotes: a string that looks like a number
            return value if isinstance(value, str) else str(value)
        case "quantity":
            return value if isinstance(value, str) else json.dumps(value)
    _expect(value, str)
    return value


def to_document(shape: Shape, value: Any, path: Path = ROOT) -> Any:
    """The part of a document that a Terraform value is; None for null."""
    if value is None:
        return None
    if value is UNKNOWN:
        raise UnknownValue(f"{path if path.steps else 'the value'} is not known yet")
    match shape.form:
        case "object":
            converted = (
                (field.wire, to_document(field.shape, value.get(field.name), path.name(field.name)))
                for field in shape.fields
            )
            return {wire: inner for wire, inner in converted if inner is not None}
        case "list" | "set":
            return [to_document(_items(shape), item, path.index(at)) for at, item in enumerate(value)]
        case "map":
            converted = ((key, to_document(_items(shape), item, path.key(key))) for key, item in value.items())
            return {key: inner for key, inner in converted if inner is not None}
        case "keyed":
            return [_keyed_item(shape, key, value[key], path) for key in sorted(value) if value[key] is not None]
    return scalar_to(shape.form, value, path)


def scalar_to(form: str, value: Any, path: Path = ROOT) -> Any:
    match form:
        case "json":
            try:
                parsed = json_of(value)
            except (ValueError, RecursionError) as error:
                raise BadValue(path, f"must be JSON, as jsonencode writes it: {error}") from None
            if parsed is None:
                raise BadValue(path, NOT_NULL)
            return parsed
        case "number":
            return _number(value) if abs(value) < 2**53 else _double(value, path)
        case "integer":
            return _number(value)
        case "int_or_string":
            return int_or_string(value)
    return value


def int_or_string(text: str) -> int | str:
    """What the text stands for: a number, or a string, in quotes where it would else be taken for a number."""
    if is_whole(text):
        return int(text)
    if text.startswith('"'):
        with contextlib.suppress(ValueError):
            return str(json.loads(text))
    return text


def is_whole(text: str) -> bool:
    """A whole number, in the one spelling that it has."""
    return text != "-0" and _WHOLE.fullmatch(text) is not None


def json_of(text: str) -> Any:
    """ValueError for what is no JSON, which NaN is not, and for numbers that are too large for documents."""
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _finite(text: str) -> float:
    if math.isfinite(found := float(text)):
        return found
    raise ValueError(f"{text[:40]} is too large")


def _double(value: Any, path: Path) -> float:
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isfinite(found):
        return found
    raise BadValue(path, f"must be at most {sys.float_info.max}")


def spelled(value: Any) -> str:
    """JSON as Terraform's `jsonencode` would have it, near enough: compact, keys in order."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def settled(shape: Shape, planned: Any, found: Any) -> Any:
    """The state after a write: all that was planned as it was planned, and what was unknown as it was found."""
    if planned is UNKNOWN:
        return found
    if planned is None or found is None:
        return without_unknown(shape, planned)
    items = shape.items
    match shape.form:
        case "object":
            return {
                field.name: settled(field.shape, planned.get(field.name), found.get(field.name))
                for field in shape.fields
            }
        case "map" | "keyed" if items is not None:
            return {key: settled(items, item, found.get(key)) for key, item in planned.items()}
        case "list" if items is not None and items.form == OBJECT:
            beside = aligned(shape, planned, found)
            return [settled(items, item, match) for item, match in zip(planned, beside, strict=True)]
    return planned


def aligned(shape: Shape, wanted: list[Any], found: list[Any]) -> list[Any]:
    """For each wanted item of a list the found one that is the same item: by its keys, or else by its place."""
    names = key_names(shape)
    if not names:
        return [found[at] if at < len(found) else None for at in range(len(wanted))]
    return matched(names, wanted, found)


def matched(names: tuple[str, ...], wanted: list[Any], found: list[Any]) -> list[Any]:
    """For each wanted item the found one of the same keys. Those that leave none of them out choose first."""
    matches: list[Any] = [None] * len(wanted)
    left = list(found)
    for same in (_exact_keys, same_keys):
        for at in (at for at, match in enumerate(matches) if match is None):
            matches[at] = next((one for one in left if same(names, wanted[at], one)), None)
            left = [one for one in left if one is not matches[at]]
    return matches


def key_names(shape: Shape) -> tuple[str, ...]:
    """The Terraform names of a list's keys."""
    if not shape.keys or shape.items is None:
        return ()
    return tuple(field.name for field in shape.items.fields if field.wire in shape.keys)


def same_keys(names: tuple[str, ...], wanted: Any, found: Any) -> bool:
    """A key that is not given is one that the server fills in."""
    if not isinstance(wanted, dict) or not isinstance(found, dict):
        return False
    return all(wanted.get(name) in (None, UNKNOWN) or wanted.get(name) == found.get(name) for name in names)


def _exact_keys(names: tuple[str, ...], wanted: Any, found: Any) -> bool:
    return same_keys(names, wanted, found) and same_keys(names, found, wanted)


def without_unknown(shape: Shape, value: Any) -> Any:
    """Null for what is still unknown."""
    if value is UNKNOWN:
        return None
    if isinstance(value, dict):
        inner = {field.name: field.shape for field in shape.fields}
        default = shape.items or shape
        return {key: without_unknown(inner.get(key, default), item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_unknown(shape.items or shape, item) for item in value]
    return value


def _keyed_item(shape: Shape, key: str, value: Any, path: Path) -> Any:
    if shape.key_form == INTEGER and not is_whole(key):
        raise BadValue(path.key(key), f"has a key that {WHOLE_NUMBER}")
    item = to_document(_items(shape), value, path.key(key))
    return {shape.keys[0]: int(key) if shape.key_form == INTEGER else key, **item}


def _key_of(shape: Shape, item: Any) -> str:
    _expect(item, dict)
    if not is_key(shape, found := item.get(shape.keys[0])):
        raise Misfit(f"expected an item with {shape.keys[0]}")
    return str(found)


def is_key(shape: Shape, found: Any) -> bool:
    """Whether an item of a keyed list can be told by this value."""
    if shape.key_form == INTEGER:
        return isinstance(found, int) and is_whole(str(found))
    return isinstance(found, str)


def _number(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _items(shape: Shape) -> Shape:
    if shape.items is None:
        raise Misfit(f"a {shape.form} without items")
    return shape.items


def _expect(value: Any, kind: type) -> None:
    if not isinstance(value, Mapping if kind is dict else kind):
        raise Misfit(f"expected {_WORDS[kind]}, not {called(value)}")


_WORDS = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}


def called(value: Any) -> str:
    """What a part of a document is, in JSON's words."""
    return _WORDS.get(type(value), "a number")
