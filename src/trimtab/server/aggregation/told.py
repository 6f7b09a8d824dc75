"""What another server says it serves, as our own discovery tells it: from an APIResourceList to the aggregated form."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
MAX_RESOURCES = 2000


def resources(listed: Document, group: str, version: str) -> list[Document]:
    """Parts of a kind go into it. What has not the form of a resource is left out."""
    rows = [row for row in _rows(listed) if isinstance(row.get("name"), str) and row["name"]]
    found: dict[str, Document] = {}
    for row in rows:
        if "/" not in row["name"]:
            made: Document = {
                "resource": row["name"],
                "responseKind": _kind(row, group, version),
                "scope": "Namespaced" if row.get("namespaced") else "Cluster",
                "singularResource": row.get("singularName") or "",
                "verbs": row.get("verbs") or [],
            }
            found[row["name"]] = made | {word: row[word] for word in ("shortNames", "categories") if row.get(word)}
    for row in rows:
        name, slash, part = row["name"].partition("/")
        if slash and name in found:
            made = {"subresource": part, "responseKind": _kind(row, group, version), "verbs": row.get("verbs") or []}
            found[name].setdefault("subresources", []).append(made)
    return sorted(found.values(), key=lambda resource: str(resource["resource"]))


def version_of(version: str, listed: Document | None, group: str, *, fresh: bool) -> Document:
    """One version in an aggregated document. Of a server that is away it is what it said last."""
    made: Document = {"version": version}
    if listed is not None:
        made["resources"] = resources(listed, group, version)
    return {**made, "freshness": "Current" if fresh else "Stale"}


def _rows(listed: Document) -> list[Document]:
    rows = listed.get("resources")
    return [row for row in rows[:MAX_RESOURCES] if isinstance(row, dict)] if isinstance(rows, list) else []


def _kind(row: Document, group: str, version: str) -> Document:
    return {
        "group": row.get("group") or group,
        "version": row.get("version") or version,
        "kind": row.get("kind") or "",
    }
