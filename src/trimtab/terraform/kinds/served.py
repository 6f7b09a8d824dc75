"""Which kinds a server serves, as its discovery tells.

A kind is taken when it can be got, listed, watched, created, patched and deleted, in its preferred version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trimtab.terraform.kinds.api import ApiError

Get = Callable[[str], Any]
"""The JSON at a path of the server."""

VERBS = frozenset({"create", "delete", "get", "list", "patch", "watch"})
LEFT_OUT = frozenset({("", "Event"), ("events.k8s.io", "Event")})
"""What happened, which nobody declares."""


@dataclass(frozen=True, slots=True)
class Served:
    """A kind as discovery tells of it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    categories: tuple[str, ...] = ()


def served_kinds(get: Get) -> list[Served]:
    """What the server serves now, each kind in its preferred version, by group and kind."""
    groups = [("", "v1", "/api/v1")]
    for group in get("/apis")["groups"]:
        name = str(group["name"])
        preferred = str(group["preferredVersion"]["version"])
        versions = [preferred, *(str(one["version"]) for one in group["versions"] if one["version"] != preferred)]
        groups += [(name, version, f"/apis/{name}/{version}") for version in versions]
    found: dict[tuple[str, str], Served] = {}
    for group_name, version, path in groups:
        for resource in (unless_gone(get, path) or {"resources": ()})["resources"]:
            kind = str(resource["kind"])
            if "/" in resource["name"] or not set(resource.get("verbs") or ()) >= VERBS:
                continue
            if (group_name, kind) not in LEFT_OUT:
                one = Served(
                    group_name,
                    version,
                    kind,
                    str(resource["name"]),
                    bool(resource["namespaced"]),
                    tuple(resource.get("categories") or ()),
                )
                found.setdefault((group_name, kind), one)
    return [found[key] for key in sorted(found)]


def unless_gone(get: Get, path: str) -> Any:
    """None when it is not there: groups go with their definitions, also while they are asked one after the other."""
    try:
        return get(path)
    except ApiError as error:
        if error.code != 404:
            raise
        return None
