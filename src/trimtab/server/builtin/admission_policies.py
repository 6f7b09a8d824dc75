"""ValidatingAdmissionPolicy and ValidatingAdmissionPolicyBinding."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.kind import Column
from trimtab.model.metadata import dns_1035_label_problems
from trimtab.model.names import dns_subdomain_problems, label_key_problems
from trimtab.server.builtin import gosource
from trimtab.server.builtin.admissionregistration import GROUP, condition_problems, one_of, rule_problems
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import (
    at,
    duplicate,
    each,
    forbidden,
    invalid,
    invalid_go,
    label_selector,
    required,
    unsupported,
)
from trimtab.server.strategy import Document

if TYPE_CHECKING:
    from trimtab.model.cel import Program
    from trimtab.server.admission.policy_expressions import Expressions, Failed

ACTIONS = ("Audit", "Deny", "Warn")
REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
MAX_ANNOTATIONS = 20
MAX_ANNOTATION = 5 * 1024
NOTHING_TO_DO = "validations or auditAnnotations must contain at least one item"
BOTH_ACTIONS = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)
_is_identifier = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch


class ValidatingAdmissionPolicy(Native):
    has_generation = True
    unconditional_update = False
    shown = (
        NAME,
        Column("Validations", ".spec.validations", "integer", description="The number of validations"),
        Column("ParamKind", ".spec.paramKind", description="The kind of objects that hold parameters"),
        AGE,
    )

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return _warnings(at(new, "status", "typeChecking", "expressionWarnings") or [])
        spec = new.get("spec") or {}
        same = old is not None and _condition_inputs(spec) == _condition_inputs(old.get("spec") or {})
        return _policy(new["metadata"].get("name", ""), spec, checks_conditions=not same)

    def row(self, obj: Document) -> Sequence[Any]:
        spec = obj.get("spec") or {}
        params = spec.get("paramKind")
        named = "<unset>" if params is None else f"{params.get('apiVersion', '')}/{params.get('kind', '')}"
        return (len(spec.get("validations") or ()), named)


class ValidatingAdmissionPolicyBinding(Native):
    has_generation = True
    unconditional_update = False
    shown = (
        NAME,
        Column("PolicyName", ".spec.policyName", description="The policy that is bound"),
        Column("ParamRef", ".spec.paramRef", description="The objects that hold parameters"),
        AGE,
    )

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        spec = new.get("spec") or {}
        name = spec.get("policyName", "")
        errors = each("spec.policyName", name, dns_subdomain_problems(name)) if name else [required("spec.policyName")]
        errors += _param_ref(spec.get("paramRef"), "spec.paramRef")
        errors += _match_resources(spec.get("matchResources"), "spec.matchResources")
        return errors + _actions(spec.get("validationActions") or [], "spec.validationActions")

    def row(self, obj: Document) -> Sequence[Any]:
        spec = obj.get("spec") or {}
        return (spec.get("policyName", ""), _shown_ref(spec.get("paramRef")))


def _shown_ref(ref: dict[str, Any] | None) -> str:
    if ref is None or not (ref.get("name") or ref.get("selector")):
        return "<unset>"
    if ref.get("name"):
        return f"{ref.get('namespace') or '*'}/{ref['name']}"
    return gosource.label_selector_text(ref["selector"])


def _policy(name: str, spec: dict[str, Any], *, checks_conditions: bool) -> list[FieldError]:
    from trimtab.server.admission.policy_expressions import Expressions

    variables = spec.get("variables") or []
    params = spec.get("paramKind")
    known = Expressions(params=params is not None, composed=bool(variables))
    errors = one_of(spec, "spec", "failurePolicy", ("Fail", "Ignore"))
    errors += [] if params is None else _param_kind(params, "spec.paramKind")
    constraints = spec.get("matchConstraints")
    if constraints is None:
        errors.append(required("spec.matchConstraints"))
    else:
        errors += _match_resources(constraints, "spec.matchConstraints")
        if not constraints.get("resourceRules"):
            errors.append(required("spec.matchConstraints.resourceRules"))
    if checks_conditions:
        bare = Expressions(params=params is not None, composed=False)
        check = _check(bare.question)
        errors += condition_problems(spec.get("matchConditions") or [], "spec.matchConditions", check)
    for index, variable in enumerate(variables):
        errors += _variable(variable, f"spec.variables[{index}]", known)
    validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
    if not validations and not annotations:
        return [*errors, *(required(f"spec.{field}", NOTHING_TO_DO) for field in ("validations", "auditAnnotations"))]
    for index, validation in enumerate(validations):
        errors += _validation(validation, f"spec.validations[{index}]", known)
    return errors + _annotations(annotations, name, known)


def _check(compiled: Callable[[str], Program | Failed]) -> Callable[[str, str], list[FieldError]]:
    """What is wrong with an expression at a path."""
    from trimtab.server.admission.policy_expressions import Failed

    def check(expression: str, path: str) -> list[FieldError]:
        made = compiled(expression)
        if not isinstance(made, Failed):
            return []
        if made.internal:
            return [FieldError(path, FieldProblem.INTERNAL, None, made.reason)]
        return [invalid(path, expression, made.reason)]

    return check


def _param_kind(params: dict[str, Any], path: str) -> list[FieldError]:
    errors = []
    api_version, name = params.get("apiVersion", ""), params.get("kind", "")
    where = f"{path}.apiVersion"
    group, _, version = api_version.rpartition("/")
    if not api_version:
        errors.append(required(where))
    elif api_version.count("/") > 1:
        errors.append(invalid(where, api_version, f"unexpected GroupVersion string: {api_version}"))
    else:
        if group and (problems := dns_subdomain_problems(group)):
            errors.append(invalid(where, group, ",".join(problems)))
        if not version:
            errors.append(invalid(where, api_version, "version must be specified"))
        elif problems := dns_1035_label_problems(version):
            errors.append(invalid(where, version, ",".join(problems)))
    if not name:
        errors.append(required(f"{path}.kind"))
    elif problems := dns_1035_label_problems(name.lower()):
        why = "may have mixed case, but should otherwise match: "
        errors.append(invalid(f"{path}.kind", name, why + ",".join(problems)))
    return errors


def _match_resources(match: dict[str, Any] | None, path: str) -> list[FieldError]:
    if match is None:
        return []
    errors = one_of(match, path, "matchPolicy", ("Equivalent", "Exact"))
    for field in ("namespaceSelector", "objectSelector"):
        errors += label_selector(match.get(field), f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(field) or []):
            errors += _named_rule(rule, f"{path}.{field}[{index}]")
    return errors


def _named_rule(rule: dict[str, Any], path: str) -> list[FieldError]:
    errors = []
    seen = set()
    for index, name in enumerate(rule.get("resourceNames") or []):
        where = f"{path}.resourceNames[{index}]"
        errors += each(where, name, _segment_problems(name))
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    return errors + rule_problems(rule, path)


def _segment_problems(name: str) -> list[str]:
    """What a name that is a segment of a path may not be."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


