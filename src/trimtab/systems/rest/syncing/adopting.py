"""Taking over what exists already.

As it is: the spec counts as applied, and where the service has something else, that is a known difference. So nothing is
written until the spec changes. To overwrite: only what is equal counts as applied, and the rest becomes intent.
"""

from __future__ import annotations

from typing import Any

from trimtab.systems.rest.model import Model
from trimtab.systems.rest.syncing.aligning import aligned
from trimtab.systems.rest.syncing.comparing import Same, compared
from trimtab.systems.rest.syncing.difference import owned
from trimtab.systems.rest.syncing.known import recorded
from trimtab.systems.rest.syncing.paths import get, put


def adopt(
    model: Model, desired: dict[str, Any], live: dict[str, Any], *, as_is: bool, same: Same | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What counts as applied, and the known differences. `desired` is sealed."""
    same = same or compared(model, desired)
    live = aligned(model, live, desired)
    found = owned(model, desired, live)
    differing = {
        path: get(live, leaf.steps)
        for path, leaf in found.items()
        if not leaf.hidden and not same(path, leaf.value, get(live, leaf.steps))
    }
    if as_is:
        return desired, {path: recorded(model, found[path], now) for path, now in sorted(differing.items())}
    applied: dict[str, Any] = {}
    for path, leaf in found.items():
        # What is hidden cannot be compared: it is written, unless creation was the only time for it.
        if path not in differing and (not leaf.hidden or leaf.fixed(live)):
            applied = put(applied, leaf.steps, leaf.value)
    return applied, {}
