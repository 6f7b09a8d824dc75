"""White labels of the hub show one object under several groups. A sync has it under one of them.

It is the one that Git has; else the one that it was synced by; else the one of our own suffix. By the uid they are known to be
the same. All others are no objects of their own: neither new in the system, nor gone from Git.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from trimtab.systems.gitops.inventory import Inventory
from trimtab.systems.gitops.parsing import Identity

Document = dict[str, Any]


def other_views(
    live: Mapping[Identity, Document], named: Collection[Identity], inventory: Inventory, suffix: str
) -> set[Identity]:
    """Those of `live` that are further views of objects which the sync has under another group. `named` are in Git."""
    asked = [identity for identity in live if identity not in named]
    if not asked:
        return set()
    synced = {entry.uid for entry in inventory if entry.uid and entry.identity in named}
    seen = synced | {_uid(live[identity]) for identity in named if identity in live}
    found = set()
    for identity in sorted(asked, key=lambda each: (each not in inventory, not each.group.endswith(suffix), each)):
        uid = _uid(live[identity])
        if uid and uid in seen:
            found.add(identity)
        seen.add(uid)
    return found


def _uid(document: Document) -> str:
    return str(document.get("metadata", {}).get("uid") or "")
