"""ARM keeps names but does not mind their case: the keys of maps (tags, identities by their ID) and of list items come back
in another spelling than they were given. Here an answer gets the spelling of what is wanted, so that one path means one
thing. Elsewhere two spellings are two names, and nothing is done.
"""

from __future__ import annotations

from typing import Any

from trimtab.systems.rest.model import Model, Node
from trimtab.systems.rest.syncing.leaves import DEPTH, body_node, child, is_arm, item_node, keyed
from trimtab.systems.rest.syncing.paths import get


def aligned(model: Model, live: Any, *bodies: Any) -> Any:
    """The first of the bodies that has a name says how it is spelled."""
    if not is_arm(model):
        return live
    for index, body in reversed(list(enumerate(bodies))):
        if body in bodies[:index]:
            continue
        live = _aligned(model, body_node(model), live, body, 0)
    return live


def _aligned(model: Model, node: Node, live: Any, body: Any, depth: int) -> Any:
    if depth >= DEPTH:
        return live
    if isinstance(live, dict) and isinstance(body, dict):
        node = model.variant(node, body)
        spelled = _spellings(list(live), list(body))
        renamed = {spelled[name]: value for name, value in live.items()}
        return {
            name: _aligned(model, child(model, node, name), value, body[name], depth + 1) if name in body else value
            for name, value in renamed.items()
        }
    if isinstance(live, list) and isinstance(body, list):
        return _aligned_items(model, model.node(node), live, body, depth)
    return live


def _aligned_items(model: Model, node: Node, live: list[Any], body: list[Any], depth: int) -> list[Any]:
    keys, theirs = keyed(node, body), keyed(node, live)
    if keys is None or theirs is None:
        return live
    wanted = {_folded(key.keys): key for key in keys}
    exact = set(keys)
    items = []
    for item, key in zip(live, theirs, strict=True):
        mine = key if key in exact else wanted.get(_folded(key.keys))
        if mine is not None and mine != key and mine not in theirs:
            item = {**item, **dict(mine.keys)}
        mine_item = get(body, (mine,)) if mine is not None else None
        items.append(_aligned(model, item_node(model, node), item, mine_item, depth + 1))
    return items


def _spellings(live: list[str], body: list[str]) -> dict[str, str]:
    """From the name in the answer to the one that is wanted; only where neither side has the name twice."""
    there: dict[str, list[str]] = {}
    for name in live:
        there.setdefault(name.casefold(), []).append(name)
    found = {name: name for name in live}
    for name in body:
        alike = there.get(name.casefold(), [])
        if len(alike) == 1 and alike[0] not in body and found[alike[0]] == alike[0]:
            found[alike[0]] = name
    return found


def _folded(keys: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value.casefold() if isinstance(value, str) else value) for name, value in keys)
