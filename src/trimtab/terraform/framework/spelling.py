"""Two spellings of one meaning: a server that answers "1m" to "60s" has changed nothing.

Where an attribute has `equal`, a new value that means the same as the one in place takes its spelling, at any depth. So
state keeps what the user wrote, and the next plan is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested, means_same
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.matching import pairs
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.values import UNKNOWN


def respelled(schema: Schema, reference: Mapping[str, Any] | None, value: dict[str, Any]) -> dict[str, Any]:
    """The value in the spelling of the reference (a plan, or the state before a read)."""
    if reference is None or not _spelled(schema.attributes, schema.blocks):
        return value
    return _body(schema.attributes, schema.blocks, reference, value)


def _spelled(attributes: Mapping[str, Attribute], blocks: Mapping[str, Block]) -> bool:
    return any(
        attribute.equal is not None or (isinstance(attribute.type, Nested) and _spelled(attribute.type.attributes, {}))
        for attribute in attributes.values()
    ) or any(_spelled(block.attributes, block.blocks) for block in blocks.values())


def _body(
    attributes: Mapping[str, Attribute], blocks: Mapping[str, Block], reference: Mapping[str, Any], value: Any
) -> dict[str, Any]:
    out = dict(value)
    for name, attribute in attributes.items():
        out[name] = _attribute(attribute, reference.get(name), value.get(name))
    for name, block in blocks.items():
        out[name] = _nested(block, reference.get(name), value.get(name))
    return out


def _attribute(attribute: Attribute, reference: Any, value: Any) -> Any:
    if reference is None or reference is UNKNOWN or value is None or value is UNKNOWN:
        return value
    if means_same(attribute, reference, value):
        return reference
    return _nested(attribute.type, reference, value) if isinstance(attribute.type, Nested) else value


def _nested(schema: Nested | Block, reference: Any, value: Any) -> Any:
    if reference is None or reference is UNKNOWN or value is None or value is UNKNOWN:
        return value
    blocks = schema.blocks if isinstance(schema, Block) else {}

    def one(reference: Any, value: Any) -> Any:
        if not isinstance(reference, dict) or not isinstance(value, dict):
            return value
        return _body(schema.attributes, blocks, reference, value)

    match schema.nesting:
        case "single":
            return one(reference, value)
        case "map":
            return {name: one(reference.get(name), element) for name, element in value.items()}
        case "list":
            return [one(reference[at] if at < len(reference) else None, element) for at, element in enumerate(value)]
        case _:
            found = {at: other for other, at in pairs(schema, reference, value, planned=True).items()}
            return [one(reference[found[at]], element) if at in found else element for at, element in enumerate(value)]
