"""Schemas as the protocol's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.function import Function, Parameter
from trimtab.terraform.framework.resource import IdentityAttribute
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.types import Type

_NESTING = {"single": 1, "list": 2, "set": 3, "map": 4}


def schema_message(schema: Schema) -> dict[str, Any]:
    block = _block(schema.attributes, schema.blocks, schema.description, schema.deprecated)
    return _told({"version": schema.version, "block": block})


def function_message(function: Function) -> dict[str, Any]:
    message: dict[str, Any] = {
        "parameters": [_parameter(parameter) for parameter in function.parameters],
        "return": {"type": type_bytes(function.returns)},
        "summary": function.summary,
        "description": function.description,
        "deprecation_message": function.deprecated,
    }
    if function.variadic is not None:
        message["variadic_parameter"] = _parameter(function.variadic)
    return _told(message)


def identity_message(identity: Mapping[str, IdentityAttribute], version: int) -> dict[str, Any]:
    attributes = [
        _told(
            {
                "name": name,
                "type": type_bytes(attribute.type),
                "required_for_import": attribute.required,
                "optional_for_import": not attribute.required,
                "description": attribute.description,
            }
        )
        for name, attribute in sorted(identity.items())
    ]
    return _told({"version": version, "identity_attributes": attributes})


def type_bytes(type_: Type) -> bytes:
    return json.dumps(type_.json(), separators=(",", ":")).encode()


def _block(
    attributes: Mapping[str, Attribute], blocks: Mapping[str, Block], description: str, deprecated: str
) -> dict[str, Any]:
    return _told(
        {
            "attributes": [_attribute(name, attributes[name]) for name in sorted(attributes)],
            "block_types": [_nested_block(name, blocks[name]) for name in sorted(blocks)],
            "description": description,
            "deprecated": bool(deprecated),
        }
    )


def _attribute(name: str, attribute: Attribute) -> dict[str, Any]:
    message: dict[str, Any] = {
        "name": name,
        "description": attribute.description,
        "required": attribute.required,
        "optional": attribute.optional,
        "computed": attribute.computed,
        "sensitive": attribute.sensitive,
        "deprecated": bool(attribute.deprecated),
        "write_only": attribute.write_only,
    }
    if isinstance(attribute.type, Nested):
        inner = attribute.type.attributes
        message["nested_type"] = {
            "attributes": [_attribute(name, inner[name]) for name in sorted(inner)],
            "nesting": _NESTING[attribute.type.nesting],
        }
    else:
        message["type"] = type_bytes(attribute.type)
    return _told(message)


def _nested_block(name: str, block: Block) -> dict[str, Any]:
    return _told(
        {
            "type_name": name,
            "block": _block(block.attributes, block.blocks, block.description, block.deprecated),
            "nesting": _NESTING[block.nesting],
            "min_items": block.min_items,
            "max_items": block.max_items,
        }
    )


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return _told(
        {
            "name": parameter.name,
            "type": type_bytes(parameter.type),
            "allow_null_value": parameter.nullable,
            "allow_unknown_values": parameter.unknown,
            "description": parameter.description,
        }
    )


def _told(message: dict[str, Any]) -> dict[str, Any]:
    """Without what a decoder fills in by itself."""
    return {name: value for name, value in message.items() if value not in (False, 0, "", [])}
