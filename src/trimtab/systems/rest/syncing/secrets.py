"""Secrets stay out of what is remembered and shown: their HMAC stands for them in `last_applied`, and nothing at all in
`observed`. The key is the installation's own, so that a digest in a status cannot be tried against a list of passwords
elsewhere."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from typing import Any

import msgspec

from trimtab.systems.rest.model import Model, Node
from trimtab.systems.rest.syncing.comparing import SEAL, masked
from trimtab.systems.rest.syncing.leaves import DEPTH, HIDDEN, body_node, child, item_node
from trimtab.systems.rest.syncing.paths import MISSING

LIMIT = 96 * 1024
"""Bytes of JSON that a status shows of a resource."""

CUTS = 32
"""After so many large parts are left out, only as much is kept as fits."""

CUT = "<left out: {size} bytes>"


def sealed(model: Model, body: dict[str, Any], key: bytes) -> dict[str, Any]:
    """The body with a digest in the place of each value that is secret or write-only."""
    found: dict[str, Any] = _sealed(model, body_node(model), body, key, 0)
    return found


def observed(
    model: Model, live: dict[str, Any], *, limit: int = LIMIT, secrets: Collection[str] = ()
) -> tuple[dict[str, Any], bool]:
    """What a status may show of a resource, and whether something was left out for its size. `secrets` are values that
    may not be shown wherever the service echoes them."""
    shown = _shown(model, (body_node(model), model.node(model.observed)), live, frozenset(secrets) - {""}, 0)
    shown = {} if shown is MISSING else shown
    cut = _size(shown) > limit
    for _ in range(CUTS):
        if not shown or _size(shown) <= limit:
            return shown, cut
        shown = _without_largest(shown, limit)
    return _smallest(shown, limit), cut


def _sealed(model: Model, node: Node, value: Any, key: bytes, depth: int) -> Any:
    node = model.variant(node, value) if isinstance(value, dict) else model.node(node)
    if node.field in HIDDEN and value is not None:
        text = msgspec.json.encode(value, order="deterministic")
        return SEAL + hmac.new(key, text, hashlib.sha256).hexdigest()
    if depth >= DEPTH:
        return value
    if isinstance(value, dict):
        return {name: _sealed(model, child(model, node, name), below, key, depth + 1) for name, below in value.items()}
    if isinstance(value, list):
        below_node = item_node(model, node)
        return [_sealed(model, below_node, item, key, depth + 1) for item in value]
    return value


def _shown(model: Model, nodes: tuple[Node, ...], value: Any, secrets: frozenset[str], depth: int) -> Any:
    """`nodes` are those of the spec and of what is observed: what either calls a secret is one."""
    nodes = tuple(model.variant(node, value) if isinstance(value, dict) else model.node(node) for node in nodes)
    if any(node.field in HIDDEN or masked(node, value) for node in nodes) or depth >= DEPTH:
        return MISSING
    if isinstance(value, str) and any(secret in value for secret in secrets):
        return MISSING
    if isinstance(value, dict):
        fields = {
            name: _shown(model, tuple(child(model, node, name) for node in nodes), below, secrets, depth + 1)
            for name, below in value.items()
            if name not in secrets
        }
        return {name: below for name, below in fields.items() if below is not MISSING}
    if isinstance(value, list):
        below_nodes = tuple(item_node(model, node) for node in nodes)
        items = (_shown(model, below_nodes, item, secrets, depth + 1) for item in value)
        return [item for item in items if item is not MISSING]
    return value


def _without_largest(value: dict[str, Any], limit: int) -> dict[str, Any]:
    """Without the largest of its parts: the deepest object's that is most of it."""
    sizes = {name: _size(below) for name, below in value.items()}
    name = max(sizes, key=lambda each: sizes[each])
    below = value[name]
    if isinstance(below, dict) and sizes[name] > limit // 2:
        return {**value, name: _without_largest(below, limit)}
    return {**value, name: CUT.format(size=sizes[name])} if sizes[name] > len(CUT) + 16 else value


def _smallest(value: dict[str, Any], limit: int) -> dict[str, Any]:
    """As many of its parts as fit, the smallest first."""
    room, kept = limit - 2, set()
    for name in sorted(value, key=lambda each: _size(value[each])):
        room -= _size(name) + _size(value[name]) + 2
        if room < 0:
            break
        kept.add(name)
    return {name: below for name, below in value.items() if name in kept}


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))
