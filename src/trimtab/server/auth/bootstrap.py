"""The ClusterRoles and bindings that a new server has: those of Kubernetes that mean something here, with the same
names, labels and rules, so that installers and users find what they expect.

`autoupdate` means: at each start, missing rules and subjects are added again, unless the annotation was set to "false".
"""

from __future__ import annotations

import math
from typing import Any

from trimtab.server.auth.aggregation import aggregated_rules
from trimtab.server.auth.rbac import GROUP
from trimtab.server.auth.rules import rules_of, uncovered

Document = dict[str, Any]

_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_READ_WRITE = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_EVENTS = (("create", "patch", "update"), ("", "events.k8s.io"), ("events",))
_HEALTH = ("/healthz", "/livez", "/readyz", "/version", "/version/")

Grant = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]  # verbs, API groups, resources

_AGGREGATED: dict[str, tuple[str, ...]] = {"admin": (), "edit": ("admin",), "view": ("edit",)}
"""Each gathers the roles labelled for it, and is itself gathered by those after it."""

_ROLES: dict[str, tuple[Grant, ...]] = {
    "system:aggregate-to-admin": (
        (("create",), ("authorization.k8s.io",), ("localsubjectaccessreviews",)),
        (_READ_WRITE, (GROUP,), ("rolebindings", "roles")),
    ),
    "system:aggregate-to-edit": (
        (_READ, ("",), ("pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy")),
        (("impersonate",), ("",), ("serviceaccounts",)),
        (_WRITE, ("",), ("pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy")),
        (("create",), ("",), ("pods/eviction",)),
        (
            _WRITE,
            ("",),
            (
                "configmaps",
                "events",
                "persistentvolumeclaims",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "secrets",
                "serviceaccounts",
                "services",
                "services/proxy",
            ),
        ),
        (("create",), ("",), ("serviceaccounts/token",)),
        (
            _WRITE,
            ("apps",),
            (
                "daemonsets",
                "deployments",
                "deployments/rollback",
                "deployments/scale",
                "replicasets",
                "replicasets/scale",
                "statefulsets",
                "statefulsets/scale",
            ),
        ),
        (_WRITE, ("autoscaling",), ("horizontalpodautoscalers",)),
        (_WRITE, ("batch",), ("cronjobs", "jobs")),
        (_WRITE, ("policy",), ("poddisruptionbudgets",)),
        (_WRITE, ("networking.k8s.io",), ("ingresses", "networkpolicies")),
        (_READ_WRITE, ("coordination.k8s.io",), ("leases",)),
    ),
    "system:aggregate-to-view": (
        (
            _READ,
            ("",),
            (
                "configmaps",
                "endpoints",
                "persistentvolumeclaims",
                "persistentvolumeclaims/status",
                "pods",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "serviceaccounts",
                "services",
                "services/status",
            ),
        ),
        (
            _READ,
            ("",),
            (
                "bindings",
                "events",
                "limitranges",
                "namespaces/status",
                "pods/log",
                "pods/status",
                "replicationcontrollers/status",
                "resourcequotas",
                "resourcequotas/status",
            ),
        ),
        (_READ, ("",), ("namespaces",)),
        (_READ, ("discovery.k8s.io",), ("endpointslices",)),
        (
            _READ,
            ("apps",),
            (
                "controllerrevisions",
                "daemonsets",
                "daemonsets/status",
                "deployments",
                "deployments/scale",
                "deployments/status",
                "replicasets",
                "replicasets/scale",
                "replicasets/status",
                "statefulsets",
                "statefulsets/scale",
                "statefulsets/status",
            ),
        ),
        (_READ, ("autoscaling",), ("horizontalpodautoscalers", "horizontalpodautoscalers/status")),
        (_READ, ("batch",), ("cronjobs", "cronjobs/status", "jobs", "jobs/status")),
        (_READ, ("policy",), ("poddisruptionbudgets", "poddisruptionbudgets/status")),
        (_READ, ("networking.k8s.io",), ("ingresses", "ingresses/status", "networkpolicies")),
    ),
    "system:auth-delegator": (
        (("create",), ("authentication.k8s.io",), ("tokenreviews",)),
        (("create",), ("authorization.k8s.io",), ("subjectaccessreviews",)),
    ),
    "system:basic-user": (
        (("create",), ("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews")),
        (("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
    ),
}

_PATHS: dict[str, tuple[str, ...]] = {
    "system:discovery": (
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ),
    "system:monitoring": (
        "/healthz",
        "/healthz/*",
        "/livez",
        "/livez/*",
        "/metrics",
        "/metrics/slis",
        "/readyz",
        "/readyz/*",
    ),
    "system:public-info-viewer": _HEALTH,
    "system:service-account-issuer-discovery": (
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/",
        "/openid/v1/jwks",
        "/openid/v1/jwks/",
    ),
}

_GROUPS: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("system:masters",),
    "system:basic-user": ("system:authenticated",),
    "system:discovery": ("system:authenticated",),
    "system:monitoring": ("system:monitoring",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
    "system:service-account-issuer-discovery": ("system:serviceaccounts",),
}
"""Which groups are bound to which role, by a binding of the role's name."""

_CERTIFICATES = "system:certificates.k8s.io"
_APPROVED_SIGNERS = ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving", "legacy-unknown")
"""Signers of Kubernetes: who has such a role may approve requests for the one, once he may write approvals."""

_CONTROLLERS: dict[str, tuple[Grant, ...]] = {
    "clusterrole-aggregation-controller": (
        (("escalate", "get", "list", "patch", "update", "watch"), (GROUP,), ("clusterroles",)),
    ),
    "generic-garbage-collector": (
        (("delete", "get", "list", "patch", "update", "watch"), ("*",), ("*",)),
        _EVENTS,
    ),
    "namespace-controller": (
        (("delete", "get", "list", "watch"), ("",), ("namespaces",)),
        (("update",), ("",), ("namespaces/finalize", "namespaces/status")),
        (("delete", "deletecollection", "get", "list", "watch"), ("*",), ("*",)),
    ),
    "root-ca-cert-publisher": ((("create", "update"), ("",), ("configmaps",)), _EVENTS),
    "service-account-controller": ((("create",), ("",), ("serviceaccounts",)), _EVENTS),
}
"""The server's own controllers: each acts as the service account of its name in kube-system."""


def cluster_roles() -> list[Document]:
    """The default ClusterRoles, aggregated ones with their rules already filled in."""
    roles = [_role("cluster-admin", [_rule(("*",), ("*",), ("*",)), _paths(("*",), ("*",))])]
    for name, gatherers in _AGGREGATED.items():
        role = _role(name, [], gatherers)
        selector = {"matchLabels": {f"{GROUP}/aggregate-to-{name}": "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
        roles.append(role)
    for name, grants in _ROLES.items():
        gatherer = name.removeprefix("system:aggregate-to-")
        roles.append(_role(name, [_rule(*grant) for grant in grants], (gatherer,) if gatherer != name else ()))
    roles += [_role(name, [_paths(("get",), paths)]) for name, paths in _PATHS.items()]
    roles += [_role(f"{_CERTIFICATES}:{name}-approver", [_approves(name)]) for name in _APPROVED_SIGNERS]
    roles += [
        _role(f"system:controller:{n}", [_rule(*grant) for grant in grants]) for n, grants in _CONTROLLERS.items()
    ]
    for name in reversed(_AGGREGATED):  # view first: edit gathers it, then admin gathers edit
        role = next(role for role in roles if role["metadata"]["name"] == name)
        role["rules"] = aggregated_rules(role, roles) or []
    return roles


def cluster_role_bindings() -> list[Document]:
    """The default ClusterRoleBindings."""
    bindings = [
        _binding(name, [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups])
        for name, groups in _GROUPS.items()
    ]
    bindings += [
        _binding(f"system:controller:{name}", [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}])
        for name in _CONTROLLERS
    ]
    return bindings


def reconciled(expected: Document, existing: Document | None) -> Document | None:
    """What must be written so that a default role or binding is whole again; None when nothing.

    Rules and subjects that were added stay; an object whose autoupdate annotation is "false" is left alone. A binding
    to another role stays as it is: the reference cannot change."""
    if existing is None:
        return expected
    if (existing["metadata"].get("annotations") or {}).get(_AUTOUPDATE) == "false":
        return None
    if "roleRef" in expected:
        if existing.get("roleRef") != expected["roleRef"]:
            return None
        subjects = existing.get("subjects") or []
        missing_subjects = [subject for subject in expected["subjects"] if subject not in subjects]
        return {**existing, "subjects": [*subjects, *missing_subjects]} if missing_subjects else None
    if "aggregationRule" in expected:
        same = existing.get("aggregationRule") == expected["aggregationRule"]
        return None if same else {**existing, "aggregationRule": expected["aggregationRule"]}
    held = rules_of(existing)
    rules = existing.get("rules") or []
    missing = [rule for rule in expected["rules"] if uncovered(held, rules_of({"rules": [rule]}), most=math.inf)]
    return {**existing, "rules": [*rules, *missing]} if missing else None


def _role(name: str, rules: list[Document], gatherers: tuple[str, ...] = ()) -> Document:
    labels = {f"{GROUP}/aggregate-to-{gatherer}": "true" for gatherer in gatherers}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": _metadata(name, labels), "rules": rules}


def _binding(name: str, subjects: list[Document]) -> Document:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _metadata(name, {}),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": subjects,
    }


def _metadata(name: str, labels: dict[str, str]) -> Document:
    return {
        "name": name,
        "annotations": {_AUTOUPDATE: "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels},
    }


def _rule(verbs: tuple[str, ...], groups: tuple[str, ...], resources: tuple[str, ...]) -> Document:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


def _approves(signer: str) -> Document:
    rule = _rule(("approve",), ("certificates.k8s.io",), ("signers",))
    return {**rule, "resourceNames": [f"kubernetes.io/{signer}"]}


def _paths(verbs: tuple[str, ...], paths: tuple[str, ...]) -> Document:
    return {"nonResourceURLs": list(paths), "verbs": list(verbs)}
