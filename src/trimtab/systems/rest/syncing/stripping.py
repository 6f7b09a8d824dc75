"""What of a body may be sent: of an answer, only what the call takes back; of what is wanted, all but what it refuses."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from trimtab.systems.rest.model import FieldClass, Model, Node, Writer
from trimtab.systems.rest.syncing.comparing import masked
from trimtab.systems.rest.syncing.leaves import DEPTH, HIDDEN, Leaf, body_node, child, item_node
from trimtab.systems.rest.syncing.paths import MISSING, Path, Wild, drop, format_path, matches, parse


def stripped(model: Model, live: Any, writer: Writer) -> Any:
    """An answer without what is read-only, masked or unknown to the call, and without the ETag."""
    if model.etag:
        live = drop(live, parse(model.etag))
    return _top(model, live, _Rule(writer=writer, known=True, clean=True))


def taken(model: Model, desired: Any, writer: Writer) -> Any:
    """What is wanted, without the fields that this call does not take."""
    return _top(model, desired, _Rule(writer=writer, known=False, clean=False))


def fitting(model: Model, body: Any) -> Any:
    """A merged body without what is left of another variant: a discriminator may have changed."""
    return _top(model, body, _Rule(writer=Writer.ALL, known=True, clean=False))


def holds_hidden(model: Model, leaf: Leaf) -> bool:
    """Whether a leaf that is a list has something in it that a read does not give."""
    return isinstance(leaf.value, list) and any(
        _hides(model, item_node(model, leaf.node), item, 0) for item in leaf.value
    )


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What to keep: what the call takes, only what the model knows, and neither masks nor nulls."""

    writer: Writer
    known: bool
    clean: bool


def _top(model: Model, body: Any, rule: _Rule) -> Any:
    kept = _kept(model, body_node(model), body, rule, ())
    return {} if kept is MISSING else kept


def _kept(model: Model, node: Node, value: Any, rule: _Rule, place: Path) -> Any:
    """`place` is where it is; items of lists are any."""
    node = model.variant(node, value) if isinstance(value, dict) else model.node(node)
    if not node.writers & rule.writer or node.field is FieldClass.READ_ONLY or (rule.clean and masked(node, value)):
        return MISSING
    if len(place) >= DEPTH:
        return value
    if isinstance(value, dict):
        fields = {
            name: _kept(model, child(model, node, name), below, rule, (*place, name))
            for name, below in value.items()
            if not (rule.clean and below is None) and (not rule.known or _takes(model, node, name, place))
        }
        return {name: below for name, below in fields.items() if below is not MISSING}
    if isinstance(value, list):
        below_node = item_node(model, node)
        items = (_kept(model, below_node, item, rule, (*place, Wild.ITEM)) for item in value)
        return [item for item in items if item is not MISSING]
    return value


def _takes(model: Model, node: Node, name: str, place: Path) -> bool:
    """Whether a field of an answer may be sent back. Where anything may be, only what is known to be read-only may not.
    What is kept or ignored is someone else's: it goes back as it came."""
    if name in node.properties:
        return True
    closed = node.type == "object" and not node.additional
    theirs = (*model.overlay.keep, *model.overlay.ignored)
    if not theirs and (closed or not model.read_only):
        return not closed
    path = (*place, name)
    return _named(theirs, path) or not (closed or _named(model.read_only, path))


def _named(patterns: Collection[str], path: Path) -> bool:
    """Whether one of them is this path. Items of lists are the same in both; a key of a map is any key in a pattern."""
    return format_path(path) in patterns or any("*" in each and matches(parse(each), path) for each in patterns)


def _hides(model: Model, node: Node, value: Any, depth: int) -> bool:
    node = model.variant(node, value) if isinstance(value, dict) else model.node(node)
    if node.field in HIDDEN:
        return True
    if depth >= DEPTH:
        return False
    if isinstance(value, dict):
        return any(_hides(model, child(model, node, name), below, depth + 1) for name, below in value.items())
    return isinstance(value, list) and any(_hides(model, item_node(model, node), item, depth + 1) for item in value)
