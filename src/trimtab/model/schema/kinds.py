"""The types of JSON values as schemas name them, and what is wrong with a value of another type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.model.schema.finding import Finding, wrong_type
from trimtab.model.schema.formats import check_of

MOST_INT64 = 2**63 - 1
LEAST_INT64 = -(2**63)
MOST_EXACT = 2**53 - 1
"""Up to here a float that has no fraction is an integer, in Kubernetes as in JavaScript."""

NoneType = type(None)
JSON_TYPES: tuple[type, ...] = (str, int, float, bool, list, dict, NoneType)


def types_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    if document.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    declared = document.get("type")
    return (declared,) if declared else ()


def formatted(document: Mapping[str, Any]) -> str:
    """The format, if it is one that is checked."""
    name = document.get("format") or ""
    return name if name and check_of(name) else ""


def whole(value: float) -> bool:
    """Whether a float counts as an integer."""
    return -MOST_EXACT <= value <= MOST_EXACT and value.is_integer()


def name_of(value: Any) -> str:
    """The JSON type of a value. An integer that does not fit 64 bits is a number, as the real decoder makes it one."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if LEAST_INT64 <= value <= MOST_INT64 else "number"
    if isinstance(value, float):
        return "number"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "null"


_GO_FORMATS = {"integer": "int64", "number": "float64"}


def type_problem(document: Mapping[str, Any], value: Any) -> Finding | None:
    """What kube-openapi's type validator says of a value."""
    types = types_of(document)
    actual = name_of(value)
    if value is None:
        return wrong_type(",".join(types), "null") if types and not document.get("nullable") else None
    fmt = formatted(document)
    if not types and not fmt:
        return None
    fits = (
        actual in types
        or (actual == "number" and "integer" in types and whole(float(value)))
        or (actual == "integer" and "number" in types)
    )
    numeric = "number" in types or "integer" in types
    if fmt and actual not in ("string", "array") and not fits:
        return wrong_type(fmt, _GO_FORMATS.get(actual, ""))
    if fmt and not numeric and actual in ("string", "array"):
        return None
    return None if fits else wrong_type(",".join(types), actual)
