"""What a system may do, as RBAC: derived from what its controllers declare, so that nobody grants more by habit.

A controller reads its own kind, patches it (finalizers) and its status; makes and removes what it owns; reads what it
watches; records events; all of that only in the namespace of its `query`, if it has one. In the system's own namespace
it holds its lease. Anything else is a `Rule` of the system. The embedded server grants exactly the documents that
`trimtab install --manage-crds` prints; without that option the system's `managed_rules` are left out.

Caveats: one with admission functions may patch its own webhook configurations, to put the certificates' authority there;
RBAC cannot narrow that to the field, so whoever takes over such a system can point its webhooks at any kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.client.protocol import AnyKind
from trimtab.model.kind import Kind
from trimtab.model.kubernetes import Event
from trimtab.model.scheme import Scheme
from trimtab.runtime.people import for_people
from trimtab.runtime.system import NAMESPACE, Rule, System

Document = dict[str, Any]

READ = ("get", "list", "watch")
KEEP = (*READ, "create", "patch", "delete")


def account(system: System) -> str:
    """Who a system is."""
    return f"system:serviceaccount:{NAMESPACE}:{system.name}"


def grants(system: System, scheme: Scheme, *, manage: bool = False, suffixes: Sequence[str] = ()) -> list[Document]:
    """The account, its roles and their bindings, and what people may do with its kinds. With `manage` the system may also
    define kinds. `suffixes` are those that the hub serves its kinds under, beside the scheme's own."""
    if manage and system.managed_rules:
        system = msgspec.structs.replace(system, rules=(*system.rules, *system.managed_rules))
    labels = {"app.kubernetes.io/part-of": "trimtab", "app.kubernetes.io/name": system.name}
    name = f"trimtab:{system.name}"
    subject = {"kind": "ServiceAccount", "name": system.name, "namespace": NAMESPACE}

    def made(kind: str, version: str, name: str, namespace: str = "", **body: Any) -> Document:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}

    def bound(kind: str, namespace: str, rules: list[Document]) -> list[Document]:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        binding = made(f"{kind}Binding", RBAC, name, namespace, roleRef=reference, subjects=[subject])
        return [made(kind, RBAC, name, namespace, rules=rules), binding]

    documents = [made("ServiceAccount", "v1", system.name, NAMESPACE)]
    by_place = rules_by_place(system, scheme)
    if by_place.get(""):
        documents += bound("ClusterRole", "", by_place.pop(""))
    by_place[NAMESPACE] = [*by_place.get(NAMESPACE, ()), *at_home(system, scheme)]
    for namespace, rules in by_place.items():
        documents += bound("Role", namespace, rules)
    if (
        system.has_webhooks
    ):  # made here, so that nobody needs the right to make Secrets: those may stand for any account
        documents.append(made("Secret", "v1", f"{system.name}-webhook-certs", NAMESPACE, type="Opaque"))
    schemes = [scheme, *map(Scheme, suffixes)]
    hub = [each.kind_of(kind.cls) for each in schemes for kind in system.hub]
    return [*documents, *for_people(name, map(scheme.kind_of, system.kinds), hub, labels)]


RBAC = "rbac.authorization.k8s.io/v1"


def places(system: System) -> tuple[str, ...]:
    """The namespaces that its controllers keep to."""
    return tuple(dict.fromkeys(cls.query.namespace for cls in system.reconciles if cls.query.namespace))


def rules_by_place(system: System, scheme: Scheme) -> dict[str, list[Document]]:
    """By namespace, with "" for everywhere: a controller that keeps to a namespace has rights only there."""
    rights: dict[str, dict[tuple[str, str], dict[str, None]]] = {}

    def grant(kind: AnyKind, verbs: tuple[str, ...], namespace: str, part: str = "") -> None:
        record = _record(kind, scheme, system)
        if record is not None and (part != "/status" or record.status):
            place = rights.setdefault(namespace if record.namespaced else "", {})
            place.setdefault((record.group, record.plural + part), {}).update(dict.fromkeys(verbs))

    for cls in system.reconciles:
        at = cls.query.namespace
        grant(cls.kind, (*READ, "patch"), at)
        grant(cls.kind, ("patch",), at, "/status")
        if cls.owns:
            grant(cls.kind, ("update",), at, "/finalizers")  # to own what blocks the owner's deletion
        for kind in cls.owns:
            grant(kind, KEEP, at)
        for watch in cls.watches:
            grant(watch.kind, READ, watch.query.namespace)
        grant(Event, ("get", "create", "patch"), at)
    rules = {place: _merged(found) for place, found in rights.items()}
    written = (rule for r in system.rules if not r.own_namespace for rule in _written(r, scheme))
    more = [*_webhooks(system), *_definitions(system, scheme), *written]
    if more:
        rules[""] = [*rules.get("", ()), *more]
    return rules


