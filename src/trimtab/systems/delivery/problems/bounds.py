"""Whether a document is small enough to be looked at: its depth, its number of values, its texts.

What passes here is walked by recursion afterwards, and a copy of it is kept for each revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UnsetType

from trimtab.model.document import to_document
from trimtab.model.errors import FieldError
from trimtab.systems.delivery.kinds import CanaryDeploymentSpec
from trimtab.systems.delivery.problems.findings import forbidden

DEEPEST = 32
"""A pod template has a depth of about twelve."""
MOST_VALUES = 20_000
MOST_CHARACTERS = 128 * 1024
"""In all texts and keys: a resource has 256 KiB, and its status needs some."""


def too_large(spec: CanaryDeploymentSpec) -> list[FieldError]:
    """At most one problem for each document, and one for all of them together."""
    found, characters, values = [], 0, 0
    for path, document in _documents(spec):
        size, why = _measured(document)
        characters, values = characters + size[0], values + size[1]
        if why:
            found.append(forbidden(path, why))
    if not found and (characters > MOST_CHARACTERS or values > MOST_VALUES):
        found.append(forbidden("spec", _too_long() if characters > MOST_CHARACTERS else _too_many()))
    return found


def _documents(spec: CanaryDeploymentSpec) -> list[tuple[str, Any]]:
    virtual = spec.virtual_service
    found: list[tuple[str, Any]] = [("spec.deployment", spec.deployment), ("spec.service", spec.service)]
    for path, document in (
        ("spec.virtualService.spec", virtual.spec),
        ("spec.virtualService.trafficPolicy", virtual.traffic_policy),
    ):
        if not isinstance(document, UnsetType):
            found.append((path, document))
    if not isinstance(spec.analysis, UnsetType):
        found += [(f"spec.analysis.match[{i}]", one) for i, one in enumerate(spec.analysis.match)]
        rest = to_document(spec.analysis.replace(match=()))  # a run keeps a copy of it
        found.append(("spec.analysis", rest))
    return found


def _measured(document: Any) -> tuple[tuple[int, int], str]:
    """Characters and values, and what is too much of it. Stops as soon as it is."""
    characters = values = 0
    level = [document]
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for value in level:
            values += 1
            if isinstance(value, str):
                characters += len(value)
            elif isinstance(value, Mapping):
                characters += sum(map(len, value))
                below.extend(value.values())
            elif isinstance(value, list | tuple):
                below.extend(value)
        if characters > MOST_CHARACTERS:
            return (characters, values), _too_long()
        if values + len(below) > MOST_VALUES:
            return (characters, values), _too_many()
        if not below:
            return (characters, values), ""
        level = below
    return (characters, values), f"it is nested more than {DEEPEST} deep"


def _too_long() -> str:
    return f"its texts have more than {MOST_CHARACTERS} characters: keep long ones in a ConfigMap"


def _too_many() -> str:
    return f"it has more than {MOST_VALUES} values"
