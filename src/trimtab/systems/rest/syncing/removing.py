"""How a field is removed. Services differ: some forget what is left out, some need null, some an empty value, some only
take the default. The ways are tried in this order, one write each, until a read shows that the field is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.systems.rest.model import Model, Node
from trimtab.systems.rest.syncing.leaves import Leaf, node_at, walk
from trimtab.systems.rest.syncing.paths import MISSING, Item, Path, covers, get, matches, parse

RUNGS = ("omit", "null", "empty", "default")
"""In a PATCH, to omit is to keep: there the first is null too."""


def rung(model: Model, place: Path, leaves: list[Leaf], removals: Mapping[str, int]) -> str:
    """The way to remove what is at this place now: what the overlay says, or the one that is next."""
    for pattern, way in model.overlay.removal.items():
        if any(matches(parse(pattern), steps) for steps in (place, *(leaf.steps for leaf in leaves))):
            return way
    return RUNGS[min(max(removals.get(leaf.path, 0) for leaf in leaves), len(RUNGS) - 1)]


def next_removal(model: Model, leaf: Leaf, tried: int, *, desired: Any = None, verb: str = "update") -> int | None:
    """The way to try after this one, for a leaf of what was applied; None when there is no other."""
    if any(covers(parse(pattern), leaf.steps) for pattern in model.overlay.removal):
        return None
    items = _items(leaf, desired)
    if items and get(desired, items[0][:-1]) is not MISSING:
        return None  # the rest of the list was sent: there is no other way to leave an item out
    for index in range(tried + 1, len(RUNGS)):
        if RUNGS[index] == "null" and verb == "patch":
            continue
        if RUNGS[index] == "empty" and not items and empty_of(leaf.node, leaf.value) is MISSING:
            continue
        if RUNGS[index] == "default" and (items or leaf.node.default is None):
            continue
        return index
    return None


def empty_of(node: Node, value: Any) -> Any:
    """The empty value of this type; MISSING when it has none that the service could take."""
    if isinstance(value, list):
        return [] if not node.min_items else MISSING
    if isinstance(value, dict):
        return {}
    if isinstance(value, str) and not (node.enum or node.pattern or node.min_length or node.format):
        return ""
    return MISSING


def places(model: Model, removed: tuple[str, ...], *, desired: Any, applied: Any, live: Any) -> dict[Path, list[Leaf]]:
    """Where to remove: an item of a keyed list as a whole, and an object with all that is in it when nothing in it is
    anyone else's; else each leaf by itself. With the leaves that are removed there; `live` is without read-only fields."""
    had = walk(model, applied)
    leaves = [leaf for path in removed if _there(leaf := had[path], get(live, leaf.steps))]
    paths = {leaf.path for leaf in leaves}
    items = {prefix for leaf in leaves for prefix in _items(leaf, desired)}
    others = [
        leaf.steps
        for leaf in walk(model, live).values()
        if leaf.path not in paths
        and leaf.value is not None
        and not any(leaf.steps[:end] in items for end in range(1, len(leaf.steps) + 1))
    ]
    found: dict[Path, list[Leaf]] = {}
    for leaf in leaves:
        found.setdefault(_place(model, leaf, applied, desired, others, items), []).append(leaf)
    return found


def _there(leaf: Leaf, now: Any) -> bool:
    """Whether there is something to remove. What a read never gives may be there."""
    return leaf.hidden or (now not in (MISSING, None) and not (leaf.bare and now != leaf.value))


def _items(leaf: Leaf, desired: Any) -> list[Path]:
    """The items above a leaf that are no longer wanted."""
    prefixes = [leaf.steps[:end] for end in range(1, len(leaf.steps) + 1)]
    return [prefix for prefix in prefixes if isinstance(prefix[-1], Item) and get(desired, prefix) is MISSING]


def _place(model: Model, leaf: Leaf, applied: Any, desired: Any, others: list[Path], items: set[Path]) -> Path:
    for end in range(1, len(leaf.steps)):
        prefix = leaf.steps[:end]
        if get(desired, prefix) is not MISSING:
            continue
        if prefix in items or not any(other[:end] == prefix for other in others):
            return prefix
        if leaf.steps[end] in node_at(model, prefix, applied).required:
            return prefix  # without this field the service would refuse the rest of it
    return leaf.steps
