"""Whose an object is. Terraform's are known by the field manager `terraform`, Git's by `gitops` and by their lineage.

An object has one origin: two that write it would undo each other's work for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.terraform.framework.diagnostics import Failed

GIT = "gitops"
"""The field manager of Git syncs."""
LINEAGE = "/lineage"
"""How the annotation ends that keeps where a hub's object was synced from: `hub.trimtab.dev/lineage`."""

NOISE = {
    "annotations": ("kubectl.kubernetes.io/last-applied-configuration",),
    "labels": ("kubernetes.io/metadata.name",),
}
"""What programs write for themselves."""


def lineage_of(document: Mapping[str, Any]) -> str:
    """The lineage that the object keeps, as far as we may see it."""
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    return next((str(value) for key, value in annotations.items() if _is_lineage(key)), "")


def is_of_git(document: Mapping[str, Any]) -> bool:
    entries = (document.get("metadata") or {}).get("managedFields") or ()
    applied = any(entry.get("manager") == GIT and entry.get("operation") == "Apply" for entry in entries)
    return applied or bool(lineage_of(document))


def refuse_git(document: Mapping[str, Any], what: object, doing: str) -> None:
    if is_of_git(document):
        origin = lineage_of(document)
        raise Failed(
            doing,
            f"{what} is synced from Git{f' ({origin})' if origin else ''}. Change it there, or take it out of the sync "
            "before Terraform manages it.",
        )


def without_noise(document: dict[str, Any]) -> dict[str, Any]:
    """The document without what programs keep in its metadata for themselves, and without lineage."""
    metadata = dict(document.get("metadata") or {})
    for word, keys in NOISE.items():
        if isinstance(kept := metadata.get(word), dict):
            metadata[word] = {k: v for k, v in kept.items() if k not in keys and not _is_lineage(k)}
    return {**document, "metadata": metadata}


def _is_lineage(key: str) -> bool:
    return key.startswith("hub.") and key.endswith(LINEAGE)
