"""The least configuration of a type: what is required, with a value of the right form for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import BOOL, NUMBER, ListOf, MapOf, SetOf, Type
from trimtab.terraform.framework.validators import OneOf


def example(block: str, type_: str, schema: Schema) -> str:
    """As `terraform fmt` would have it. `block` is resource or data."""
    body = list(_assignments(schema.attributes, 1))
    lines = [f'{block} "{type_}" "example" {{', *body, "}"]
    return "\n".join(lines) if body else f'{block} "{type_}" "example" {{}}'


def _assignments(attributes: Mapping[str, Attribute], depth: int) -> Iterator[str]:
    required = {name: attributes[name] for name in sorted(attributes) if attributes[name].required}
    simple = {name: each for name, each in required.items() if not isinstance(each.type, Nested)}
    width = max(map(len, simple), default=0)
    pad = "  " * depth
    for name, attribute in simple.items():
        yield f"{pad}{name:<{width}} = {json.dumps(_value(name, attribute))}"
    for name, attribute in required.items():
        if isinstance(attribute.type, Nested):
            opened, closed = _BRACKETS[attribute.type.nesting]
            yield f"{pad}{name} = {opened}"
            yield from _assignments(attribute.type.attributes, depth + 1)
            yield f"{pad}{closed}"


_BRACKETS = {
    "single": ("{", "}"),
    "list": ("[{", "}]"),
    "set": ("[{", "}]"),
    "map": ("{ example = {", "} }"),
}


def _value(name: str, attribute: Attribute) -> Any:
    choice = next((each.choices[0] for each in attribute.validators if isinstance(each, OneOf)), None)
    return choice if choice is not None else _plain(name, attribute.value_type())


def _plain(name: str, type_: Type) -> Any:
    match type_:
        case ListOf(inner) | SetOf(inner):
            return [_plain(name, inner)]
        case MapOf(inner):
            return {"key": _plain(name, inner)}
    if type_ == NUMBER:
        return 1
    return True if type_ == BOOL else "example" if name == "name" else name.replace("_", "-")
