"""What a single schema says of a value: its type and bounds, when two values are the same, what identifies the items of
a list, which resources an ID may name."""

from __future__ import annotations

import math
import re
from typing import Any

from trimtab.systems.rest.model import Comparator, Node
from trimtab.systems.rest.openapi.schema import Schema

SCALARS = frozenset(("string", "integer", "number", "boolean"))
_LONGEST_PATTERN = 1024
_LARGEST = 1e300
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(\[<])|\n\s*\n")
_MOST_DESCRIPTION = 200
_DATES = frozenset(("date-time", "date-time-rfc1123", "date"))
_NUMBERS = frozenset(("int32", "int64", "uint64", "float", "double", "decimal"))
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "map": dict,
}


def described(schema: Schema | None) -> str:
    """The first sentence of its description, or what there is room for."""
    text = schema.get("description") if schema is not None else None
    return sentence(text) if isinstance(text, str) else ""


def sentence(text: str) -> str:
    """The first one."""
    first = " ".join(_SENTENCE.split(text.strip(), maxsplit=1)[0].split())
    return first if len(first) <= _MOST_DESCRIPTION else first[: _MOST_DESCRIPTION - 1].rstrip() + "…"


def scalar(schema: Schema, name: str, *, arm: bool) -> Node:
    """Of a string, a number, a boolean."""
    of = schema.type
    values = [schema.get("const")] if schema.get("const") is not None else schema.get("enum")
    names = schema.get("x-ms-enum")
    is_number = of in ("integer", "number")
    is_string = of == "string"
    format_ = schema.get("format")
    pattern = schema.get("pattern")
    return Node(
        type=of,
        nullable=schema.nullable,
        default=default(schema, of),
        enum=tuple(value for value in values if value is not None) if isinstance(values, list) else (),
        open_enum=isinstance(names, dict) and names.get("modelAsString") is True and isinstance(values, list),
        format=format_ if isinstance(format_, str) else "",
        pattern=pattern if is_string and isinstance(pattern, str) and len(pattern) <= _LONGEST_PATTERN else "",
        minimum=_bound(schema, "minimum", "exclusiveMinimum", of) if is_number else None,
        maximum=_bound(schema, "maximum", "exclusiveMaximum", of) if is_number else None,
        min_length=_count(schema.get("minLength")) if is_string else None,
        max_length=_count(schema.get("maxLength")) if is_string else None,
        compare=comparator(schema, name, arm=arm),
        reference=reference(schema),
    )


def default(schema: Schema, of: str) -> Any:
    """The document's default, if it is a value of that type."""
    value = schema.get("default")
    expected = _TYPES.get(of)
    if expected is None or not isinstance(value, expected) or (isinstance(value, bool) and of != "boolean"):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def comparator(schema: Schema, name: str, *, arm: bool) -> Comparator:
    """When two values of this schema are the same."""
    if schema.type != "string":
        return Comparator.EXACT
    format_ = schema.get("format")
    if reference(schema):
        return Comparator.ARM_ID
    if format_ == "duration":
        return Comparator.DURATION
    if format_ in _DATES:
        return Comparator.DATE_TIME
    if format_ in _NUMBERS:
        return Comparator.NUMBER
    if arm and name == "location":
        return Comparator.LOCATION
    if arm and isinstance(schema.get("enum"), list):
        return Comparator.CASELESS
    return Comparator.EXACT


def reference(schema: Schema) -> str:
    """The type of the resource that the value is the ID of; "*" for any; "" for a value that is none."""
    details = schema.get("x-ms-arm-id-details")
    if not isinstance(details, dict):
        return "*" if schema.get("format") == "arm-id" else ""
    allowed = details.get("allowedResources")
    types = [each.get("type") for each in allowed if isinstance(each, dict)] if isinstance(allowed, list) else []
    return types[0] if len(types) == 1 and isinstance(types[0], str) else "*"


def is_sub_resource(schema: Schema) -> bool:
    """Whether an object of ARM only points to another resource: it has an `id` and nothing that says more."""
    names = {name for name, of in schema.properties.items() if of.get("readOnly") is not True}
    return names == {"id"} and schema.properties["id"].type == "string"


def identifiers(schema: Schema) -> tuple[str, ...]:
    """What the document itself names as the identity of a list's items."""
    declared = schema.get("x-ms-identifiers")
    if isinstance(declared, list) and declared:
        return tuple(str(each).strip("/").replace("/", ".") for each in declared)
    declared = schema.get("x-kubernetes-list-map-keys")
    return tuple(str(each) for each in declared) if isinstance(declared, list) else ()


def counts(schema: Schema) -> tuple[int | None, int | None]:
    """Of a list's items."""
    return _count(schema.get("minItems")), _count(schema.get("maxItems"))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _bound(schema: Schema, keyword: str, exclusive: str, of: str) -> float | None:
    """An exclusive bound of whole numbers is one further; of others it is taken as it stands."""
    value, other = schema.get(keyword), schema.get(exclusive)
    step = (1 if keyword == "minimum" else -1) if of == "integer" else 0
    if _is_number(other):
        return float(other + step)
    if not _is_number(value):
        return None
    return float(value + step) if other is True else float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
