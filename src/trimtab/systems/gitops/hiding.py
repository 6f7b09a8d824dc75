"""Sensitive fields in documents that people read: never in a file that we write, nor in a difference that we show. Pure.

A path leads through mappings and lists, where `*` is each of their items. Items of lists are the same on two sides when
they have the same name; one that has none is new.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from trimtab.systems.gitops.knowing import Path
from trimtab.systems.gitops.merging.fields import ABSENT, DEFAULT_KEYS

NOT_SHOWN = "(not shown)"
CHANGED = "(not shown; it is another one)"

Leaf = Callable[[Any, Any], Any]


def for_git(document: Any, before: Any, paths: Iterable[Path]) -> Any:
    """With what Git has at the paths already, and nothing new. The document itself when there is nothing of it."""
    for path in paths:
        document = _replaced(document, before, path, lambda value, old: old)
    return document


def for_people(before: Any, after: Any, paths: Iterable[Path]) -> tuple[Any, Any]:
    """Both sides of a difference, with words in place of values; they tell whether it is the same value."""
    old, new = before, after
    for path in paths:
        old = _replaced(old, before, path, lambda value, other: ABSENT if value is ABSENT else NOT_SHOWN)
        new = _replaced(new, before, path, _compared)
    return old, new


def is_hidden(field: str, paths: Iterable[Path]) -> bool:
    """Whether a field, by its name in a message (`spec.nodes[0].key`), is at one of the paths, in it, or has it in itself."""
    steps = [step for step in re.split(r"[.\[\]]+", field) if step]
    return any(all(wanted in ("*", step) for step, wanted in zip(steps, path, strict=False)) for path in paths)


def _compared(value: Any, old: Any) -> Any:
    if value is ABSENT:
        return ABSENT
    return NOT_SHOWN if old is ABSENT or value == old else CHANGED


def _replaced(value: Any, old: Any, path: Path, leaf: Leaf) -> Any:
    """`leaf` of what is there on this side and on the other, wherever the path leads; ABSENT takes it away."""
    if not path or path == ("*",):
        return leaf(value, old)
    step, rest = path[0], path[1:]
    if step == "*":
        if isinstance(value, dict):
            others = old if isinstance(old, dict) else {}
            made = {name: _replaced(each, others.get(name, ABSENT), rest, leaf) for name, each in value.items()}
            return value if all(made[name] is value[name] for name in value) else made
        if isinstance(value, list):
            named = {_name(item): item for item in (old if isinstance(old, list) else ())}
            named.pop(None, None)
            items = [_replaced(each, named.get(_name(each), ABSENT), rest, leaf) for each in value]
            return value if all(map(operator.is_, items, value)) else items
        return value
    if not isinstance(value, dict):
        return value
    here, there = value.get(step, ABSENT), old.get(step, ABSENT) if isinstance(old, dict) else ABSENT
    if here is ABSENT and rest not in ((), ("*",)):
        return value
    inner = _replaced(here, there, rest, leaf)
    if inner is here:
        return value
    if inner is ABSENT:
        return {name: each for name, each in value.items() if name != step}
    return {**value, step: inner}


def _name(item: Any) -> str | None:
    found = (item.get(key) for key in DEFAULT_KEYS) if isinstance(item, dict) else ()
    return next((name for name in found if isinstance(name, str)), None)
