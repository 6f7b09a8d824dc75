"""One annotation of a document and who manages it: taken out, renamed, or kept from an older document. Pure; a document that
changes is copied along the way, the others come back as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trimtab.hub.contract import Hub

Fields = dict[str, Any]
Entry = dict[str, Any]


def value_of(hub: Hub, key: str) -> str | None:
    return ((hub.get("metadata") or {}).get("annotations") or {}).get(key)


def without(hub: Hub, key: str) -> Hub:
    """The document without the annotation, and without a trace of it in managedFields."""
    metadata = hub.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    managed = metadata.get("managedFields") or ()
    owned = any(_manages(entry, key) for entry in managed)
    if key not in annotations and not owned:
        return hub
    left = {name: value for name, value in annotations.items() if name != key}
    metadata = _with(metadata, "annotations", left)
    if owned:
        entries = (_entry_without(entry, key, bool(left)) for entry in managed)
        metadata = _with(metadata, "managedFields", [entry for entry in entries if entry is not None])
    return {**hub, "metadata": metadata}


def renamed(hub: Hub, old: str, new: str) -> Hub:
    """The document with the annotation under another key; one that was under that key before is gone."""
    hub = without(hub, new)
    metadata = hub.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    managed = metadata.get("managedFields") or ()
    if old in annotations:
        metadata = {
            **metadata,
            "annotations": {new if name == old else name: annotations[name] for name in annotations},
        }
    if any(_manages(entry, old) for entry in managed):

        def moved(fields: Fields) -> Fields:
            return {f"f:{new}" if name == f"f:{old}" else name: fields[name] for name in fields}

        entries = [_changed(entry, moved) if _manages(entry, old) else entry for entry in managed]
        metadata = {**metadata, "managedFields": entries}
    return {**hub, "metadata": metadata}


def kept(hub: Hub, stored: Hub, key: str) -> Hub:
    """The document with the stored one's annotation, and with its managers. `hub` has none of it: see `without`."""
    value = value_of(stored, key)
    if value is None:
        return hub
    metadata = hub.get("metadata") or {}
    metadata = {**metadata, "annotations": {**(metadata.get("annotations") or {}), key: value}}
    owners = [entry for entry in (stored["metadata"].get("managedFields") or ()) if _manages(entry, key)]
    if owners:
        metadata["managedFields"] = _with_owners(list(metadata.get("managedFields") or ()), owners, key)
    return {**hub, "metadata": metadata}


def _with_owners(managed: list[Entry], owners: list[Entry], key: str) -> list[Entry]:
    for owner in owners:
        alone = owner["fieldsV1"]["f:metadata"]["f:annotations"]
        ours = {name: alone[name] for name in alone if name in (".", f"f:{key}")}
        for index, entry in enumerate(managed):
            if all(entry.get(word) == owner.get(word) for word in _SAME):
                managed[index] = _changed(entry, lambda fields, ours=ours: {**ours, **fields})  # type: ignore[misc]
                break
        else:
            managed.append({**owner, "fieldsV1": {"f:metadata": {"f:annotations": ours}}})
    return managed


_SAME = ("manager", "operation", "apiVersion", "subresource")
"""Two entries with these in common are one manager's."""


def _entry_without(entry: Entry, key: str, annotated: bool) -> Entry | None:
    if not _manages(entry, key):
        return entry

    def less(fields: Fields) -> Fields:
        left = {name: fields[name] for name in fields if name != f"f:{key}"}
        return left if annotated else {name: left[name] for name in left if name != "."}

    changed = _changed(entry, less)
    return changed if changed["fieldsV1"] else None


def _manages(entry: Entry, key: str) -> bool:
    fields: Any = entry.get("fieldsV1") if isinstance(entry, dict) else None
    for step in ("f:metadata", "f:annotations"):
        fields = fields.get(step) if isinstance(fields, dict) else None
    return isinstance(fields, dict) and f"f:{key}" in fields


def _changed(entry: Entry, change: Callable[[Fields], Fields]) -> Entry:
    """An entry with other fields below its annotations; what becomes empty goes."""
    fields = entry.get("fieldsV1") or {}
    metadata = fields.get("f:metadata") or {}
    annotations = change(metadata.get("f:annotations") or {})
    return {**entry, "fieldsV1": _with(fields, "f:metadata", _with(metadata, "f:annotations", annotations))}


def _with(document: Fields, name: str, value: Any) -> Fields:
    if value:
        return {**document, name: value}
    return {other: document[other] for other in document if other != name}
