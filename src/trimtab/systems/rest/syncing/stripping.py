"""What of a body may be sent: of an answer, only what the call takes back; of what is wanted, all but what it refuses."""

from __future__ import annotations

from typing import Any

from trimtab.systems.rest.model import FieldClass, Model, Node, Writer
from trimtab.systems.rest.syncing.comparing import masked
from trimtab.systems.rest.syncing.leaves import DEPTH, HIDDEN, Leaf, body_node, child, item_node
from trimtab.systems.rest.syncing.paths import MISSING, drop, parse


def stripped(model: Model, live: Any, writer: Writer) -> Any:
    """An answer without what is read-only, masked or unknown to the call, and without the ETag."""
    if model.etag:
        live = drop(live, parse(model.etag))
    kept = _kept(model, body_node(model), live, writer, known=True, depth=0)
    return {} if kept is MISSING else kept


def taken(model: Model, desired: Any, writer: Writer) -> Any:
    """What is wanted, without the fields that this call does not take."""
    kept = _kept(model, body_node(model), desired, writer, known=False, depth=0)
    return {} if kept is MISSING else kept


def holds_hidden(model: Model, leaf: Leaf) -> bool:
    """Whether a leaf that is a list has something in it that a read does not give."""
    return isinstance(leaf.value, list) and any(
        _hides(model, item_node(model, leaf.node), item, 0) for item in leaf.value
    )


def _kept(model: Model, node: Node, value: Any, writer: Writer, *, known: bool, depth: int) -> Any:
    """`known`: only what the model knows, and no masks."""
    node = model.variant(node, value) if isinstance(value, dict) else model.node(node)
    if not node.writers & writer or node.field is FieldClass.READ_ONLY or (known and masked(node, value)):
        return MISSING
    if depth >= DEPTH:
        return value
    if isinstance(value, dict):
        closed = known and node.type == "object" and bool(node.properties) and not node.additional
        fields = {
            name: _kept(model, child(model, node, name), below, writer, known=known, depth=depth + 1)
            for name, below in value.items()
            if not closed or name in node.properties
        }
        return {name: below for name, below in fields.items() if below is not MISSING}
    if isinstance(value, list):
        below_node = item_node(model, node)
        items = (_kept(model, below_node, item, writer, known=known, depth=depth + 1) for item in value)
        return [item for item in items if item is not MISSING]
    return value


def _hides(model: Model, node: Node, value: Any, depth: int) -> bool:
    node = model.variant(node, value) if isinstance(value, dict) else model.node(node)
    if node.field in HIDDEN:
        return True
    if depth >= DEPTH:
        return False
    if isinstance(value, dict):
        return any(_hides(model, child(model, node, name), below, depth + 1) for name, below in value.items())
    return isinstance(value, list) and any(_hides(model, item_node(model, node), item, depth + 1) for item in value)
