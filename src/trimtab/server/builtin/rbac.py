"""Role, ClusterRole, RoleBinding, ClusterRoleBinding. Who may grant what is the authorizer's to check, not ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.metadata import path_segment_name
from trimtab.model.names import dns_subdomain_problems
from trimtab.server.builtin import gosource
from trimtab.server.builtin.native import AGE, NAME, Native, Plain, kind
from trimtab.server.builtin.problems import each, invalid, invalid_go, items, label_selector, required, unsupported
from trimtab.server.strategy import Document

GROUP = "rbac.authorization.k8s.io"
_ROLE_REF = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}


class Role(Plain):
    """Roles of both scopes."""

    create_on_update = True
    name_check = staticmethod(path_segment_name)

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        errors = []
        for index, rule in enumerate(new.get("rules") or []):
            errors += _rule(rule, f"rules[{index}]", self.kind.namespaced)
        aggregation = new.get("aggregationRule")
        if aggregation is not None:
            path = "aggregationRule.clusterRoleSelectors"
            selectors = aggregation.get("clusterRoleSelectors") or []
            if not selectors:
                why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
                errors.append(required(path, why))
            for index, selector in enumerate(selectors):
                found = label_selector(selector, f"{path}[{index}]")
                errors += found
                if any(error.path.endswith((".operator", ".values", ".key")) for error in found):
                    errors.append(invalid(f"{path}[{index}]", "null", "invalid label selector."))
        return errors


class Binding(Native):
    """Bindings of both scopes."""

    create_on_update = True
    name_check = staticmethod(path_segment_name)
    shown = (
        NAME,
        Column("Role", ".roleRef"),
        AGE,
        Column("Users", ".subjects", priority=1),
        Column("Groups", ".subjects", priority=1),
        Column("ServiceAccounts", ".subjects", priority=1),
    )

    def complete(self, obj: Document) -> None:
        ref = obj.get("roleRef")
        if isinstance(ref, dict) and not ref.get("apiGroup"):
            ref["apiGroup"] = GROUP
        for subject in items(obj, "subjects"):
            if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
                subject["apiGroup"] = GROUP

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        ref = new.get("roleRef") or {}
        errors = []
        if ref.get("apiGroup", "") != GROUP:
            errors.append(unsupported("roleRef.apiGroup", ref.get("apiGroup", ""), [GROUP]))
        kinds = ["Role", "ClusterRole"] if self.kind.namespaced else ["ClusterRole"]
        if ref.get("kind", "") not in kinds:
            errors.append(unsupported("roleRef.kind", ref.get("kind", ""), kinds))
        if not ref.get("name"):
            errors.append(required("roleRef.name"))
        else:
            errors += each("roleRef.name", ref["name"], path_segment_name(ref["name"], False))
        for index, subject in enumerate(new.get("subjects") or []):
            errors += _subject(subject, f"subjects[{index}]", self.kind.namespaced)
        if old is not None and (old.get("roleRef") or {}) != ref:
            words = (f'{go}:"{ref.get(field, "")}"' for go, field in _ROLE_REF.items())
            errors.append(invalid_go("roleRef", f"rbac.RoleRef{{{', '.join(words)}}}", "cannot change roleRef"))
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        ref = obj.get("roleRef") or {}
        return (f"{ref.get('kind', '')}/{ref.get('name', '')}",)

    def wide(self, obj: Document) -> Sequence[Any]:
        subjects = obj.get("subjects") or []
        users = [s.get("name", "") for s in subjects if s.get("kind") == "User"]
        groups = [s.get("name", "") for s in subjects if s.get("kind") == "Group"]
        accounts = [
            f"{s.get('namespace', '')}/{s.get('name', '')}" for s in subjects if s.get("kind") == "ServiceAccount"
        ]
        return (", ".join(users), ", ".join(groups), ", ".join(accounts))


def _rule(rule: dict[str, Any], path: str, namespaced: bool) -> list[FieldError]:
    errors = []
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        here = f"{path}.nonResourceURLs"
        if namespaced:
            errors.append(
                invalid_go(here, gosource.strings(urls), "namespaced rules cannot apply to non-resource URLs")
            )
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            errors.append(
                invalid_go(
                    here, gosource.strings(urls), "rules cannot apply to both regular resources and non-resource URLs"
                )
            )
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def _subject(subject: dict[str, Any], path: str, namespaced: bool) -> list[FieldError]:
    errors = []
    name, group, what = subject.get("name", ""), subject.get("apiGroup", ""), subject.get("kind", "")
    if not name:
        errors.append(required(f"{path}.name"))
    if what == "ServiceAccount":
        if name:
            errors += each(f"{path}.name", name, dns_subdomain_problems(name))
        if group:
            errors.append(unsupported(f"{path}.apiGroup", group, [""]))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif what in ("User", "Group"):
        if group != GROUP:
            errors.append(unsupported(f"{path}.apiGroup", group, [GROUP]))
    else:
        errors.append(unsupported(f"{path}.kind", what, ["ServiceAccount", "User", "Group"]))
    return errors


_RBAC = "io.k8s.api.rbac.v1."
STRATEGIES = (
    Binding(kind(_RBAC + "ClusterRoleBinding", "clusterrolebindings", group=GROUP, namespaced=False)),
    Role(kind(_RBAC + "ClusterRole", "clusterroles", group=GROUP, namespaced=False)),
    Binding(kind(_RBAC + "RoleBinding", "rolebindings", group=GROUP)),
    Role(kind(_RBAC + "Role", "roles", group=GROUP)),
)
