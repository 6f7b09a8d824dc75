"""Nobody grants what they do not hold: roles and bindings are checked before they are written.

A role may hold only rules that its writer's own rules cover, unless the writer may `escalate`; a binding may refer only
to a role whose rules its writer holds, unless the writer may `bind` it. Members of `system:masters` may do both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.model.errors import forbidden, not_found
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.auth.rbac import GROUP, Attributes, Authorizer, binding_of
from trimtab.server.auth.rules import Rule, TooMany, compacted, rules_of, uncovered
from trimtab.server.auth.wording import quoted, quoted_list

_FULL_AUTHORITY = (Rule(("*",), ("*",), ("*",)), Rule(("*",), non_resource_urls=("*",)))
_COLLECTOR_FIELDS = ("ownerReferences", "finalizers", "managedFields")


def check_escalation(
    authorizer: Authorizer,
    user: User,
    resource: str,
    new: Mapping[str, Any],
    old: Mapping[str, Any] | None = None,
    *,
    namespace: str = "",
    name: str = "",
) -> None:
    """Raises StatusError 403 when writing `new` would grant more than `user` holds, 404 when a bound role is absent.

    `resource` is the plural; `namespace` and `name` are those of the request's path (no name when creating)."""
    if MASTERS in user.groups:
        return
    plural = resource.partition(".")[0]
    if plural in ("roles", "clusterroles"):
        escalate = Attributes(user, "escalate", GROUP, "*", plural, namespace=namespace, name=name)
        if not authorizer.authorize(escalate).allowed and not _only_collector_fields(new, old):
            _check_role(authorizer, user, plural, namespace, new, old)
    elif plural in ("rolebindings", "clusterrolebindings") and not _only_collector_fields(new, old):
        _check_binding(authorizer, user, plural, namespace, new)


def _check_role(
    authorizer: Authorizer,
    user: User,
    plural: str,
    namespace: str,
    new: Mapping[str, Any],
    old: Mapping[str, Any] | None,
) -> None:
    name = new["metadata"].get("name", "")
    problem = _escalation(authorizer, user, namespace, rules_of(new))
    if problem:
        raise forbidden(plural, GROUP, name, problem)
    aggregates = _aggregates(new) or (old is not None and _aggregates(old))
    if aggregates and _escalation(authorizer, user, namespace, _FULL_AUTHORITY):
        # An aggregated role gathers any rule that others label, now or later.
        raise forbidden(plural, GROUP, name, "must have cluster-admin privileges to use the aggregationRule")


def _check_binding(authorizer: Authorizer, user: User, plural: str, namespace: str, new: Mapping[str, Any]) -> None:
    role = binding_of(new).role
    roles = {"Role": "roles", "ClusterRole": "clusterroles"}.get(role.kind)
    if roles is None:
        return  # validation refuses it
    group = (new.get("roleRef") or {}).get("apiGroup") or ""
    bind = Attributes(user, "bind", group, "*", roles, namespace=namespace, name=role.name)
    if authorizer.authorize(bind).allowed:
        return
    rules = authorizer.role_rules(role, namespace)
    if rules is None:
        raise not_found(plural, GROUP, role.name)  # the reference server, too, names the binding's resource
    problem = _escalation(authorizer, user, namespace, rules)
    if problem:
        raise forbidden(plural, GROUP, new["metadata"].get("name", ""), problem)


def _escalation(authorizer: Authorizer, user: User, namespace: str, rules: Iterable[Rule]) -> str:
    """What `user` lacks of `rules`, as the message says it; empty when nothing."""
    held, unresolved = authorizer.rules_for(user, namespace)
    try:
        missing = uncovered(held, rules)
    except TooMany:
        return (
            f"the rules are too many to be compared with those that user {quoted(user.name)} holds: grant fewer at once"
        )
    if not missing:
        return ""
    lines = sorted({rule.compact() for rule in compacted(missing)})
    message = (
        f"user {quoted(user.name)} (groups={quoted_list(user.groups)}) is attempting to grant RBAC permissions "
        "not currently held:\n" + "\n".join(lines)
    )
    if unresolved:
        errors = unresolved[0] if len(unresolved) == 1 else f"[{', '.join(dict.fromkeys(unresolved))}]"
        message += f"; resolution errors: [{errors}]"
    return message


def _aggregates(document: Mapping[str, Any]) -> bool:
    return bool((document.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collector_fields(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> bool:
    """Whether an update changes at most what garbage collection must be able to change."""
    return old is not None and _without_collector_fields(new) == _without_collector_fields(old)


def _without_collector_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {field: value for field, value in document["metadata"].items() if field not in _COLLECTOR_FIELDS}
    return {**document, "metadata": metadata}
