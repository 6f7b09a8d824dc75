"""Role-based access control: an index of roles and bindings that answers synchronously.

Flow: the server feeds every Role, ClusterRole and binding through `upsert` and `remove`; `authorize` asks.

Guarantees: an answer is by the documents fed so far. Access is only granted by a rule; `system:masters` may do all.

Hot: a question asked before is one look-up. What is kept are verdicts without the object's name (so that they are few),
and all are dropped whenever a role or binding changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from trimtab.model.errors import StatusError, forbidden
from trimtab.server.auth.identity import MASTERS, User, service_account_name
from trimtab.server.auth.rules import Rule, rules_of
from trimtab.server.auth.wording import quoted

GROUP = "rbac.authorization.k8s.io"
MAX_VERDICTS = 20_000


class Attributes(msgspec.Struct, frozen=True, gc=False):
    """What someone wants to do. `path` is given, and the rest empty, for what is not a resource (`/healthz`)."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""


class RoleRef(NamedTuple):
    kind: str
    name: str


class Binding(NamedTuple):
    """A RoleBinding, or a ClusterRoleBinding when its namespace is empty."""

    namespace: str
    name: str
    role: RoleRef
    subjects: tuple[tuple[str, str], ...]  # ("User", name) or ("Group", name)
    shown: tuple[str, ...]  # the same subjects as reasons print them


class _Verdict(NamedTuple):
    for_any: Decision | None
    for_names: dict[str, Decision]
    otherwise: Decision


_ALLOWED = Decision(True)


