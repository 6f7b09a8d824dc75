"""Nobody reads by a policy what they may not read: who names parameters must have the right to read them.

A policy needs `get` on every object of its paramKind, a binding `get` or `list` on what its paramRef means. Members of
`system:masters` may do both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trimtab.model.errors import FieldError, FieldProblem, invalid
from trimtab.server.admission.request import AdmissionRequest
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.auth.rbac import Attributes, Authorizer
from trimtab.server.registry import Registry

if TYPE_CHECKING:
    from trimtab.server.admission.policies import Policies


def check_params(authorizer: Authorizer, registry: Registry, policies: Policies, request: AdmissionRequest) -> None:
    """Raises StatusError 422 when the writer of a policy or a binding may not read its parameters."""
    if MASTERS in request.user.groups or request.subresource or request.object is None:
        return
    spec, old = (request.object.get("spec") or {}), ((request.old or {}).get("spec") or {})
    if request.kind.kind == "ValidatingAdmissionPolicy":
        kind = spec.get("paramKind")
        if kind is None or kind == old.get("paramKind"):
            return
        group, version, resource = _resource(registry, kind)
        attributes = Attributes(request.user, "get", group, version, resource, namespace="*", name="*")
        why = (
            f'user {_shown(request.user)} must have "get" permission on all objects of the referenced paramKind '
            f"(kind={kind.get('kind', '')}, apiVersion={kind.get('apiVersion', '')})"
        )
        field = "spec.paramKind"
    elif request.kind.kind == "ValidatingAdmissionPolicyBinding":
        ref, name = spec.get("paramRef"), spec.get("policyName", "")
        if ref is None or (ref, name) == (old.get("paramRef"), old.get("policyName")):
            return
        verb = "get" if ref.get("name") else "list"
        attributes, why = _of_binding(request.user, verb, ref, name, registry, policies)
        field = "spec.paramRef"
    else:
        return
    if not authorizer.authorize(attributes).allowed:
        error = FieldError(field, FieldProblem.FORBIDDEN, None, why)
        raise invalid(request.kind.kind, request.kind.group, request.name, [error])


def _of_binding(
    user: User, verb: str, ref: Mapping[str, Any], policy: str, registry: Registry, policies: Policies
) -> tuple[Attributes, str]:
    group, version, resource = "*", "*", "*"
    everything = f'and user {_shown(user)} does not have "{verb}" permission for all groups, versions and resources'
    try:
        kind = policies.param_kind(policy)
    except LookupError:
        why = f"unable to get policy {policy} to determine minimum required permissions {everything}"
    else:
        why = f'user {_shown(user)} does not have "{verb}" permission on the object referenced by paramRef'
        if kind is not None:
            group, version, resource = _resource(registry, kind)
            if resource == "*":
                named = f"&ParamKind{{APIVersion:{kind.get('apiVersion', '')},Kind:{kind.get('kind', '')},}}"
                why = f"unable to resolve paramKind {named} to determine minimum required permissions {everything}"
    namespace, name = ref.get("namespace") or "", ref.get("name") or ""
    return Attributes(user, verb, group, version, resource, namespace=namespace, name=name), why


def _resource(registry: Registry, kind: Mapping[str, str]) -> tuple[str, str, str]:
    """The group, the version and the resource of a kind; every resource when it is not served."""
    group, _, version = kind.get("apiVersion", "").rpartition("/")
    served = registry.by_kind(kind.get("apiVersion", ""), kind.get("kind", ""))
    return group, version, "*" if served is None else served.kind.plural


def _shown(user: User) -> str:
    """As Go prints the struct behind a user."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
