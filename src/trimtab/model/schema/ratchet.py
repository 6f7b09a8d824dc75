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
    comparison = _Comparison()
    return [
        finding
        for finding in found
        if not (
            (finding.stage is Stage.SCHEMA and comparison.unchanged(finding.steps[::-1], document, new, old))
            or (finding.stage is Stage.LIST_TYPE and lists_were_wrong)
        )
    ]


class _Comparison:
    """Of one object with its old state. Thousands of findings may lie below the same value, so what was compared, and where
    the items of a list are, is remembered: by identity, for as long as both states are held."""

    def __init__(self) -> None:
        self._same: dict[tuple[int, int], bool] = {}
        self._items: dict[int, dict[tuple[Any, ...], dict[str, Any]]] = {}

    def unchanged(self, steps: list[Step], document: Document, new: Any, old: Any) -> bool:
        for place, step in enumerate(steps):
            if self._equal(new, old):
                return True
            if isinstance(step, int):
                found = self._item(step, document, new, old)
                return found is not None and self.unchanged(
                    steps[place + 1 :], document.get("items") or {}, new[step], found
                )
            if not (isinstance(new, dict) and isinstance(old, dict) and step in new and step in old):
                return False
            if document.get("x-kubernetes-map-type") == "atomic":
                return False
            part = (document.get("properties") or {}).get(step, document.get("additionalProperties"))
            document, new, old = part if isinstance(part, Mapping) else {}, new[step], old[step]
        return self._equal(new, old)

    def _equal(self, new: Any, old: Any) -> bool:
        if not isinstance(new, dict | list):
            return bool(new == old)
        pair = id(new), id(old)
        if (known := self._same.get(pair)) is None:
            known = self._same[pair] = new == old
        return known

    def _item(self, index: int, document: Document, new: Any, old: Any) -> dict[str, Any] | None:
        """The item of the old list that has the keys of an item of the new one."""
        keys = document.get("x-kubernetes-list-map-keys")
        if document.get("x-kubernetes-list-type") != "map" or not keys:
            return None
        if not (isinstance(new, list) and isinstance(old, list) and isinstance(new[index], dict)):
            return None
        if (items := self._items.get(id(old))) is None:
            items = self._items[id(old)] = {}
            for item in old:
                if isinstance(item, dict) and (key := _key(item, keys)) is not None:
                    items.setdefault(key, item)
        key = _key(new[index], keys)
        return None if key is None else items.get(key)


def _key(item: dict[str, Any], names: list[str]) -> tuple[Any, ...] | None:
    """None when a part of it is no scalar: then the item is like no other."""
    key = tuple(item.get(name) for name in names)
    return None if any(isinstance(part, dict | list) for part in key) else key
