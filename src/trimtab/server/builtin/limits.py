"""LimitRange."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.names import label_key_problems
from trimtab.model.quantity import Quantity
from trimtab.server.builtin import gosource
from trimtab.server.builtin.native import Plain, kind
from trimtab.server.builtin.problems import duplicate, each, forbidden, invalid, invalid_go, items, required
from trimtab.server.builtin.quantities import canonical, resource_name_problems
from trimtab.server.builtin.quotas import is_standard
from trimtab.server.strategy import Document

TYPES = ("Pod", "Container", "PersistentVolumeClaim")
AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


class LimitRange(Plain):
    def complete(self, obj: Document) -> None:
        for limit in items(obj.get("spec"), "limits"):
            for field in AMOUNTS:
                if isinstance(limit.get(field), dict):
                    limit[field] = {name: canonical(value) for name, value in limit[field].items()}
            if limit.get("type") == "Container":
                _fill(limit)
            for field in AMOUNTS:
                if limit.get(field) == {}:
                    del limit[field]

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        errors: list[FieldError] = []
        seen = set()
        for index, limit in enumerate((new.get("spec") or {}).get("limits") or []):
            path, name = f"spec.limits[{index}]", limit.get("type", "")
            errors += _type_problems(name, f"{path}.type")
            if name in seen:
                errors.append(duplicate(f"{path}.type", name))
            seen.add(name)
            errors += _names(limit, path)
            errors += _order(limit, path)
        return errors


def _fill(limit: dict[str, Any]) -> None:
    """What containers get that say nothing: the greatest limit, and as request the limit or the least."""
    most, least, default, request = (_amounts(limit.get(f)) for f in ("max", "min", "default", "defaultRequest"))
    default = limit["default"] = {**most, **default}
    limit["defaultRequest"] = {**least, **default, **request}


def _amounts(given: Any) -> dict[str, Any]:
    """Hooks run before types are known to be right."""
    return given if isinstance(given, dict) else {}


def _type_problems(name: str, path: str) -> list[FieldError]:
    problems = label_key_problems(name)
    if problems:
        return each(path, name, problems)
    if "/" not in name and name not in TYPES:
        return [invalid(path, name, "must be a standard limit type or fully qualified")]
    return []


def _names(limit: dict[str, Any], path: str) -> Iterator[FieldError]:
    of_pods = limit.get("type") in ("Pod", "Container")
    for field in AMOUNTS:
        if limit.get("type") == "Pod" and field.startswith("default"):
            if limit.get(field):
                yield forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            continue
        for name in limit.get(field) or {}:
            where = f"{path}.{field}[{name}]"
            if of_pods:
                yield from resource_name_problems(name, where)
            elif "/" not in name and name != "storage" and not is_standard(name):
                yield invalid_go(where, name, "must be a standard resource type or fully qualified")
    if limit.get("type") == "PersistentVolumeClaim" and not any(
        "storage" in (limit.get(f) or {}) for f in ("min", "max")
    ):
        why = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", why)


def _order(limit: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Least, request, limit, greatest: none may pass the next."""
    of = {field: {k: Quantity(v) for k, v in (limit.get(field) or {}).items()} for field in AMOUNTS}
    if limit.get("type") == "Pod":
        of["default"] = of["defaultRequest"] = {}
    for name in sorted({name for amounts in of.values() for name in amounts}):
        most, least, default, request, ratio = (of[field].get(name) for field in AMOUNTS)
        yield from _pair(least, most, f"{path}.min[{name}]", least, "min value", "max value")
        yield from _pair(
            least, request, f"{path}.defaultRequest[{name}]", request, "min value", "default request value"
        )
        yield from _pair(request, most, f"{path}.defaultRequest[{name}]", request, "default request value", "max value")
        where = f"{path}.defaultRequest[{name}]"
        yield from _pair(request, default, where, request, "default request value", "default limit value")
        yield from _pair(least, default, f"{path}.default[{name}]", least, "min value", "default value")
        yield from _pair(default, most, f"{path}.default[{name}]", most, "default value", "max value")
        if ratio is not None:
            yield from _ratio(ratio, least, most, f"{path}.maxLimitRequestRatio[{name}]")


def _pair(
    small: Quantity | None, great: Quantity | None, path: str, shown: Quantity | None, first: str, second: str
) -> Iterator[FieldError]:
    if small is not None and great is not None and small > great:
        why = f"{first} {small} is greater than {second} {great}"
        yield invalid_go(path, gosource.quantity(str(shown)), why)


def _ratio(ratio: Quantity, least: Quantity | None, most: Quantity | None, path: str) -> Iterator[FieldError]:
    if ratio < Quantity(1):
        yield invalid_go(path, gosource.quantity(str(ratio)), f"ratio {ratio} is less than 1")
    if least and most is not None:
        bound = most.nanos / least.nanos
        if ratio.milli_value / 1000 > bound:
            yield invalid_go(path, gosource.quantity(str(ratio)), f"ratio {ratio} is greater than max/min = {bound:f}")


STRATEGIES = (LimitRange(kind("io.k8s.api.core.v1.LimitRange", "limitranges", short=("limits",))),)