class Authorizer:
    """The roles and bindings of the server, and what they allow."""

    def __init__(self) -> None:
        self._roles: dict[tuple[str, str], tuple[Rule, ...]] = {}  # namespace "" is a ClusterRole
        self._bindings: dict[tuple[str, str], Binding] = {}
        self._by_subject: dict[tuple[str, str, str], dict[tuple[str, str], Binding]] = {}
        self._verdicts: dict[tuple[Any, ...], _Verdict] = {}

    def authorize(self, attributes: Attributes) -> Decision:
        """Whether it is allowed, and why; the reason of a denial is usually empty."""
        user = attributes.user
        if MASTERS in user.groups:
            return _ALLOWED
        key = (
            user.name,
            user.groups,
            attributes.verb,
            attributes.group,
            attributes.resource,
            attributes.subresource,
            attributes.namespace,
            attributes.path,
        )
        verdict = self._verdicts.get(key)
        if verdict is None:
            if len(self._verdicts) >= MAX_VERDICTS:
                self._verdicts.clear()
            verdict = self._verdicts[key] = self._judge(attributes)
        if verdict.for_any is not None:
            return verdict.for_any
        return verdict.for_names.get(attributes.name, verdict.otherwise)

    def upsert(self, resource: str, document: Mapping[str, Any]) -> None:
        """A role or binding was written. `resource` is its plural, with or without the group."""
        metadata = document["metadata"]
        key = (metadata.get("namespace") or "", metadata["name"])
        plural = resource.partition(".")[0]
        if plural in ("roles", "clusterroles"):
            self._roles[key] = rules_of(document)
        elif plural in ("rolebindings", "clusterrolebindings"):
            self._unbind(key)
            self._bind(key, binding_of(document))
        else:
            raise ValueError(f"{resource} is not a resource of {GROUP}")
        self._verdicts.clear()

    def remove(self, resource: str, namespace: str, name: str) -> None:
        """A role or binding was deleted."""
        if resource.partition(".")[0] in ("roles", "clusterroles"):
            self._roles.pop((namespace, name), None)
        else:
            self._unbind((namespace, name))
        self._verdicts.clear()

    def replace(self, resource: str, documents: Iterable[Mapping[str, Any]]) -> None:
        """All roles or bindings of one resource, after a list: what is not among them is gone."""
        plural = resource.partition(".")[0]
        table: Mapping[tuple[str, str], Any] = self._roles if plural in ("roles", "clusterroles") else self._bindings
        clustered = plural.startswith("cluster")
        for namespace, name in [key for key in table if (not key[0]) == clustered]:
            self.remove(plural, namespace, name)
        for document in documents:
            self.upsert(plural, document)

    def role_rules(self, role: RoleRef, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of the role that a binding in `namespace` refers to; None when there is no such role."""
        if role.kind == "ClusterRole":
            return self._roles.get(("", role.name))
        if role.kind == "Role" and namespace:
            return self._roles.get((namespace, role.name))
        return None

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """All rules that apply to a user in a namespace ("": cluster-wide), and what could not be resolved."""
        rules: list[Rule] = []
        missing: list[str] = []
        for binding, _ in self._bindings_of(user, namespace):
            found = self.role_rules(binding.role, binding.namespace)
            if found is None:
                missing.append(_missing_role(binding.role))
            else:
                rules.extend(found)
        return rules, missing

    def _judge(self, attributes: Attributes) -> _Verdict:
        names: dict[str, Decision] = {}
        missing: dict[str, None] = {}
        for binding, subject in self._bindings_of(attributes.user, attributes.namespace):
            rules = self.role_rules(binding.role, binding.namespace)
            if rules is None:
                missing[_missing_role(binding.role)] = None
                continue
            for rule in rules:
                if attributes.path:
                    matches = rule.allows_path(attributes.verb, attributes.path)
                else:
                    matches = rule.allows_resource(
                        attributes.verb, attributes.group, attributes.resource, attributes.subresource
                    )
                if not matches:
                    continue
                decision = Decision(True, f"RBAC: allowed by {_described(binding, subject)}")
                if attributes.path or not rule.resource_names:
                    return _Verdict(decision, {}, decision)
                for name in rule.resource_names:
                    names.setdefault(name, decision)
        return _Verdict(None, names, Decision(False, _unresolved(list(missing))))

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[Binding, str]]:
        """The bindings that apply, cluster-wide ones first, each once, with the first subject that fits."""
        subjects = (("User", user.name), *(("Group", group) for group in user.groups))
        for scope in ("", namespace) if namespace else ("",):
            seen: set[tuple[str, str]] = set()
            for kind, name in subjects:
                for key, binding in self._by_subject.get((scope, kind, name), {}).items():
                    if key not in seen:
                        seen.add(key)
                        yield binding, binding.shown[binding.subjects.index((kind, name))]

    def _bind(self, key: tuple[str, str], binding: Binding) -> None:
        self._bindings[key] = binding
        for kind, name in binding.subjects:
            self._by_subject.setdefault((binding.namespace, kind, name), {})[key] = binding

    def _unbind(self, key: tuple[str, str]) -> None:
        binding = self._bindings.pop(key, None)
        if binding is None:
            return
        for kind, name in binding.subjects:
            bindings = self._by_subject.get((binding.namespace, kind, name))
            if bindings is not None:
                bindings.pop(key, None)
                if not bindings:
                    del self._by_subject[binding.namespace, kind, name]


class Fixed(Authorizer):
    """All is allowed, or nothing is: what kube-apiserver calls AlwaysAllow and AlwaysDeny."""

    def __init__(self, *, allowed: bool) -> None:
        super().__init__()
        self._decision = _ALLOWED if allowed else Decision(False, "Everything is forbidden.")

    def authorize(self, attributes: Attributes) -> Decision:
        return _ALLOWED if MASTERS in attributes.user.groups else self._decision


def denial(attributes: Attributes, reason: str = "") -> StatusError:
    """The 403 of a request that was not allowed."""
    why = _sanitized(_refusal(attributes))
    if reason:
        why = f"{why}: {reason}"
    if attributes.path:
        return StatusError(403, "Forbidden", f"forbidden: {why}", {})
    return forbidden(attributes.resource, attributes.group, attributes.name, why)


def binding_of(document: Mapping[str, Any]) -> Binding:
    """What a RoleBinding or ClusterRoleBinding document says. Subjects that can never fit are left out."""
    metadata = document["metadata"]
    namespace = metadata.get("namespace") or ""
    reference = document.get("roleRef") or {}
    subjects: list[tuple[str, str]] = []
    shown: list[str] = []
    for subject in document.get("subjects") or ():
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind in ("User", "Group"):
            subjects.append((kind, name))
            shown.append(f"{kind} {quoted(name)}")
        elif kind == "ServiceAccount":
            owner = subject.get("namespace") or namespace
            if owner:
                subjects.append(("User", service_account_name(owner, name)))
                shown.append(f"{kind} {quoted(f'{name}/{owner}')}")
    role = RoleRef(reference.get("kind", ""), reference.get("name", ""))
    return Binding(namespace, metadata["name"], role, tuple(subjects), tuple(shown))


def _described(binding: Binding, subject: str) -> str:
    role = f"{binding.role.kind} {quoted(binding.role.name)}"
    if binding.namespace:
        return f"RoleBinding {quoted(f'{binding.name}/{binding.namespace}')} of {role} to {subject}"
    return f"ClusterRoleBinding {quoted(binding.name)} of {role} to {subject}"


def _missing_role(role: RoleRef) -> str:
    if role.kind not in ("Role", "ClusterRole"):
        return f"unsupported role reference kind: {quoted(role.kind)}"
    return f"{role.kind.lower()}.{GROUP} {quoted(role.name)} not found"


def _unresolved(missing: list[str]) -> str:
    if not missing:
        return ""
    return f"RBAC: {missing[0]}" if len(missing) == 1 else f"RBAC: [{', '.join(missing)}]"


def _refusal(attributes: Attributes) -> str:
    user = quoted(attributes.user.name)
    if attributes.path:
        return f"User {user} cannot {attributes.verb} path {quoted(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    what = f"User {user} cannot {attributes.verb} resource {quoted(resource)} in API group {quoted(attributes.group)}"
    if attributes.namespace:
        return f"{what} in the namespace {quoted(attributes.namespace)}"
    return f"{what} at the cluster scope"


def _sanitized(text: str) -> str:
    """Messages must not look like HTML to a browser."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
