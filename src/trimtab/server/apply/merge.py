"""The merge of a live object and a configuration: nothing is lost, and where both speak the configuration wins.

Elements of lists that merge keep the live order where the configuration does not say another. The given documents are
never changed; the result shares parts with them.
"""

from __future__ import annotations

from typing import Any

from trimtab.server.apply.elements import element_of
from trimtab.server.apply.types import List, Type


def merge(kind: Type | None, live: Any, config: Any) -> Any:
    """The merged value of a place where both sides have one."""
    if isinstance(config, dict):
        if not isinstance(live, dict) or not live:
            return config
        if kind is None or kind.map is None or kind.map.atomic:
            return config
        result = dict(live)
        fields = kind.map.fields
        for name, value in config.items():
            if name in live and (before := live[name]) != value:
                result[name] = merge(fields[name], before, value)
            else:
                result[name] = value
        return result
    if isinstance(config, list):
        if not isinstance(live, list) or not live:
            return config
        if kind is None or kind.list is None or kind.list.atomic:
            return config
        return _merge_lists(kind.list, live, config)
    if config is None and kind is not None:
        return _merge_null(kind, live)
    return config


def _merge_null(kind: Type, live: Any) -> Any:
    """Null says nothing of a container whose parts merge."""
    if kind.map is not None:
        return live if isinstance(live, dict) and not kind.map.atomic and live else None
    if kind.list is not None:
        return live if isinstance(live, list) and not kind.list.atomic and live else None
    return None


def _merge_lists(series: List, live: list[Any], config: list[Any]) -> list[Any]:
    lefts = [element_of(series, item) for item in live]
    rights = [element_of(series, item) for item in config]
    ours: dict[str, Any] = {}
    for element, item in zip(lefts, live, strict=True):
        ours[element] = None if element in ours else item  # duplicates are not merged
    theirs = dict(zip(rights, config, strict=True))

    def merged(element: str) -> Any:
        if ours.get(element) is None:
            return theirs[element]
        return merge(series.element, ours[element], theirs[element])

    result: list[Any] = []
    shared = [element for element in rights if element in ours]
    done: set[str] = set()
    left = right = awaited = 0
    while left < len(lefts) or right < len(rights):
        if left < len(lefts):
            element = lefts[left]
            if right < len(rights) and element == rights[right]:
                done.add(element)
                result.append(merged(element))
                left += 1
                right += 1
                awaited += 1
                continue
            if right < len(rights) and element in theirs and awaited < len(shared) and shared[awaited] != element:
                left += 1  # its turn comes where the configuration has it
                continue
            if element not in theirs:
                result.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(rights):
            element = rights[right]
            done.add(element)
            result.append(merged(element))
            right += 1
            if awaited < len(shared) and shared[awaited] == element:
                awaited += 1
    return result
