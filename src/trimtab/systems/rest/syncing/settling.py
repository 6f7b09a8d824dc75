"""What a settled write came to: where the service answers other values than it was given, and what it did not remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.systems.rest.model import Model
from trimtab.systems.rest.syncing.aligning import aligned
from trimtab.systems.rest.syncing.comparing import Same, by_leaf
from trimtab.systems.rest.syncing.difference import gone, owned
from trimtab.systems.rest.syncing.known import recorded
from trimtab.systems.rest.syncing.paths import MISSING, get


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """`known` are the known differences from now on; `still_present` what was removed and is there with the old value."""

    known: dict[str, Any] = {}
    still_present: tuple[str, ...] = ()


def settle(
    model: Model,
    desired: dict[str, Any],
    live: dict[str, Any],
    *,
    previous: dict[str, Any] | None,
    earlier: Mapping[str, Any] = {},
    same: Same | None = None,
) -> Settled:
    """`desired` and `previous` (what was applied before this write) are sealed; `live` is a read after all is done;
    `earlier` are the known differences from before. Only what this write changed is news: another hand's change of the
    rest stays what it is, drift."""
    live = aligned(model, live, desired, previous)
    wants, had = owned(model, desired, live), owned(model, previous, live)
    same = same or by_leaf(model, {**had, **wants})
    known: dict[str, Any] = {}
    for path, leaf in sorted(wants.items()):
        now, before = get(live, leaf.steps), get(previous, leaf.steps)
        if leaf.hidden or same(path, leaf.value, now):
            continue
        if before is MISSING or not same(path, leaf.value, before):
            known[path] = recorded(model, leaf, now)
        elif path in earlier:
            known[path] = earlier[path]
    present = []
    for path, leaf in sorted(had.items()):
        now = get(live, leaf.steps)
        if leaf.hidden or leaf.bare or not gone(leaf, desired) or now in (MISSING, None, "", [], {}):
            continue
        # Another value is the service's own: it has forgotten ours.
        if same(path, leaf.value, now) and (leaf.node.default is None or not same(path, leaf.node.default, now)):
            present.append(path)
    return Settled(known=known, still_present=tuple(present))
