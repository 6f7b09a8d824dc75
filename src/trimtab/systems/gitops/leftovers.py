"""What stays after an apply because others own it, too: what Git said once and says no more. Pure.

Whatever came to Git from the system is still its maker's: without this, taking it out of Git would change nothing.
"""

from __future__ import annotations

from typing import Any

from trimtab.systems.gitops.merging.fields import DEFAULT_KEYS, is_keyed

Document = dict[str, Any]
_NOT_SAID = ("apiVersion", "kind", "status")
_MAPS = frozenset(("labels", "annotations", "data", "binaryData"))
"""Fields whose names are anybody's. All else that Git takes away whole is one thing, with what the server put into it."""


def leftovers(before: Document, after: Document, answer: Document) -> Document:
    """A merge patch that takes away what Git said before, says no more, and the object still has. A list of named items is
    given whole, without those; others are the server's business."""
    found = _left({name: value for name, value in before.items() if name not in _NOT_SAID}, after, answer)
    if isinstance(found.get("metadata"), dict):
        found["metadata"].pop("namespace", None)
        if not found["metadata"]:
            del found["metadata"]
    return found


def _left(before: Document, after: Document, answer: Document) -> Document:
    found: Document = {}
    for name, value in before.items():
        if name not in answer:
            continue
        there, says = answer[name], after.get(name)
        if name not in after:
            gone = _others(value, there) if name in _MAPS else None
            if gone != {}:
                found[name] = gone
        elif isinstance(value, dict) and isinstance(says, dict) and isinstance(there, dict):
            inner = _left(value, says, there)
            if inner:
                found[name] = inner
        elif isinstance(value, list) and isinstance(says, list) and isinstance(there, list):
            items = _left_items(value, says, there)
            if items is not None:
                found[name] = items
    return found


def _others(value: Any, there: Any) -> Document | None:
    """Of a map that Git has no more, what others put there stays; None when that is nothing."""
    if not isinstance(value, dict) or not isinstance(there, dict) or there.keys() <= value.keys():
        return None
    return {name: None for name in value if name in there}


def _left_items(before: list[Any], after: list[Any], answer: list[Any]) -> list[Any] | None:
    """The items of `answer` without those, and that of them, which Git took away; None when there is nothing of it."""
    key = next((key for key in DEFAULT_KEYS if all(is_keyed(side, key) for side in (before, after, answer))), "")
    if not key:
        return None
    had, says = ({item[key]: item for item in side} for side in (before, after))
    found, changed = [], False
    for item in answer:
        name = item[key]
        if name in had and name not in says:
            changed = True
            continue
        left = _left(had[name], says[name], item) if name in had and name in says else {}
        found.append(_merged(item, left) if left else item)
        changed = changed or bool(left)
    return found if changed else None


def _merged(item: Document, left: Document) -> Document:
    """The item after the merge patch `left`, which only takes away."""
    found = {name: value for name, value in item.items() if left.get(name, ...) is not None}
    for name, value in left.items():
        if value is not None:
            found[name] = _merged(item[name], value) if isinstance(value, dict) else value
    return found
