"""Which changes are worth a reconcile: `when = generation_changed | labels_changed`.

An object that comes or goes always counts: predicates judge only what happens in between, whatever they are combined to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.runtime.changes import Change, Head


class Predicate:
    """A judgement of a change; also a decorator for one of your own. Combine with `|`, `&` and `~`."""

    def __init__(self, judge: Callable[[Change], bool]) -> None:
        self._judge = judge

    def __call__(self, change: Change) -> bool:
        return change.before is None or change.after is None or self._judge(change)

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate(lambda change: self(change) or other(change))

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(lambda change: self(change) and other(change))

    def __invert__(self) -> Predicate:
        return Predicate(lambda change: not self(change))


def _differs(aspect: Callable[[Head], Any]) -> Predicate:
    def judge(change: Change) -> bool:
        before, after = change.heads
        return before is None or after is None or aspect(before) != aspect(after)

    return Predicate(judge)


any_change = Predicate(lambda change: True)


@Predicate
def generation_changed(change: Change) -> bool:
    """Someone changed what is wanted; a write to status or metadata does not count. A deletion counts: it is wanted."""
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    return before.generation != after.generation or before.deleting is not after.deleting


labels_changed = _differs(lambda head: head.labels or {})
annotations_changed = _differs(lambda head: head.annotations or {})
