"""ResourceQuota."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.names import label_key_problems
from trimtab.model.quantity import Quantity
from trimtab.server.builtin import gosource
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import at, invalid, invalid_go, required
from trimtab.server.builtin.quantities import canonical
from trimtab.server.strategy import Document

COMPUTED = frozenset({"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
WHOLE = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
STANDARD = (
    COMPUTED | WHOLE | {f"{what}ephemeral-storage" for what in ("", "requests.", "limits.")} | {"requests.storage"}
)
SCOPES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity")
CONFLICTING = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
EXISTS_ONLY = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


class ResourceQuota(Native):
    returns_deleted = True
    shown = (
        NAME,
        AGE,
        Column("Request", ".status.used", description="What is used of what may be requested"),
        Column("Limit", ".status.used", description="What is used of what limits may be"),
    )

    def complete(self, obj: Document) -> None:
        for path in (("spec", "hard"), ("status", "hard"), ("status", "used")):
            amounts = at(obj, *path)
            if amounts == {}:
                del obj[path[0]][path[1]]
            elif isinstance(amounts, dict):
                obj[path[0]][path[1]] = {name: _rounded(canonical(value)) for name, value in amounts.items()}

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            status = new.get("status") or {}
            return [
                *_amounts(status.get("hard") or {}, "status.hard"),
                *_amounts(status.get("used") or {}, "status.used"),
            ]
        spec = new.get("spec") or {}
        hard = spec.get("hard") or {}
        errors = _amounts(hard, "spec.hard")
        errors += _scopes(spec.get("scopes") or [], hard)
        errors += _selector((spec.get("scopeSelector") or {}).get("matchExpressions") or [], spec, hard)
        if old is not None and set(spec.get("scopes") or ()) != set(at(old, "spec", "scopes") or ()):
            errors.append(invalid_go("spec.scopes", _shown(spec.get("scopes") or []), "field is immutable"))
        return errors

    def cells(self, obj: Document) -> list[Any] | None:
        metadata, status = obj["metadata"], obj.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        columns: dict[bool, list[str]] = {True: [], False: []}
        for name in sorted(hard):
            columns[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
        age = self.age(metadata.get("creationTimestamp"))
        return [metadata.get("name", ""), age, ", ".join(columns[False]), ", ".join(columns[True])]


def is_standard(name: str) -> bool:
    return name in STANDARD or name.startswith(("hugepages-", "requests.hugepages-"))


def _rounded(value: Any) -> Any:
    """Nothing finer than a thousandth is kept."""
    if isinstance(value, str) and value.endswith(("n", "u")):
        return str(Quantity.of(Quantity(value).milli_value * 1_000_000))
    return value


def _amounts(amounts: dict[str, Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, value in sorted(amounts.items()):
        where = f"{path}[{name}]"
        problems = label_key_problems(name)
        errors += (invalid_go(where, name, problem) for problem in problems)
        if "/" not in name and not is_standard(name):
            if not problems:
                errors.append(invalid_go(where, name, "must be a standard resource type or fully qualified"))
            errors.append(invalid_go(where, name, "must be a standard resource for quota"))
        amount = Quantity(value)
        if amount.nanos < 0:
            errors.append(invalid(where, str(amount), "must be greater than or equal to 0"))
        if (name in WHOLE or _is_extended(name)) and amount.milli_value % 1000:
            errors.append(invalid_go(where, gosource.quantity(str(amount)), "must be an integer"))
    return errors


def _is_extended(name: str) -> bool:
    """What devices of a node offer."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and not name.startswith("requests.") and not domain.endswith("kubernetes.io")


def _scopes(scopes: list[str], hard: dict[str, Any]) -> list[FieldError]:
    errors = []
    for scope in scopes:
        if scope not in SCOPES:
            errors.append(invalid_go("spec.scopes", _shown(scopes), "unsupported scope"))
        errors += (
            invalid_go("spec.scopes", _shown(scopes), "unsupported scope applied to resource")
            for name in sorted(hard)
            if is_standard(name) and not _is_scoped(scope, name)
        )
    if any(pair <= set(scopes) for pair in CONFLICTING):
        errors.append(invalid_go("spec.scopes", _shown(scopes), "conflicting scopes"))
    return errors


def _is_scoped(scope: str, name: str) -> bool:
    if scope not in SCOPES:
        return True
    return name == "pods" or (scope != "BestEffort" and name in COMPUTED)


def _selector(requirements: list[dict[str, Any]], spec: dict[str, Any], hard: dict[str, Any]) -> list[FieldError]:
    errors = []
    path = "spec.scopeSelector.matchExpressions"
    for one in requirements:
        scope, operator, values = one.get("scopeName", ""), one.get("operator", ""), one.get("values") or []
        if scope not in SCOPES:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        errors += (
            invalid_go(path, "core.ScopeSelector{…}", "unsupported scope applied to resource")
            for name in sorted(hard)
            if is_standard(name) and not _is_scoped(scope, name)
        )
        if scope in SCOPES and scope != "PriorityClass" and operator != "Exists":
            errors.append(invalid(f"{path}.operator", operator, EXISTS_ONLY))
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(f"{path}.values", why))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid_go(f"{path}.values", gosource.strings(values), why))
        else:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    names = {one.get("scopeName") for one in requirements}
    if any(pair <= names for pair in CONFLICTING):
        errors.append(invalid_go(path, _shown(spec.get("scopes") or []), "conflicting scopes"))
    return errors


def _shown(scopes: list[str]) -> str:
    return gosource.strings(scopes, "core.ResourceQuotaScope")


STRATEGIES = (ResourceQuota(kind("io.k8s.api.core.v1.ResourceQuota", "resourcequotas", short=("quota",), status=True)),)
