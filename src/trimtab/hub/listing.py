"""Which of a page's resources a list means: equal labels are asked of the service, the rest of each resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimtab.hub.contract import Hub, ListOptions
from trimtab.model.kind import Kind
from trimtab.model.selectors import FieldSelector, LabelSelector


def selected(options: ListOptions, kind: Kind) -> tuple[Mapping[str, str], Callable[[Hub], bool]]:
    """The labels that must be equal, and the test for all that is asked. StatusError 400 when it is no selector."""
    labels = LabelSelector.parse(options.labels) if options.labels else None
    fields = FieldSelector.parse(options.fields) if options.fields else None
    equal = {
        key: next(iter(values))
        for key, operator, values in (labels.requirements if labels is not None else ())
        if operator in ("=", "==") or (operator == "in" and len(values) == 1)
    }
    pushed = labels is None or len(equal) == len(labels.requirements)
    if pushed and fields is None:
        return equal, lambda hub: True

    def matches(hub: Hub) -> bool:
        metadata = hub["metadata"]
        if labels is not None and not labels.matches(metadata.get("labels") or {}):
            return False
        return fields is None or fields.matches(_fields(hub, kind))

    return equal, matches


def _fields(hub: Hub, kind: Kind) -> dict[str, str]:
    metadata = hub["metadata"]
    found = {"metadata.name": metadata["name"], "metadata.namespace": metadata.get("project", "")}
    for path in kind.selectable:
        value: Any = hub
        for step in path.strip(".").split("."):
            value = value.get(step) if isinstance(value, dict) else None
        told = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        found[path.lstrip(".")] = told
    return found
