"""MutatingWebhookConfiguration and ValidatingWebhookConfiguration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.kind import Column
from trimtab.model.names import dns_subdomain_problems, label_key_problems
from trimtab.server.builtin import gosource
from trimtab.server.builtin.client_config import admission_review_versions, webhook_client
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import (
    duplicate,
    each,
    invalid,
    invalid_go,
    label_selector,
    required,
    unsupported,
)  # fmt: skip
from trimtab.server.strategy import Document

GROUP = "admissionregistration.k8s.io"
MAX_CONDITIONS = 64
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SIDE_EFFECTS = ("None", "NoneOnDryRun")


class WebhookConfiguration(Native):
    """Both kinds: they differ in reinvocationPolicy only, which only one of the schemas knows."""

    has_generation = True
    unconditional_update = False
    shown = (NAME, Column("Webhooks", ".webhooks", "integer", description="The number of webhooks"), AGE)

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        errors = []
        seen = set()
        checks_conditions = old is None or _conditions_of(new) != _conditions_of(old)
        for index, hook in enumerate(new.get("webhooks") or []):
            path = f"webhooks[{index}]"
            errors += _webhook(hook, path)
            if checks_conditions:
                errors += condition_problems(hook.get("matchConditions") or [], f"{path}.matchConditions", _expression)
            errors += admission_review_versions(
                hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions"
            )
            name = hook.get("name")
            if name and name in seen:
                errors.append(duplicate(f"{path}.name", name))
            seen.add(name)
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        return (len(obj.get("webhooks") or ()),)


def _webhook(hook: dict[str, Any], path: str) -> list[FieldError]:
    errors = _qualified(hook.get("name", ""), f"{path}.name")
    for index, rule in enumerate(hook.get("rules") or []):
        errors += rule_problems(rule, f"{path}.rules[{index}]")
    errors += one_of(hook, path, "failurePolicy", ("Fail", "Ignore"))
    errors += one_of(hook, path, "matchPolicy", ("Equivalent", "Exact"))
    if hook.get("sideEffects") is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(SIDE_EFFECTS)}"))
    errors += one_of(hook, path, "sideEffects", SIDE_EFFECTS)
    timeout = hook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        why = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", timeout, why))
    for field in ("namespaceSelector", "objectSelector"):
        errors += label_selector(hook.get(field), f"{path}.{field}")
    errors += one_of(hook, path, "reinvocationPolicy", ("IfNeeded", "Never"))
    return errors + webhook_client(hook.get("clientConfig") or {}, f"{path}.clientConfig")


def one_of(hook: dict[str, Any], path: str, field: str, allowed: tuple[str, ...]) -> list[FieldError]:
    value = hook.get(field)
    return [] if value is None or value in allowed else [unsupported(f"{path}.{field}", value, allowed)]


def _qualified(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    if problems := dns_subdomain_problems(name):
        return [invalid(path, name, ",".join(problems))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def rule_problems(rule: dict[str, Any], path: str) -> list[FieldError]:
    """What is wrong with a rule of a webhook, or of a policy."""
    operations = rule.get("operations") or []
    errors = []
    if not operations:
        errors.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        why = "if '*' is present, must not specify other operations"
        errors.append(
            invalid_go(f"{path}.operations", gosource.strings(operations, "admissionregistration.OperationType"), why)
        )
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            errors.append(unsupported(f"{path}.operations[{index}]", operation, OPERATIONS))
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field) or []
        if not values:
            errors.append(required(f"{path}.{field}"))
        if len(values) > 1 and "*" in values:
            why = f"if '*' is present, must not specify other {what}"
            errors.append(invalid_go(f"{path}.{field}", gosource.strings(values), why))
    for index, version in enumerate(rule.get("apiVersions") or []):
        if not version:
            errors.append(required(f"{path}.apiVersions[{index}]"))
    errors += _resources(rule.get("resources") or [], f"{path}.resources")
    return errors + one_of(rule, path, "scope", ("*", "Cluster", "Namespaced"))


def _resources(resources: list[str], path: str) -> list[FieldError]:
    errors = [] if resources else [required(path)]
    whole: set[str] = set()  # x of x/*
    everywhere: set[str] = set()  # x of */x
    plain = False
    for index, resource in enumerate(resources):
        where = f"{path}[{index}]"
        if not resource:
            errors.append(required(where))
            continue
        name, slash, sub = resource.partition("/")
        if not slash:
            plain = resource != "*"
            continue
        if name in whole:
            errors.append(invalid(where, resource, f"if '{name}/*' is present, must not specify {resource}"))
        if sub in everywhere:
            errors.append(invalid(where, resource, f"if '*/{sub}' is present, must not specify {resource}"))
        if sub == "*":
            whole.add(name)
        if name == "*":
            everywhere.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        why = "if '*/*' is present, must not specify other resources"
        errors.append(invalid_go(path, gosource.strings(resources), why))
    if "*" in resources and plain:
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid_go(path, gosource.strings(resources), why))
    return errors


def _conditions_of(configuration: Document) -> list[Any]:
    """Conditions that an update leaves as they are stay valid, whatever later rules say."""
    return [hook.get("matchConditions") or [] for hook in configuration.get("webhooks") or []]


def condition_problems(
    conditions: list[dict[str, Any]], path: str, check: Callable[[str, str], list[FieldError]]
) -> list[FieldError]:
    """What is wrong with matchConditions; `check` judges an expression at its path."""
    errors = []
    seen = set()
    if len(conditions) > MAX_CONDITIONS:
        why = f"must have at most {MAX_CONDITIONS} items"
        errors.append(FieldError(path, FieldProblem.TOO_MANY, len(conditions), why))
    for index, condition in enumerate(conditions):
        where = f"{path}[{index}]"
        expression = condition.get("expression", "").strip()
        errors += check(expression, f"{where}.expression") if expression else [required(f"{where}.expression")]
        name = condition.get("name", "")
        if not name:
            errors.append(required(f"{where}.name"))
        else:
            errors += each(f"{where}.name", name, label_key_problems(name))
            if name in seen:
                errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
    return errors


def _expression(expression: str, path: str) -> list[FieldError]:
    from trimtab.model.cel import CelError, WrongResult
    from trimtab.model.cel.errors import InstantiationError
    from trimtab.server.admission.webhook_expressions import compiled

    try:
        compiled(expression)
    except InstantiationError as error:
        return [FieldError(path, FieldProblem.INTERNAL, None, error.message)]
    except CelError as error:
        return [invalid(path, expression, error.message)]
    except WrongResult as error:
        return [invalid(path, expression, f"must evaluate to {error.wanted.text} but got {error.found.text}")]
    return []


STRATEGIES = tuple(
    WebhookConfiguration(
        kind(
            f"io.k8s.api.admissionregistration.v1.{name}",
            f"{name.lower()}s",
            group=GROUP,
            namespaced=False,
            categories=("api-extensions",),
        )
    )
    for name in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)
