"""Sharing has one way to be written: `canonical` is it, on documents; `spread` and `gathered` are between it and the table
of projects that the storage service has. Pure. Projects are names above hydration and IDs below it: nothing here cares.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trimtab.model.hub import EVERYONE

NOBODY: dict[str, Any] = {"enabled": False}


def canonical(sharing: Any, owner: str) -> dict[str, Any]:
    """`{enabled: false}` for the owner alone; `*` alone for all; else the others' names, once each, sorted."""
    everyone, projects = spread(sharing, owner)
    return gathered(everyone, projects)


def spread(sharing: Any, owner: str) -> tuple[bool, tuple[str, ...]]:
    """Whether it is shared with all, and with whom else. The owner has it anyway."""
    if not isinstance(sharing, dict) or sharing.get("enabled") is not True:
        return False, ()
    listed = sharing.get("projects") or ()
    names = {str(entry["name"]) for entry in listed if isinstance(entry, dict) and entry.get("name")}
    if EVERYONE in names:
        return True, ()
    return False, tuple(sorted(names - {owner}))


def gathered(everyone: bool, projects: Iterable[str]) -> dict[str, Any]:
    names = [EVERYONE] if everyone else sorted(set(projects))
    if not names:
        return dict(NOBODY)
    return {"enabled": True, "projects": [{"name": name} for name in names]}


def reaches(sharing: Any, owner: str, project: str) -> bool:
    """Whether `project` may use what `owner` has."""
    if project == owner:
        return True
    everyone, projects = spread(sharing, owner)
    return everyone or project in projects
