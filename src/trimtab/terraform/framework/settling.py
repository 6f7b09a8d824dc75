"""What every value that leaves the provider has in common: no secrets that are write-only, and no blocks that are null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.values import UNKNOWN, Typed


def settled(schema: Schema, value: Mapping[str, Any]) -> dict[str, Any]:
    """Write-only attributes null, absent blocks empty, at any depth."""
    return _body(schema.attributes, schema.blocks, value)


def known(value: Any) -> Any:
    """The value with null where it is unknown: what can be kept of a state that was not finished."""
    if value is UNKNOWN:
        return None
    if isinstance(value, dict):
        return {name: known(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [known(inner) for inner in value]
    return Typed(value.type, known(value.value)) if isinstance(value, Typed) else value


def _body(attributes: Mapping[str, Attribute], blocks: Mapping[str, Block], value: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(value)
    for name, attribute in attributes.items():
        if attribute.write_only:
            out[name] = None
        elif isinstance(attribute.type, Nested):
            out[name] = _nested(attribute.type, value.get(name))
    for name, block in blocks.items():
        inner = value.get(name)
        if inner is None and block.nesting != "single":
            inner = {} if block.nesting == "map" else []
        out[name] = _nested(block, inner)
    return out


def _nested(schema: Nested | Block, value: Any) -> Any:
    blocks = schema.blocks if isinstance(schema, Block) else {}

    def one(value: Any) -> Any:
        return _body(schema.attributes, blocks, value) if isinstance(value, dict) else value

    if schema.nesting == "single":
        return one(value)
    if isinstance(value, dict):
        return {name: one(element) for name, element in value.items()}
    return [one(element) for element in value] if isinstance(value, list) else value
