"""What another server says it serves, as our own discovery tells it: from an APIResourceList to the aggregated form.

Clients read our discovery as one document, so a word of a wrong type in it would take all kinds from them, ours too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

Document = dict[str, Any]
MAX_RESOURCES = 2000


class _Row(msgspec.Struct, frozen=True, rename="camel"):
    """An APIResource. As Go reads it: null is as good as nothing."""

    name: str
    kind: str | None = None
    group: str | None = None
    version: str | None = None
    singular_name: str | None = None
    namespaced: bool | None = None
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None


def resources(listed: Document, group: str, version: str) -> list[Document]:
    """Parts of a kind go into it. What has not the form of a resource is left out."""
    rows = list(_rows(listed))
    found: dict[str, Document] = {}
    for row in rows:
        if "/" not in row.name:
            made: Document = {
                "resource": row.name,
                "responseKind": _kind(row, group, version),
                "scope": "Namespaced" if row.namespaced else "Cluster",
                "singularResource": row.singular_name or "",
                "verbs": row.verbs or [],
            }
            if row.short_names:
                made["shortNames"] = row.short_names
            if row.categories:
                made["categories"] = row.categories
            found[row.name] = made
    for row in rows:
        name, slash, part = row.name.partition("/")
        if slash and name in found:
            made = {"subresource": part, "responseKind": _kind(row, group, version), "verbs": row.verbs or []}
            found[name].setdefault("subresources", []).append(made)
    return sorted(found.values(), key=lambda resource: str(resource["resource"]))


def version_of(version: str, listed: Document | None, group: str, *, fresh: bool) -> Document:
    """One version in an aggregated document. Of a server that is away it is what it said last."""
    made: Document = {"version": version}
    if listed is not None:
        made["resources"] = resources(listed, group, version)
    return {**made, "freshness": "Current" if fresh else "Stale"}


def _rows(listed: Document) -> Iterator[_Row]:
    rows = listed.get("resources")
    for row in rows[:MAX_RESOURCES] if isinstance(rows, list) else ():
        try:
            read = msgspec.convert(row, _Row)
        except msgspec.ValidationError:
            continue
        if read.name:
            yield read


def _kind(row: _Row, group: str, version: str) -> Document:
    return {"group": row.group or group, "version": row.version or version, "kind": row.kind or ""}
