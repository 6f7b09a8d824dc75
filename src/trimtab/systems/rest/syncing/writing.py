"""The body of a write, from one read: what was there when the decision was made is what is built on.

PATCH where the service takes every touched field that way; else the whole with the changes in it, by PUT. No field that
is not ours changes its value, and none that the service would refuse to take back is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.systems.rest.model import Model, Writer
from trimtab.systems.rest.syncing.aligning import aligned
from trimtab.systems.rest.syncing.comparing import Same, compared
from trimtab.systems.rest.syncing.difference import Difference, owned
from trimtab.systems.rest.syncing.leaves import Leaf, is_arm, walk
from trimtab.systems.rest.syncing.paths import MISSING, Item, Path, covers, drop, get, parse, put
from trimtab.systems.rest.syncing.removing import empty_of, places, rung
from trimtab.systems.rest.syncing.stripping import fitting, holds_hidden, stripped, taken


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """`verb` is patch or update. The body has secrets: it is for the request alone. `reasons` says for each path why it
    is written: set, changed, removed, drifted."""

    verb: str
    body: dict[str, Any]
    reasons: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return f"Write(verb={self.verb!r}, reasons={self.reasons!r})"


class Unwritable(Exception):  # noqa: N818 - it reads as what happened
    """No call of the service takes these paths."""

    def __init__(self, paths: tuple[str, ...], why: str) -> None:
        self.paths = paths
        super().__init__(f"{', '.join(paths[:8])}{' and more' if len(paths) > 8 else ''}: {why}")


def create_body(model: Model, desired: dict[str, Any]) -> dict[str, Any]:
    """What creates it: all that is wanted and a creation takes."""
    return _with_constants(model, taken(model, desired, Writer.CREATE))


def write_for(
    model: Model,
    diff: Difference,
    *,
    live: dict[str, Any],
    desired: dict[str, Any],
    applied: dict[str, Any] | None,
    correct: bool,
    removals: Mapping[str, int] = {},
    same: Same | None = None,
) -> Write | None:
    """None: there is nothing to write, also when the service has all of it already. `desired` has the secrets in it.
    Raises Unwritable."""
    same = same or compared(model, desired, applied)
    live = aligned(model, live, desired, applied)
    changes = _changes(model, diff, live=live, desired=desired, applied=applied, correct=correct, same=same)
    if not changes.sets and not changes.removes:
        return None
    verb = _verb(model, changes)
    ways = {place: rung(model, place, leaves, removals) for place, leaves in changes.removes.items()}
    if verb == "patch":
        body = _patch(model, changes, ways, live, desired)
    elif model.overlay.update == "replace":
        body = _replaced(model, changes, ways, live, desired)
    else:
        body = _merged(model, changes, ways, live, desired, Writer.UPDATE)
    return Write(verb=verb, body=_with_constants(model, body), reasons=changes.reasons)


def written_again(model: Model, *, live: dict[str, Any], desired: dict[str, Any]) -> Write | None:
    """The same once more, for a resource whose last operation failed: what is there with what is wanted in it, and no
    change. None where there is no update by PUT."""
    if model.calls.update is None or model.overlay.update != "merge":
        return None
    unchanged = _Changes({}, {}, (), ())
    body = _merged(model, unchanged, {}, aligned(model, live, desired), desired, Writer.UPDATE)
    return Write(verb="update", body=_with_constants(model, body), reasons=(("", "failed"),))


class _Changes(msgspec.Struct, frozen=True):
    """What is to be set and removed, against what is there."""

    sets: dict[str, Leaf]
    removes: dict[Path, list[Leaf]]
    fixed: tuple[str, ...]
    """Of these, what only a creation takes."""
    reasons: tuple[tuple[str, str], ...]

    @property
    def leaves(self) -> list[Leaf]:
        return [*self.sets.values(), *(leaf for leaves in self.removes.values() for leaf in leaves)]


def _changes(
    model: Model, diff: Difference, *, live: Any, desired: Any, applied: Any, correct: bool, same: Same
) -> _Changes:
    wants = owned(model, desired, live)
    sets: dict[str, Leaf] = {}
    reasons: dict[str, str] = {}
    for path in diff.intent:
        leaf = wants[path]
        if leaf.hidden or holds_hidden(model, leaf) or not same(path, leaf.value, get(live, leaf.steps)):
            sets[path] = leaf
            reasons[path] = "set" if get(applied, leaf.steps) is MISSING else "changed"
    for path in diff.drift if correct else ():
        if not wants[path].fixed(live):
            sets[path] = wants[path]
            reasons[path] = "drifted"
    visible = stripped(model, live, Writer.ALL)
    removes = places(model, diff.removed, desired=desired, applied=applied, live=visible)
    removed = [leaf for leaves in removes.values() for leaf in leaves]
    reasons.update({leaf.path: "removed" for leaf in removed})
    fixed = [leaf.path for leaf in sets.values() if leaf.fixed(live)]
    fixed += [leaf.path for leaf in removed if leaf.fixed(desired)]
    return _Changes(sets, removes, tuple(sorted(fixed)), tuple(sorted(reasons.items())))


def _verb(model: Model, changes: _Changes) -> str:
    """Raises Unwritable."""
    overlay, calls = model.overlay, model.calls
    paths = tuple(path for path, _ in changes.reasons)
    if changes.fixed:
        raise Unwritable(changes.fixed, "it can be given at creation alone")
    if overlay.update == "none":
        raise Unwritable(paths, "this kind cannot be updated")
    forbidden = [parse(pattern) for pattern in overlay.forbidden_patch]
    unpatchable = tuple(
        leaf.path
        for leaf in changes.leaves
        if not leaf.writers & Writer.PATCH or any(covers(pattern, leaf.steps) for pattern in forbidden)
    )
    patch = calls.patch is not None and "json-patch" not in calls.patch.content_type
    if overlay.update != "replace" and patch and not unpatchable:
        return "patch"
    if overlay.update == "patch":
        raise Unwritable(unpatchable or paths, "PATCH does not take it, and there is no other way to update")
    unputtable = tuple(leaf.path for leaf in changes.leaves if not leaf.writers & Writer.UPDATE)
    if calls.update is None and not overlay.upsert:
        raise Unwritable(unpatchable or paths, "there is no call that updates it")
    if unputtable:
        raise Unwritable(unputtable, "no call that updates takes it")
    return "update"


def _patch(model: Model, changes: _Changes, ways: dict[Path, str], live: Any, desired: Any) -> dict[str, Any]:
    """RFC 7396. Lists, and maps that the service replaces, are sent whole."""
    merged = _merged(model, changes, ways, live, desired, Writer.PATCH)
    body: dict[str, Any] = {}
    for leaf in changes.sets.values():
        whole = _whole(model, leaf.steps)
        body = put(body, whole, get(merged, whole))
    for place in ways:
        whole = _whole(model, place)
        value = get(merged, whole)
        if value is MISSING:
            value = {} if _is_tags(model, whole) else None
        body = put(body, whole, value)
    return body


def _whole(model: Model, steps: Path) -> Path:
    """The path that is sent for this one: up to the first list, or ARM's tags (a PATCH replaces them)."""
    if _is_tags(model, steps):
        return steps[:1]
    for end, step in enumerate(steps):
        if isinstance(step, Item | int):
            return steps[:end]
    return steps


