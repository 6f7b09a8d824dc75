"""Known differences: what a service answered instead of what it was given, right after it had taken it.

Without them every normalisation of a service is drift. They are kept in the status, so each is small: a large value is
kept as its digest.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from trimtab.systems.rest.model import Model, Node
from trimtab.systems.rest.syncing.comparing import Same
from trimtab.systems.rest.syncing.leaves import DEPTH, HIDDEN, Leaf, child, item_node
from trimtab.systems.rest.syncing.paths import MISSING

LARGEST = 4096
"""Bytes of JSON; what is larger is kept as a digest."""


def recorded(model: Model, leaf: Leaf, live: Any) -> dict[str, Any]:
    """How a live value is remembered beside the leaf that was wanted."""
    if live is MISSING:
        return {"missing": True}
    value = seen(model, leaf, live)
    encoded = _encoded(leaf.node, value)
    return {"value": value} if len(encoded) <= LARGEST else {"digest": _digest(encoded)}


def still(model: Model, leaf: Leaf, known: dict[str, Any], live: Any, same: Same) -> bool:
    """Whether a live value is still the one that was recorded."""
    if known.get("missing"):
        return live is MISSING or live is None
    if live is MISSING:
        return known.get("value", MISSING) is None
    value = seen(model, leaf, live)
    if "digest" in known:
        return bool(known["digest"] == _digest(_encoded(leaf.node, value)))
    return same(leaf.path, known.get("value"), value)


def seen(model: Model, leaf: Leaf, live: Any) -> Any:
    """What of a live value counts beside the leaf that was wanted, without secrets. Where nothing was wanted, an object in
    its place is a difference, and what is in it is not."""
    if live is MISSING:
        return MISSING
    if leaf.value is None and isinstance(live, dict):
        return {}
    return _shaped(model, leaf.node, leaf.value, live, 0)


def _shaped(model: Model, node: Node, wanted: Any, live: Any, depth: int) -> Any:
    """The live value without the fields that nobody asked for, which come and go, and without secrets."""
    if depth >= DEPTH:
        return live
    if isinstance(live, dict):
        node = model.variant(node, live)
        names = wanted.keys() if isinstance(wanted, dict) and wanted else node.properties.keys()
        names = names or live.keys()
        given = wanted if isinstance(wanted, dict) else {}
        return {
            name: _shaped(model, child(model, node, name), given.get(name), value, depth + 1)
            for name, value in live.items()
            if name in names and child(model, node, name).field not in HIDDEN
        }
    if isinstance(live, list):
        alike = wanted if isinstance(wanted, list) and len(wanted) == len(live) else [None] * len(live)
        below = item_node(model, node)
        return [_shaped(model, below, one, item, depth + 1) for one, item in zip(alike, live, strict=True)]
    return live


def digest(value: Any) -> str:
    """How a value is remembered that may not be kept itself."""
    return _digest(msgspec.json.encode(value, order="deterministic"))


def _encoded(node: Node, value: Any) -> bytes:
    if node.unordered and isinstance(value, list):
        value = sorted(value, key=lambda item: msgspec.json.encode(item, order="deterministic"))
    return msgspec.json.encode(value, order="deterministic")


def _digest(encoded: bytes) -> str:
    return "sha256:" + hashlib.sha256(encoded).hexdigest()
