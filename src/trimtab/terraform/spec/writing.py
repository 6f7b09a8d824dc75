"""A schema as Python code that makes it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.defaults import NONE, Default
from trimtab.terraform.framework.modifiers import KeepState, Modifier, RequiresReplace
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import (
    BOOL,
    DYNAMIC,
    NUMBER,
    STRING,
    ListOf,
    MapOf,
    ObjectOf,
    SetOf,
    Type,
)
from trimtab.terraform.framework.validators import Between, Length, Matches, OneOf, Validator
from trimtab.terraform.spec.rules import WHOLE

_PLAIN: dict[Type, str] = {STRING: "STRING", BOOL: "BOOL", NUMBER: "NUMBER", DYNAMIC: "DYNAMIC"}


def schema_code(schema: Schema) -> str:
    more = _given(blocks=_blocks(schema.blocks, 1), description=schema.description, deprecated=schema.deprecated)
    version = f", version={schema.version}" if schema.version else ""
    return f"Schema({_attributes(schema.attributes, 1)}{more}{version})"


def _attributes(attributes: Mapping[str, Attribute], depth: int) -> str:
    return _members({name: _attribute(attributes[name], depth) for name in sorted(attributes)}, depth)


def _blocks(blocks: Mapping[str, Block], depth: int) -> _Code | None:
    if not blocks:
        return None
    return _Code(_members({name: _block(blocks[name], depth) for name in sorted(blocks)}, depth))


def _members(codes: Mapping[str, str], depth: int) -> str:
    pad = "    " * depth
    lines = "".join(f"{pad}{name!r}: {code},\n" for name, code in codes.items())
    return f"{{\n{lines}{pad[4:]}}}" if codes else "{}"


def _attribute(attribute: Attribute, depth: int) -> str:
    flags = ("required", "optional", "computed", "sensitive", "write_only")
    default = attribute.default
    if isinstance(default, Default):
        raise ValueError("a default that is computed cannot be written down")
    has_default = default is not NONE
    said = {flag: True for flag in flags if getattr(attribute, flag)}
    if has_default:
        said = {flag: True for flag in said if flag not in ("optional", "computed")}
    return (
        f"Attribute({_type(attribute.type, depth)}"
        + _given(
            **said,
            description=attribute.description,
            deprecated=attribute.deprecated,
            default=_Code(repr(default)) if has_default else None,
            modifiers=_tuple(map(_modifier, attribute.modifiers)),
            validators=_tuple(map(_validator, attribute.validators)),
        )
        + ")"
    )


def _type(type_: Type | Nested, depth: int) -> str:
    if isinstance(type_, Nested):
        return f"Nested({_attributes(type_.attributes, depth + 1)}, {type_.nesting!r})"
    match type_:
        case ListOf(inner):
            return f"ListOf({_type(inner, depth)})"
        case SetOf(inner):
            return f"SetOf({_type(inner, depth)})"
        case MapOf(inner):
            return f"MapOf({_type(inner, depth)})"
        case ObjectOf(attributes):
            members = ", ".join(f"{name!r}: {_type(attributes[name], depth)}" for name in sorted(attributes))
            return f"ObjectOf({{{members}}})"
    return _PLAIN[type_]


def _block(block: Block, depth: int) -> str:
    numbers = _given(
        **{name: _Code(str(value)) for name in ("min_items", "max_items") if (value := getattr(block, name))}
    )
    more = _given(
        blocks=_blocks(block.blocks, depth + 1),
        nesting=block.nesting,
        description=block.description,
        deprecated=block.deprecated,
    )
    return f"Block({_attributes(block.attributes, depth + 1)}{more}{numbers})"


def _modifier(modifier: Modifier) -> str:
    if not isinstance(modifier, RequiresReplace | KeepState):
        raise ValueError(f"{type(modifier).__name__} cannot be written down")
    return f"modifiers.{type(modifier).__name__}()"


def _validator(validator: Validator) -> str:
    if validator is WHOLE:
        return "WHOLE"
    match validator:
        case OneOf():
            return f"validators.OneOf({', '.join(map(repr, validator.choices))})"
        case Length(least, most) | Between(least, most):
            return f"validators.{type(validator).__name__}({least!r}, {most!r})"
        case Matches():
            return f"validators.Matches({validator.pattern.pattern!r}, {validator.description!r})"
    raise ValueError(f"{type(validator).__name__} cannot be written down")


class _Code(str):
    """Text that is code already."""

    __slots__ = ()


def _tuple(codes: Any) -> _Code | None:
    made = list(codes)
    return _Code(f"({', '.join(made)},)") if made else None


def _given(**arguments: Any) -> str:
    """Keyword arguments, but for those that say nothing."""
    said = {name: value for name, value in arguments.items() if value not in (None, "")}
    return "".join(f", {name}={value if isinstance(value, _Code) else repr(value)}" for name, value in said.items())