def at_home(system: System, scheme: Scheme) -> list[Document]:
    """The rules of the Role in the system's own namespace: its lease by name, and what it says itself."""
    group = ["coordination.k8s.io"]
    lease = [
        {"apiGroups": group, "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": group, "resources": ["leases"], "resourceNames": [lease_of(system)], "verbs": ["get", "patch"]},
    ]
    if system.has_webhooks:
        named = {"resourceNames": [f"{system.name}-webhook-certs"]}
        lease.append({"apiGroups": [""], "resources": ["secrets"], **named, "verbs": ["get", "patch"]})
    return [*lease, *(rule for r in system.rules if r.own_namespace for rule in _written(r, scheme))]


def _webhooks(system: System) -> list[Document]:
    """To put the certificates' authority into its own configurations."""
    kinds = {
        a.mutating: "mutatingwebhookconfigurations" if a.mutating else "validatingwebhookconfigurations"
        for a in system.admissions
    }
    if not kinds:
        return []
    names = [webhooks_of(system)]
    group = ["admissionregistration.k8s.io"]
    rules: list[Document] = [
        {"apiGroups": group, "resources": sorted(kinds.values()), "resourceNames": names, "verbs": ["get", "patch"]}
    ]
    if system.webhook_labels:  # to find them; whoever makes one grants the right to patch it, by its name
        rules.append({"apiGroups": group, "resources": ["validatingwebhookconfigurations"], "verbs": list(READ)})
    return rules


def _definitions(system: System, scheme: Scheme) -> list[Document]:
    """The same for the definitions of the kinds that it converts."""
    names = converted_by(system, scheme)
    if not names:
        return []
    resources = ["customresourcedefinitions"]
    named = {"resourceNames": list(names), "verbs": ["get", "patch"]}
    return [{"apiGroups": ["apiextensions.k8s.io"], "resources": resources, **named}]


def converted_by(system: System, scheme: Scheme) -> tuple[str, ...]:
    """The names of the definitions whose versions a system converts."""
    return tuple(dict.fromkeys(scheme.kind_of(convertor.hub).resource for convertor in system.convertors))


def webhooks_of(system: System) -> str:
    """The name of a system's webhook configurations."""
    return f"trimtab-{system.name}"


def lease_of(system: System) -> str:
    return f"trimtab-{system.name}"


def _record(kind: AnyKind, scheme: Scheme, system: System) -> Kind | None:
    if isinstance(kind, type):
        return scheme.kind_of(kind)
    found = kind if isinstance(kind, Kind) else scheme.kind(kind.api_version, kind.kind)
    if found is None and not system.rules:
        raise ValueError(f"{system.name}: what may it do with {kind}? A kind without a class needs a Rule in `rules`")
    return found


def _merged(rights: dict[tuple[str, str], dict[str, None]]) -> list[Document]:
    """One rule for all resources of a group that have the same verbs."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), verbs in rights.items():
        groups.setdefault((group, tuple(verbs)), []).append(resource)
    return [{"apiGroups": [g], "resources": sorted(names), "verbs": list(v)} for (g, v), names in groups.items()]


def _written(rule: Rule, scheme: Scheme) -> list[Document]:
    documents = []
    for kind in rule.kinds:
        if isinstance(kind, str):
            resource, _, part = kind.partition("/")
            plural, _, group = resource.partition(".")
        else:
            record, part = scheme.kind_of(kind), ""
            plural, group = record.plural, record.group
        resource = f"{plural}/{part}" if part else plural
        names = {"resourceNames": list(rule.names)} if rule.names else {}
        documents.append({"apiGroups": [group], "resources": [resource], **names, "verbs": list(rule.verbs)})
    return documents
