"""Which pods a quota with scopes is for. Pure. Objects that are no pods are in no scope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model.kind import Kind
from trimtab.server.builtin.pod import qos_class
from trimtab.server.quota.usage import is_pod

Document = Mapping[str, Any]


def in_scope(quota_spec: Document, kind: Kind, document: Document) -> bool:
    """Whether an object is in all scopes of a quota; one without scopes is for everything."""
    return all(is_pod(kind) and _matches(scope, document.get("spec") or {}) for scope in scopes_of(quota_spec))


def scopes_of(quota_spec: Document) -> Iterator[Document]:
    for name in quota_spec.get("scopes") or ():
        yield {"scopeName": name, "operator": "Exists"}
    yield from (quota_spec.get("scopeSelector") or {}).get("matchExpressions") or ()


def _matches(scope: Document, spec: Document) -> bool:
    match scope.get("scopeName"):
        case "Terminating":
            return _ends(spec)
        case "NotTerminating":
            return not _ends(spec)
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case "PriorityClass":
            return _has_priority(scope, spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return any(map(_crosses, _affinity_terms(spec.get("affinity") or {})))
    return False


def _ends(spec: Document) -> bool:
    deadline = spec.get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _has_priority(scope: Document, name: str) -> bool:
    values = scope.get("values") or ()
    match scope.get("operator"):
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in values
    return name not in values


def _affinity_terms(affinity: Document) -> Iterator[Document]:
    for field in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(field) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def _crosses(term: Document) -> bool:
    return bool(term.get("namespaces")) or term.get("namespaceSelector") is not None
