"""Ratcheting: an update is not refused for what was wrong before and did not change.

The rules of the real server: a finding is forgiven when the value it is about, or any value around it, equals the value
at the same place in the old object. Places in lists have no meaning, unless the list is a map with keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.model.schema.finding import Finding, Stage, Step
from trimtab.model.schema.listtype import breaks_list_types

Document = Mapping[str, Any]


def forgive(found: list[Finding], document: Document, new: dict[str, Any], old: dict[str, Any]) -> list[Finding]:
    """The findings that still count."""
    listed = any(finding.stage is Stage.LIST_TYPE for finding in found)
    lists_were_wrong = listed and breaks_list_types(old, document)
    return [
        finding
        for finding in found
        if not (
            (finding.stage is Stage.SCHEMA and _unchanged(list(reversed(finding.steps)), document, new, old))
            or (finding.stage is Stage.LIST_TYPE and lists_were_wrong)
        )
    ]


def _unchanged(steps: list[Step], document: Document, new: Any, old: Any) -> bool:
    if new == old:
        return True
    if not steps:
        return False
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        return _item_unchanged(step, rest, document, new, old)
    if not (isinstance(new, dict) and isinstance(old, dict) and step in new and step in old):
        return False
    if document.get("x-kubernetes-map-type") == "atomic":
        return False
    part = (document.get("properties") or {}).get(step, document.get("additionalProperties"))
    return _unchanged(rest, part if isinstance(part, Mapping) else {}, new[step], old[step])


def _item_unchanged(index: int, rest: list[Step], document: Document, new: Any, old: Any) -> bool:
    keys = document.get("x-kubernetes-list-map-keys")
    if document.get("x-kubernetes-list-type") != "map" or not keys:
        return False
    if not (isinstance(new, list) and isinstance(old, list) and isinstance(new[index], dict)):
        return False
    key = [new[index].get(name) for name in keys]
    for item in old:
        if isinstance(item, dict) and [item.get(name) for name in keys] == key:
            return _unchanged(rest, document.get("items") or {}, new[index], item)
    return False
