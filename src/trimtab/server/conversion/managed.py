"""Managed fields across versions: a manager owns fields in the version in which it wrote them, so a change is looked at in
the versions of all managers. The rules are in `apply`, which is pure; here it gets the conversions that it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.server.apply import Steps, View
from trimtab.server.strategy import Document

if TYPE_CHECKING:
    from trimtab.server.conversion.versions import Versions


async def stepped(steps: Steps, versions: Versions | None) -> Document:
    """The object that an apply makes."""
    try:
        wanted = next(steps)
        while True:
            assert versions is not None  # noqa: S101 - who gives no other versions is asked for none
            (made,) = await versions.converted([wanted.document], wanted.api_version)
            wanted = steps.send(made)
    except StopIteration as end:
        document: Document = end.value
        return document


async def views_of(versions: Versions, old: Document | None, new: Document) -> dict[str, View]:
    """The objects before and after a write in each other version that a manager wrote in; mostly there is none."""
    if old is None:
        return {}
    views = {}
    for version in _managing(old) | _managing(new):
        if version != new["apiVersion"] and version in versions.forms:
            before, after = await versions.converted([bare(old), bare(new)], version)
            views[version] = View(versions.schemas[version], before, after)
    return views


def _managing(document: Document) -> set[str]:
    entries = document["metadata"].get("managedFields")
    return {entry["apiVersion"] for entry in entries if entry.get("apiVersion")} if isinstance(entries, list) else set()


def bare(document: Document) -> Document:
    """An object without the record of who wrote it."""
    metadata = {name: value for name, value in document["metadata"].items() if name != "managedFields"}
    return {**document, "metadata": metadata}
