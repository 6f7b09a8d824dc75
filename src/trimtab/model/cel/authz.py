"""Kubernetes' `authz` library: `authorizer.group('apps').resource('deployments').check('create').allowed()`.

Whoever evaluates binds an `Authorizer` with the question it can ask; schema rules have none, so there the name is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.model.cel.errors import EvaluationError, no_such_overload
from trimtab.model.cel.strings import texts
from trimtab.model.cel.values import Function, Opaque


class Attributes(msgspec.Struct, frozen=True):
    """What may be asked of an authorizer: a path, or a resource. `account` is a service account to ask for instead."""

    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    account: tuple[str, str] | None = None


class Decision(Opaque):
    __slots__ = ("allowed", "error", "reason")
    type_name = "kubernetes.authorization.Decision"

    def __init__(self, allowed: bool, reason: str = "", error: str = "") -> None:
        self.allowed = allowed
        self.reason = reason
        self.error = error

    def equals(self, other: Any) -> bool:
        return self is other


Decide = Callable[[str, Attributes], Decision]  # a verb and what it is for


class Check(Opaque):
    """An authorizer, or a question that is not yet complete."""

    __slots__ = ("attributes", "decide", "type_name")

    def __init__(self, decide: Decide, stage: str, attributes: Attributes) -> None:
        self.decide = decide
        self.type_name = f"kubernetes.authorization.{stage}"
        self.attributes = attributes

    def equals(self, other: Any) -> bool:
        return bool(self.type_name == other.type_name and self.attributes == other.attributes)


def authorizer(decide: Decide) -> Check:
    """The value of the variable `authorizer`."""
    return Check(decide, "Authorizer", Attributes())


def resource_check(decide: Decide, attributes: Attributes) -> Check:
    """The value of the variable `authorizer.requestResource`."""
    return Check(decide, "ResourceCheck", attributes)


def _step(before: str, after: str, field: str, required: bool = False) -> Function:
    def step(check: Any, value: Any) -> Check:
        texts(value)
        if type(check) is not Check or not check.type_name.endswith(f".{before}"):
            raise no_such_overload()
        if required and not value.strip():
            raise EvaluationError(f"{field} must not be empty")
        return Check(check.decide, after, msgspec.structs.replace(check.attributes, **{field: value}))

    return step


def _service_account(check: Any, namespace: Any, name: Any) -> Check:
    texts(namespace, name)
    if type(check) is not Check:
        raise no_such_overload()
    if re.fullmatch(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", name) is None:
        raise EvaluationError("Invalid service account name")
    if re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", namespace) is None:
        raise EvaluationError("Invalid service account namespace")
    account = (namespace, name)
    return Check(check.decide, "Authorizer", msgspec.structs.replace(check.attributes, account=account))


def _check(check: Any, verb: Any) -> Decision:
    texts(verb)
    if type(check) is not Check or not check.type_name.endswith((".PathCheck", ".ResourceCheck")):
        raise no_such_overload()
    return check.decide(verb, check.attributes)


def _of(value: Any) -> Decision:
    if type(value) is Decision:
        return value
    raise no_such_overload()


FUNCTIONS: dict[str, Function] = {
    ".path": _step("Authorizer", "PathCheck", "path", required=True),
    ".group": _step("Authorizer", "GroupCheck", "group"),
    ".serviceAccount": _service_account,
    ".resource": _step("GroupCheck", "ResourceCheck", "resource", required=True),
    ".subresource": _step("ResourceCheck", "ResourceCheck", "subresource"),
    ".namespace": _step("ResourceCheck", "ResourceCheck", "namespace"),
    ".name": _step("ResourceCheck", "ResourceCheck", "name"),
    ".fieldSelector": _step("ResourceCheck", "ResourceCheck", "field_selector"),
    ".labelSelector": _step("ResourceCheck", "ResourceCheck", "label_selector"),
    ".check": _check,
    ".allowed": lambda decision: _of(decision).allowed,
    ".reason": lambda decision: _of(decision).reason,
    ".errored": lambda decision: bool(_of(decision).error),
    ".error": lambda decision: _of(decision).error,
}
