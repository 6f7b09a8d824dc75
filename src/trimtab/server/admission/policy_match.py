"""Which policies and bindings a write concerns: their matchConstraints and matchResources. Pure but for the labels of a
namespace, which are asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from trimtab.model.errors import not_found
from trimtab.model.kind import Kind
from trimtab.model.selectors import LabelSelector
from trimtab.server.admission.request import AdmissionRequest, Operation
from trimtab.server.admission.webhook_match import Rule, is_namespace, labels_of, rule_of, selects

Labels = Callable[[str], Awaitable[Mapping[str, str] | None]]
"""The labels of a namespace; None when it does not exist."""


class NamedRule(NamedTuple):
    rule: Rule
    names: frozenset[str]  # empty: every name


class Criteria(NamedTuple):
    """MatchResources. Without rules every resource is meant."""

    rules: tuple[NamedRule, ...]
    excluded: tuple[NamedRule, ...]
    exact: bool
    namespaces: LabelSelector
    objects: LabelSelector

    def kind(self, request: AdmissionRequest, equivalents: Sequence[Kind]) -> Kind | None:
        """The version in which the write is meant: its own, else an equivalent; None when it is not."""
        if _matching(self.excluded, self.exact, request, equivalents) is not None:
            return None
        return _matching(self.rules, self.exact, request, equivalents) if self.rules else request.kind

    async def selects(self, request: AdmissionRequest, labels: Labels) -> bool:
        """Whether the object and its namespace are chosen. Raises StatusError when the namespace is not there."""
        return selects(self.objects, request.object, request.old) and await selects_namespace(
            self.namespaces, request, request.object, labels
        )


def criteria_of(document: Mapping[str, Any]) -> Criteria:
    return Criteria(
        rules=tuple(map(_named_rule, document.get("resourceRules") or ())),
        excluded=tuple(map(_named_rule, document.get("excludeResourceRules") or ())),
        exact=document.get("matchPolicy") == "Exact",
        namespaces=LabelSelector.from_document(document.get("namespaceSelector") or {}),
        objects=LabelSelector.from_document(document.get("objectSelector") or {}),
    )


async def selects_namespace(
    selector: LabelSelector, request: AdmissionRequest, new: Mapping[str, Any] | None, labels: Labels
) -> bool:
    """Whether a selector chooses the namespace of a write; for a namespace itself, the labels that it is to have."""
    if selector.empty:
        return True
    if is_namespace(request.kind):
        if not request.subresource and request.operation in (Operation.CREATE, Operation.UPDATE) and new:
            return selector.matches(labels_of(new))
        name = request.name
    elif request.namespace:
        name = request.namespace
    else:
        return True
    found = await labels(name)
    if found is None:
        raise not_found("namespaces", "", name)
    return selector.matches(found)


def _named_rule(document: Mapping[str, Any]) -> NamedRule:
    return NamedRule(rule_of(document), frozenset(document.get("resourceNames") or ()))


def _matching(
    rules: tuple[NamedRule, ...], exact: bool, request: AdmissionRequest, equivalents: Sequence[Kind]
) -> Kind | None:
    named = [rule for rule, names in rules if not names or request.name in names]
    for rule in named:
        if rule.matches(request.operation, request.kind, request.subresource):
            return request.kind
    if exact:
        return None
    for rule in named:
        for kind in equivalents:
            if rule.matches(request.operation, kind, request.subresource):
                return kind
    return None