def _is_tags(model: Model, steps: Path) -> bool:
    return steps[0] == "tags" and is_arm(model)


def _merged(
    model: Model, changes: _Changes, ways: dict[Path, str], live: Any, desired: Any, writer: Writer
) -> dict[str, Any]:
    """What is there, as it may be sent back, with the changes in it and with what a read does not give."""
    return _changed(model, stripped(model, live, writer), changes, ways, desired, writer)


def _replaced(model: Model, changes: _Changes, ways: dict[Path, str], live: Any, desired: Any) -> dict[str, Any]:
    """What is wanted and nothing else, but for what someone else owns in it."""
    body = taken(model, desired, Writer.UPDATE)
    for leaf in walk(model, desired).values():
        if leaf.initial(live):
            body = drop(body, leaf.steps)
    visible = stripped(model, live, Writer.UPDATE)
    for leaf in walk(model, visible).values():
        if leaf.initial(live) and all(get(body, leaf.steps[:end]) is not MISSING for end in leaf.entries):
            body = put(body, leaf.steps, leaf.value)
    for kept in model.overlay.keep:
        steps = parse(kept)
        if get(body, steps) is MISSING and get(visible, steps) is not MISSING:
            body = put(body, steps, get(visible, steps))
    replaced: dict[str, Any] = _removed(body, changes, ways)
    return replaced


def _changed(
    model: Model, body: Any, changes: _Changes, ways: dict[Path, str], desired: Any, writer: Writer
) -> dict[str, Any]:
    body = _removed(body, changes, ways)
    for leaf in walk(model, desired).values():
        hidden = (leaf.hidden or holds_hidden(model, leaf)) and leaf.writers & writer and leaf.owned
        if leaf.path in changes.sets or hidden:
            body = put(body, leaf.steps, leaf.value)
    if writer is Writer.UPDATE:
        body = fitting(model, body)
    if model.identity.field and model.identity.writers & writer:
        steps = parse(model.identity.field)
        if get(desired, steps) is not MISSING:
            body = put(body, steps, get(desired, steps))
    found: dict[str, Any] = body
    return found


def _removed(body: Any, changes: _Changes, ways: dict[Path, str]) -> Any:
    for place, leaves in changes.removes.items():
        way = ways[place]
        if isinstance(place[-1], Item) or way == "omit":
            body = drop(body, place)
        elif way == "null":
            body = put(body, place, None)
        elif isinstance(get(body, place), list) and place != leaves[0].steps:
            body = put(body, place, [])
        else:
            body = drop(body, place)
            for leaf in leaves:
                body = put(body, leaf.steps, _instead(leaf, way))
    return body


def _instead(leaf: Leaf, way: str) -> Any:
    if way == "default":
        return leaf.node.default
    empty = empty_of(leaf.node, leaf.value)
    return None if empty is MISSING else empty


def _with_constants(model: Model, body: dict[str, Any]) -> dict[str, Any]:
    for path, value in model.overlay.body.items():
        body = put(body, parse(path), value)
    return body
