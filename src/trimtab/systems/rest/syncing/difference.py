"""The three-way difference: of what is wanted, what was applied last, and what is there.

What the spec and the last applied body say is ours; whatever else is there belongs to the service or to others and is
not looked at. A difference that was known right after the last write is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.systems.rest.model import Model
from trimtab.systems.rest.syncing.aligning import aligned
from trimtab.systems.rest.syncing.comparing import Same, by_leaf, equal, seals
from trimtab.systems.rest.syncing.known import seen, still
from trimtab.systems.rest.syncing.leaves import Leaf, walk
from trimtab.systems.rest.syncing.paths import MISSING, Item, get


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """By path, in the order of the paths. A value that is not there is MISSING. Secrets are as they were given: sealed."""

    intent: dict[str, Any] = {}
    """What the spec says anew, with the value."""
    removed: tuple[str, ...] = ()
    """What was applied and is no longer in the spec."""
    drift: dict[str, tuple[Any, Any]] = {}
    """What someone else changed: what was expected, and what is there."""
    conflicts: dict[str, tuple[Any, Any]] = {}
    """What someone else changed and the spec changes too; the spec wins. What was expected, and what is there."""
    create_only: tuple[str, ...] = ()
    """Of intent and removed, what can be given at creation alone."""

    @property
    def empty(self) -> bool:
        return not (self.intent or self.removed or self.drift)

    @property
    def wanted(self) -> bool:
        """Whether the spec asks for something, drift aside."""
        return bool(self.intent or self.removed)


def difference(
    model: Model,
    *,
    desired: dict[str, Any],
    applied: dict[str, Any] | None,
    live: dict[str, Any] | None,
    known: Mapping[str, Any] = {},
    same: Same | None = None,
) -> Difference:
    """`desired` and `applied` are sealed (`secrets.sealed`). Without `applied` everything is intent."""
    live = aligned(model, live, desired, applied)
    wants = owned(model, desired, live)
    had = wants if _as_before(desired, applied) else owned(model, applied, live)
    same = same or by_leaf(model, {**had, **wants})
    intent = {path: leaf.value for path, leaf in wants.items() if _changed(leaf, get(applied, leaf.steps), same)}
    # What is neither seen nor changed after creation is not missed when a spec no longer has it.
    removed = [path for path, leaf in had.items() if gone(leaf, desired) and not (leaf.hidden and leaf.fixed(desired))]
    drift: dict[str, tuple[Any, Any]] = {}
    conflicts: dict[str, tuple[Any, Any]] = {}
    for path, leaf in had.items() if live is not None else ():
        if leaf.hidden:
            continue
        now = get(live, leaf.steps)
        if _expected(model, leaf, known.get(path), now, same):
            continue
        expected = _told(known.get(path), leaf.value)
        if path in wants and path not in intent:
            drift[path] = (expected, seen(model, leaf, now))
        elif path in intent and not same(path, wants[path].value, now):
            conflicts[path] = (expected, seen(model, leaf, now))
    create_only = [path for path in intent if wants[path].fixed(live) and not _satisfied(wants[path], live, same)]
    create_only += [path for path in removed if had[path].fixed(desired) and get(live, had[path].steps) is not MISSING]
    return Difference(
        intent=dict(sorted(intent.items())),
        removed=tuple(sorted(removed)),
        drift=dict(sorted(drift.items())),
        conflicts=dict(sorted(conflicts.items())),
        create_only=tuple(sorted(create_only)) if live is not None else (),
    )


def owned(model: Model, body: dict[str, Any] | None, live: dict[str, Any] | None) -> dict[str, Leaf]:
    """The leaves that a body says something about; initial ones only until the resource exists."""
    found = walk(model, body)
    return {path: leaf for path, leaf in found.items() if leaf.owned and not leaf.initial(live)}


def gone(leaf: Leaf, desired: Any) -> bool:
    """Whether a leaf that was applied is no longer wanted, and nothing that is wanted takes its place."""
    if get(desired, leaf.steps) is not MISSING:
        return False
    for end in range(len(leaf.steps)):
        above = get(desired, leaf.steps[:end])
        if above is MISSING:
            return True
        if not isinstance(above, list if isinstance(leaf.steps[end], Item | int) else dict):
            return False
    return True


def _as_before(desired: Any, applied: Any) -> bool:
    """The rule, and then one walk will do. To Python 1 is true; as JSON it is not."""
    return bool(desired == applied) and msgspec.json.encode(desired) == msgspec.json.encode(applied)


def _changed(leaf: Leaf, before: Any, same: Same) -> bool:
    if before is MISSING:
        return True
    if leaf.bare and type(before) is type(leaf.value):
        return False
    if leaf.hidden:
        return not equal(leaf.value, before)
    if seals(leaf.value) != seals(before):
        return True
    return not same(leaf.path, leaf.value, before) or not same(leaf.path, before, leaf.value)


def _expected(model: Model, leaf: Leaf, known: Any, now: Any, same: Same) -> bool:
    return same(leaf.path, leaf.value, now) or (isinstance(known, dict) and still(model, leaf, known, now, same))


def _told(known: Any, value: Any) -> Any:
    if not isinstance(known, dict):
        return value
    return MISSING if known.get("missing") else known.get("value", known.get("digest"))


def _satisfied(leaf: Leaf, live: Any, same: Same) -> bool:
    return not leaf.hidden and same(leaf.path, leaf.value, get(live, leaf.steps))
