"""The least object of a generated kind: a manifest with what it needs and nothing else, to begin from."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.systems.rest.generating.schema import asked
from trimtab.systems.rest.model import CONTROL, FieldClass, Model, Node

Document = dict[str, Any]


def example(model: Model) -> Document:
    """Values are the first that fit; what they should be only the user knows."""
    spec: Document = {}
    parameters = [parameter.name for parameter in model.parameters if parameter.source == "object"]
    if model.parent:
        spec["parent"] = {"name": f"my-{model.parent.lower()}"}
    if parameters:
        spec["parameters"] = dict.fromkeys(parameters, "text")
    spec |= {
        name: value
        for name, value in _object(model, model.spec, "", ()).items()
        if name not in CONTROL  # ours, not the service's
    }
    return {
        "apiVersion": f"{model.group}/{model.version}",
        "kind": model.kind,
        "metadata": {"name": f"my-{model.kind.lower()}"},
        "spec": spec,
    }


def _object(model: Model, node: Node, path: str, within: tuple[str, ...]) -> Document:
    made: Document = {}
    node = model.node(node)
    if node.discriminator and node.variants:
        value, name = next(iter(node.variants.items()))
        if name not in within:
            variant = model.node(model.types[name])
            node = _both(node, variant)
            made[node.discriminator] = value
            within = (*within, name)
    for name in asked(model, node, path):
        if name not in made:
            made[name] = _value(model, node.properties[name], f"{path}.{name}" if path else name, within)
    return made


def _both(node: Node, variant: Node) -> Node:
    return msgspec.structs.replace(
        node,
        properties={**variant.properties, **node.properties},
        required=tuple(dict.fromkeys((*node.required, *variant.required))),
    )


def _value(model: Model, node: Node, path: str, within: tuple[str, ...]) -> Any:
    if node.field is FieldClass.SECRET:
        return {"secretRef": {"name": f"my-{model.kind.lower()}", "key": path.rpartition(".")[2].strip("[]") or "key"}}
    followed = model.node(node)
    if followed.enum:
        return followed.enum[0]
    if followed.type == "object":
        if node.ref and node.ref in within:
            return {}
        return _object(model, followed, path, (*within, node.ref) if node.ref else within)
    if followed.type == "array" and followed.items is not None:
        return [_value(model, followed.items, f"{path}[]", within)] if followed.min_items else []
    if followed.type == "string":
        return _text(followed)
    if followed.type in ("integer", "number"):
        least = followed.minimum if followed.minimum is not None else min(0.0, followed.maximum or 0.0)
        return int(least) if followed.type == "integer" else least
    return {"boolean": False, "map": {}, "array": []}.get(followed.type, "text")


def _text(node: Node) -> str:
    if isinstance(node.default, str) and node.default:
        return node.default
    least, most = node.min_length or 0, node.max_length
    text = "text".ljust(least, "x")
    return text if most is None else text[:most]