def _variable(variable: dict[str, Any], path: str, known: Expressions) -> list[FieldError]:
    errors = []
    name, expression = variable.get("name", ""), variable.get("expression", "")
    if not name.strip():
        errors.append(required(f"{path}.name", "name is not specified"))
    elif not _is_identifier(name) or name in _reserved():
        errors.append(invalid(f"{path}.name", name, "name is not a valid CEL identifier"))
    if not expression.strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    else:
        errors += _check(lambda text: known.compose(name, text))(expression, f"{path}.expression")
    return errors


def _reserved() -> frozenset[str]:
    from trimtab.model.cel.types import RESERVED

    return RESERVED


def _validation(validation: dict[str, Any], path: str, known: Expressions) -> list[FieldError]:
    expression, message = validation.get("expression", ""), validation.get("message") or ""
    told = validation.get("messageExpression") or ""
    if not expression.strip():
        errors = [required(f"{path}.expression", "expression is not specified")]
    else:
        errors = _check(known.question)(expression, f"{path}.expression")
    if told and not told.strip():
        errors.append(invalid(f"{path}.messageExpression", told, "must be non-empty if specified"))
    elif told:
        errors += _check(known.message)(told, f"{path}.messageExpression")
    if message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "message must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        errors.append(invalid(f"{path}.message", message, "message must not contain line breaks"))
    return errors + one_of(validation, path, "reason", REASONS)


