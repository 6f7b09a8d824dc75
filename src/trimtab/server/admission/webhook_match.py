"""Which webhooks a write concerns. Pure; the rules of admissionregistration.k8s.io/v1.

Documents are parsed once, when a configuration changes: most writes meet no webhook, and must find that out fast.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from trimtab.model.kind import Kind
from trimtab.model.selectors import LabelSelector
from trimtab.server.admission.request import AdmissionRequest, Operation

GROUP = "admissionregistration.k8s.io"
EXEMPT = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
"""Kinds that no webhook sees: a wrong one could otherwise never be repaired."""


class Rule(NamedTuple):
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]  # resource and subresource, each maybe "*"
    scope: str

    def matches(self, operation: Operation, kind: Kind, subresource: str) -> bool:
        return (
            _has(self.operations, operation.value)
            and _has(self.groups, kind.group)
            and _has(self.versions, kind.version)
            and any(resource in ("*", kind.plural) and sub in ("*", subresource) for resource, sub in self.resources)
            and (self.scope == "*" or (self.scope == "Namespaced") == kind.namespaced)
        )


class Service(NamedTuple):
    namespace: str
    name: str
    port: int
    path: str


class Condition(NamedTuple):
    name: str
    expression: str


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook of a configuration."""

    uid: str  # configuration/webhook/index
    name: str
    configuration: str
    rules: tuple[Rule, ...]
    url: str
    service: Service | None
    ca_bundle: bytes
    ignores_failure: bool
    exact: bool
    namespaces: LabelSelector
    objects: LabelSelector
    side_effects: str
    timeout: int
    versions: tuple[str, ...]
    reinvoke: bool
    conditions: tuple[Condition, ...]

    @property
    def ca_digest(self) -> bytes:
        return hashlib.sha256(self.ca_bundle).digest()


class Invocation(NamedTuple):
    """A webhook that a write concerns, and the version of the kind that it wants to see."""

    hook: Hook
    kind: Kind


def hooks_of(configuration: Mapping[str, Any]) -> tuple[Hook, ...]:
    """The webhooks of a configuration document, in its order."""
    name = configuration["metadata"]["name"]
    webhooks = configuration.get("webhooks") or ()
    return tuple(_hook(name, index, webhook) for index, webhook in enumerate(webhooks))


def exempt(request: AdmissionRequest) -> bool:
    return request.kind.group == GROUP and request.kind.kind in EXEMPT


def seen_kind(hook: Hook, request: AdmissionRequest, equivalents: Sequence[Kind]) -> Kind | None:
    """The version in which the webhook's rules match the write: its own, else an equivalent; None when none does."""
    for rule in hook.rules:
        if rule.matches(request.operation, request.kind, request.subresource):
            return request.kind
    if hook.exact:
        return None
    for rule in hook.rules:
        for kind in equivalents:
            if rule.matches(request.operation, kind, request.subresource):
                return kind
    return None


def selects(objects: LabelSelector, new: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> bool:
    """Whether a selector chooses an object as it was or as it is to be."""
    if objects.empty:
        return True
    return any(document is not None and objects.matches(labels_of(document)) for document in (new, old))


def labels_of(document: Mapping[str, Any]) -> Mapping[str, str]:
    return (document.get("metadata") or {}).get("labels") or {}


def is_namespace(kind: Kind) -> bool:
    return kind.group == "" and kind.plural == "namespaces"


def _has(values: frozenset[str], wanted: str) -> bool:
    return wanted in values or "*" in values


def _hook(configuration: str, index: int, webhook: Mapping[str, Any]) -> Hook:
    client = webhook.get("clientConfig") or {}
    service = client.get("service")
    return Hook(
        uid=f"{configuration}/{webhook['name']}/{index}",
        name=webhook["name"],
        configuration=configuration,
        rules=tuple(map(rule_of, webhook.get("rules") or ())),
        url=client.get("url") or "",
        service=None if service is None else _service(service),
        ca_bundle=_decoded(client.get("caBundle") or ""),
        ignores_failure=webhook.get("failurePolicy") == "Ignore",
        exact=webhook.get("matchPolicy") == "Exact",
        namespaces=LabelSelector.from_document(webhook.get("namespaceSelector") or {}),
        objects=LabelSelector.from_document(webhook.get("objectSelector") or {}),
        side_effects=webhook.get("sideEffects") or "",
        timeout=min(max(webhook.get("timeoutSeconds") or 10, 1), 30),
        versions=tuple(webhook.get("admissionReviewVersions") or ()),
        reinvoke=webhook.get("reinvocationPolicy") == "IfNeeded",
        conditions=tuple(Condition(c["name"], c["expression"]) for c in webhook.get("matchConditions") or ()),
    )


def rule_of(rule: Mapping[str, Any]) -> Rule:
    """A rule of a configuration, or of a policy."""
    operations, groups, versions = (
        frozenset(rule.get(field) or ()) for field in ("operations", "apiGroups", "apiVersions")
    )
    resources = []
    for text in rule.get("resources") or ():
        resource, _, subresource = text.partition("/")
        resources.append((resource, subresource))
    return Rule(operations, groups, versions, tuple(resources), rule.get("scope") or "*")


def _service(service: Mapping[str, Any]) -> Service:
    path = service.get("path") or "/"
    return Service(service["namespace"], service["name"], service.get("port") or 443, path)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return text.encode()  # no PEM: the call fails, and says so
