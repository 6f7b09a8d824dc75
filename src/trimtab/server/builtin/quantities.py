"""Amounts of resources in pods: written as Go writes them, and checked."""

from __future__ import annotations

import functools
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.names import label_key_problems
from trimtab.model.quantity import Quantity
from trimtab.server.builtin.problems import invalid, invalid_go

STANDARD = ("cpu", "memory", "ephemeral-storage")

_amount = functools.lru_cache(maxsize=1024)(Quantity)
"""The same few amounts come in every pod. Texts are bounded by Quantity, and those that it refuses are not kept."""
_ZERO = Quantity(0)


def canonical(value: Any) -> Any:
    """A quantity in its canonical form; what is none stays as it is, for the schema to refuse."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return _written(value if isinstance(value, str | int) else repr(value))
    except ValueError:
        return value


@functools.lru_cache(maxsize=1024)
def _written(value: str | int) -> str:
    return str(Quantity(value))


def canonical_resources(resources: Any) -> None:
    if not isinstance(resources, dict):
        return
    for field in ("limits", "requests"):
        amounts = resources.get(field)
        if isinstance(amounts, dict):
            resources[field] = {name: canonical(value) for name, value in amounts.items()}


def round_up(resources: Any) -> None:
    """Nothing finer than a thousandth is kept."""
    for field in ("limits", "requests"):
        amounts = resources.get(field) if isinstance(resources, dict) else None
        if not isinstance(amounts, dict):
            continue
        for name, value in amounts.items():
            if isinstance(value, str) and value.endswith(("n", "u")):
                amounts[name] = str(Quantity.of(_amount(value).milli_value * 1_000_000))


def resource_name_problems(name: str, path: str) -> list[FieldError]:
    """What a resource that containers use must be called."""
    errors = [invalid_go(path, name, problem) for problem in label_key_problems(name)]
    if "/" not in name and name not in STANDARD and not name.startswith("hugepages-"):
        errors.append(invalid_go(path, name, "must be a standard resource type or fully qualified"))
        errors.append(invalid_go(path, name, "must be a standard resource for containers"))
    return errors


def resource_problems(resources: dict[str, Any], path: str) -> list[FieldError]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors = []
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            where = f"{path}.{field}[{name}]"
            if name not in STANDARD:
                errors += resource_name_problems(name, where)
            if _amount(value) < _ZERO:
                errors.append(invalid(where, str(value), "must be greater than or equal to 0"))
            limit = limits.get(name)
            if field == "requests" and limit is not None and _amount(value) > _amount(limit):
                why = f"must be less than or equal to {name} limit of {limit}"
                errors.append(invalid(f"{path}.requests", str(value), why))
    return errors