def _annotations(annotations: list[dict[str, Any]], policy: str, known: Expressions) -> list[FieldError]:
    errors = []
    path = "spec.auditAnnotations"
    if len(annotations) > MAX_ANNOTATIONS:
        why = f"must not have more than {MAX_ANNOTATIONS} auditAnnotations"
        errors.append(invalid_go(path, "[]admissionregistration.AuditAnnotation{…}", why))
    seen = set()
    for index, annotation in enumerate(annotations):
        where = f"{path}[{index}]"
        key, value = annotation.get("key", ""), annotation.get("valueExpression", "")
        if policy:
            errors += each(f"{where}.key", f"{policy}/{key}", label_key_problems(f"{policy}/{key}"))
        else:
            errors.append(invalid(f"{where}.key", key, "requires metadata.name be non-empty"))
        if not value.strip():
            errors.append(required(f"{where}.valueExpression", "valueExpression is not specified"))
        elif len(value.strip().encode()) > MAX_ANNOTATION:
            why = f"must not exceed {MAX_ANNOTATION} bytes in length"
            errors.append(required(f"{where}.valueExpression", why))
        else:
            check = _check(lambda text: known.annotation(text.strip()))
            errors += check(value, f"{where}.valueExpression")
        if key in seen:
            errors.append(duplicate(f"{where}.key", key))
        seen.add(key)
    return errors


def _param_ref(ref: dict[str, Any] | None, path: str) -> list[FieldError]:
    if ref is None:
        return []
    name, selector = ref.get("name") or "", ref.get("selector")
    errors = each(f"{path}.name", name, _segment_problems(name)) if name else []
    if name and selector is not None:
        errors.append(forbidden(f"{path}.name", "name and selector are mutually exclusive"))
    if selector is not None:
        errors += label_selector(selector, f"{path}.selector")
        if name:
            errors.append(forbidden(f"{path}.selector", "name and selector are mutually exclusive"))
    elif not name:
        errors.append(required(path, "one of name or selector must be specified"))
    action = ref.get("parameterNotFoundAction")
    if not action:
        errors.append(required(f"{path}.parameterNotFoundAction"))
    elif action not in ("Deny", "Allow"):
        errors.append(unsupported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow")))
    return errors


def _actions(actions: list[str], path: str) -> list[FieldError]:
    errors = []
    seen = set()
    for index, action in enumerate(actions):
        if action not in ACTIONS:
            errors.append(unsupported(f"{path}[{index}]", action, ACTIONS))
        if action in seen:
            errors.append(duplicate(f"{path}[{index}]", action))
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        shown = gosource.strings(actions, "admissionregistration.ValidationAction")
        errors.append(invalid_go(path, shown, BOTH_ACTIONS))
    if not seen:
        errors.append(required(path, "at least one validation action is required"))
    return errors


def _condition_inputs(spec: dict[str, Any]) -> tuple[Any, ...]:
    """What decides whether conditions are sound: those that an update leaves as they are stay valid."""
    return (spec.get("matchConditions") or [], spec.get("paramKind"))


def _warnings(warnings: list[dict[str, Any]]) -> list[FieldError]:
    errors = []
    for index, warning in enumerate(warnings):
        path = f"status.typeChecking.expressionWarnings[{index}]"
        errors += [
            required(f"{path}.{field}") for field in ("warning", "fieldRef") if not warning.get(field, "").strip()
        ]
    return errors


_POLICY = "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy"
STRATEGIES = (
    ValidatingAdmissionPolicy(
        kind(
            _POLICY,
            "validatingadmissionpolicies",
            group=GROUP,
            namespaced=False,
            categories=("api-extensions",),
            status=True,
        )
    ),
    ValidatingAdmissionPolicyBinding(
        kind(
            f"{_POLICY}Binding",
            "validatingadmissionpolicybindings",
            group=GROUP,
            namespaced=False,
            categories=("api-extensions",),
        )
    ),
)
