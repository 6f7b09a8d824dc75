"""The form of the documents: which attributes there are, and what may be said of each.

A document has a `provider`, `resources` and `datasources`; an attribute is an object with a `name` and one further member,
which is its type. Only resources have defaults and plan modifiers, and what a provider is told is never computed.
"""

from __future__ import annotations

import re
from typing import Final

VERSION: Final = "0.1"
IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*")

PLAIN = ("bool", "dynamic", "float64", "int64", "number", "string")
COLLECTIONS = ("list", "map", "set")
NESTED = ("list_nested", "map_nested", "set_nested", "single_nested")
ATTRIBUTES = (*PLAIN, *COLLECTIONS, "object", *NESTED)
"""The fourteen."""
BLOCKS = ("list_nested", "set_nested", "single_nested")
ELEMENTS = ("bool", "float64", "int64", "list", "map", "number", "object", "set", "string")
"""What collections are of; an object's members may be dynamic, too."""

STATIC = {"bool": (bool,), "float64": (int, float), "int64": (int, float), "string": (str,)}
"""Types whose defaults may be written as values; all others are code."""

RESOURCE, DATA_SOURCE, PROVIDER = "resource", "datasource", "provider"

_ALWAYS = {"computed_optional_required", "custom_type", "deprecation_message", "description", "sensitive", "validators"}
_BLOCK = {"custom_type", "deprecation_message", "description", "validators"}


def members(kind: str, place: str, *, block: bool = False) -> frozenset[str]:
    """What an attribute or a block of this type may say in a schema of a resource, a data source or a provider."""
    said = set(_BLOCK if block else _ALWAYS)
    if block or place == PROVIDER:
        said.discard("computed_optional_required")
    if place == PROVIDER and not block:
        said.add("optional_required")
    if place == RESOURCE:
        said |= {"default", "plan_modifiers"}
    if kind in COLLECTIONS:
        said.add("element_type")
    if kind == "object":
        said.add("attribute_types")
    if kind == "single_nested":
        said |= {"attributes", "blocks"} if block else {"attributes"}
    elif kind in NESTED:
        said.add("nested_object")
    if kind not in NESTED or kind == "single_nested":
        said.add("associated_external_type")
    return frozenset(said)


def choices(place: str) -> tuple[str, frozenset[str]]:
    """How a schema says who sets an attribute: the member, and what it may be."""
    if place == PROVIDER:
        return "optional_required", frozenset({"optional", "required"})
    return "computed_optional_required", frozenset({"computed", "computed_optional", "optional", "required"})
