"""Values as documents that are written, and the defaults that are in a schema's documents as values."""

from __future__ import annotations

from typing import Any

from trimtab.terraform.kinds.converting import from_document, to_document
from trimtab.terraform.kinds.definition import NOTHING, OBJECT, Definition, Field, Shape
from trimtab.terraform.kinds.secrets import encoded

Document = dict[str, Any]


def written(definition: Definition, value: Any) -> Document:
    """The document that is applied. UnknownValue where the value is not known yet."""
    document = to_document(definition.root, value)
    return encoded(definition, {"apiVersion": definition.api_version, "kind": definition.kind, **document})


def default_value(field: Field) -> Any:
    """The Terraform value of a field's default, with the defaults that are inside it."""
    return from_document(field.shape, _completed(field.shape, field.default))


def _completed(shape: Shape, value: Any) -> Any:
    if shape.form == OBJECT and isinstance(value, dict):
        whole = dict(value)
        for field in shape.fields:
            if whole.get(field.wire) is None and field.default is not NOTHING:
                whole[field.wire] = field.default
            if field.wire in whole:
                whole[field.wire] = _completed(field.shape, whole[field.wire])
        return whole
    if shape.items is not None and isinstance(value, list):
        return [_completed(shape.items, item) for item in value]
    if shape.items is not None and isinstance(value, dict):
        return {key: _completed(shape.items, item) for key, item in value.items()}
    return value
