"""What the spec of a Job must fulfil; CronJobs hold one as a template."""

from __future__ import annotations

import re
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.names import dns_subdomain_problems, label_key_problems
from trimtab.server.builtin import gosource
from trimtab.server.builtin.job_indexes import WrongIndexes, count_indexes
from trimtab.server.builtin.pod import template_problems
from trimtab.server.builtin.problems import (
    at,
    duplicate,
    each,
    invalid,
    invalid_go,
    invalid_whole,
    not_negative,
    required,
    too_long,
    too_many,
    unsupported,
)
from trimtab.server.strategy import Document

INDEXED, NON_INDEXED = "Indexed", "NonIndexed"
MAX_PARALLELISM = MAX_FAILED = MANY_COMPLETIONS = 100_000
FEW_WHEN_MANY = 10_000
"""The most that may run or fail of a Job with many completions and a limit for each index."""
MAX_RULES = MAX_PATTERNS = 20
MAX_EXIT_CODES = 255
MAX_MANAGED_BY = 63
MAX_SUCCEEDED_INDEXES = 64 * 1024
ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS = ("In", "NotIn")
STATUSES = ("False", "True", "Unknown")
REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
           "backoffLimitPerIndex", "maxFailedIndexes")  # fmt: skip
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def job_spec_problems(spec: Document, path: str) -> list[FieldError]:
    """All but what is said of the selector, which the templates of CronJobs do not have."""
    errors = []
    for field in _COUNTS:
        errors += not_negative(f"{path}.{field}", spec.get(field))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.get("managedBy") is not None:
        errors += _managed_by(spec["managedBy"], f"{path}.managedBy")
    mode = spec.get("completionMode") or NON_INDEXED
    if mode not in (NON_INDEXED, INDEXED):
        errors.append(unsupported(f"{path}.completionMode", mode, (NON_INDEXED, INDEXED)))
    if mode == INDEXED:
        errors += _indexed(spec, path)
    elif mode == NON_INDEXED:
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                errors.append(invalid(f"{path}.{field}", spec[field], "requires indexed completion mode"))
    if spec.get("podFailurePolicy") is not None:
        errors += _failure_policy(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        errors += _success_policy(spec, f"{path}.successPolicy", indexed=mode == INDEXED)
    errors += _replacement(spec, f"{path}.podReplacementPolicy")
    errors += template_problems(spec.get("template") or {}, f"{path}.template")
    return errors + _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _managed_by(text: str, path: str) -> list[FieldError]:
    errors = []
    host, _, rest = text.partition("/")
    if not text:
        errors.append(required(path))
    elif not host or not rest:
        errors.append(invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    else:
        errors += each(path, host, dns_subdomain_problems(host))
        if not re.fullmatch(_PATH, rest):
            errors.append(invalid(path, rest, f"Invalid path (regex used for validation is '{_PATH}')"))
    if len(text.encode()) > MAX_MANAGED_BY:
        errors.append(too_long(path, MAX_MANAGED_BY))
    return errors


def _indexed(spec: Document, path: str) -> list[FieldError]:
    """How many there may be is limited, so that the lists of indexes in the status stay short."""
    errors = []
    completions, parallelism, failed = (spec.get(f) for f in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        errors.append(required(f"{path}.completions", f"when completion mode is {INDEXED}"))
    if parallelism is not None and parallelism > MAX_PARALLELISM:
        why = f"must be less than or equal to {MAX_PARALLELISM} when completion mode is {INDEXED}"
        errors.append(invalid(f"{path}.parallelism", parallelism, why))
    if failed is not None and completions is not None and failed > completions:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > MAX_FAILED:
        errors.append(invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {MAX_FAILED}"))
    if completions is None or completions <= MANY_COMPLETIONS or spec.get("backoffLimitPerIndex") is None:
        return errors
    if failed is None:
        why = f"must be specified when completions is above {MANY_COMPLETIONS}"
        errors.append(required(f"{path}.maxFailedIndexes", why))
    why = (
        f"must be less than or equal to {FEW_WHEN_MANY} when completions are above {MANY_COMPLETIONS} and used with "
        "backoff limit per index"
    )
    for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if value is not None and value > FEW_WHEN_MANY:
            errors.append(invalid(f"{path}.{field}", value, why))
    return errors


def _failure_policy(spec: Document, path: str) -> list[FieldError]:
    rules = spec["podFailurePolicy"].get("rules") or []
    errors = [too_many(f"{path}.rules", len(rules), MAX_RULES)] if len(rules) > MAX_RULES else []
    inner = at(spec, "template", "spec") or {}
    names = {c.get("name") for f in ("containers", "initContainers") for c in inner.get(f) or ()}
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        action, codes, conditions = rule.get("action") or "", rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                errors.append(invalid(f"{here}.action", action, "requires the backoffLimitPerIndex to be set"))
        else:
            errors += _one_of(action, ACTIONS, f"{here}.action")
        if codes is not None:
            errors += _exit_codes(codes, f"{here}.onExitCodes", names)
        errors += _conditions(conditions, f"{here}.onPodConditions")
        if codes is not None and conditions:
            why = "specifying both OnExitCodes and OnPodConditions is not supported"
            errors.append(invalid_whole(here, why))
        if codes is None and not conditions:
            why = "specifying one of OnExitCodes and OnPodConditions is required"
            errors.append(invalid_whole(here, why))
    return errors


def _one_of(word: str, words: tuple[str, ...], path: str) -> list[FieldError]:
    if not word:
        listed = " ".join(f'"{one}"' for one in words)
        return [required(path, f"valid values: [{listed}]")]
    return [] if word in words else [unsupported(path, word, words)]


def _exit_codes(codes: Document, path: str, names: set[Any]) -> list[FieldError]:
    operator, name, values = codes.get("operator") or "", codes.get("containerName"), codes.get("values") or []
    errors = _one_of(operator, OPERATORS, f"{path}.operator")
    if name is not None and name not in names:
        why = "must be one of the container or initContainer names in the pod template"
        errors.append(invalid(f"{path}.containerName", name, why))
    if not values:
        errors.append(
            invalid_go(f"{path}.values", gosource.numbers(codes.get("values")), "at least one value is required")
        )
    elif len(values) > MAX_EXIT_CODES:
        errors.append(too_many(f"{path}.values", len(values), MAX_EXIT_CODES))
    for index, value in enumerate(values):
        here = f"{path}.values[{index}]"
        if operator == "In" and value == 0:
            errors.append(invalid(here, value, "must not be 0 for the In operator"))
        if value in values[:index]:
            errors.append(duplicate(here, value))
    if values != sorted(values):
        errors.append(invalid_go(f"{path}.values", gosource.numbers(values), "must be ordered"))
    return errors


def _conditions(patterns: list[Document], path: str) -> list[FieldError]:
    errors = [too_many(path, len(patterns), MAX_PATTERNS)] if len(patterns) > MAX_PATTERNS else []
    for index, pattern in enumerate(patterns):
        kind = pattern.get("type") or ""
        errors += each(f"{path}[{index}].type", kind, label_key_problems(kind))
        errors += _one_of(pattern.get("status") or "", STATUSES, f"{path}[{index}].status")
    return errors


def _success_policy(spec: Document, path: str, *, indexed: bool) -> list[FieldError]:
    if not indexed:
        return [invalid_go(path, "batch.SuccessPolicy{…}", "requires indexed completion mode")]
    rules = spec["successPolicy"].get("rules") or []
    errors = []
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        errors.append(required(f"{path}.rules", why))
    if len(rules) > MAX_RULES:
        errors.append(too_many(f"{path}.rules", len(rules), MAX_RULES))
    for index, rule in enumerate(rules):
        errors += _success_rule(rule, f"{path}.rules[{index}]", spec.get("completions") or 0)
    return errors


def _success_rule(rule: Document, path: str, completions: int) -> list[FieldError]:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    errors, total = [], 0
    if count is None and indexes is None:
        errors.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    if indexes is not None:
        if len(indexes) > MAX_SUCCEEDED_INDEXES:
            errors.append(too_long(f"{path}.succeededIndexes", MAX_SUCCEEDED_INDEXES))
        try:
            total = count_indexes(indexes, completions)
        except WrongIndexes as error:
            why = f"error parsing succeededIndexes: {error}"
            errors.append(invalid(f"{path}.succeededIndexes", indexes, why))
    if count is None:
        return errors
    here, most = f"{path}.succeededCount", "must be less than or equal to"
    errors += not_negative(here, count)
    if count > completions:
        errors.append(invalid(here, count, f"{most} {completions} (the number of specified completions)"))
    if indexes is not None and count > total:
        why = f"{most} {total} (the number of indexes in the specified succeededIndexes field)"
        errors.append(invalid(here, count, why))
    return errors


def _replacement(spec: Document, path: str) -> list[FieldError]:
    policy = spec.get("podReplacementPolicy")
    allowed = REPLACEMENTS if spec.get("podFailurePolicy") is None else ("Failed",)
    return [] if policy is None or policy in allowed else [unsupported(path, policy, allowed)]


def _restart_policy(spec: Document, path: str) -> list[FieldError]:
    """Always is what a pod has when nobody says anything, and no good for something that ends."""
    policy = at(spec, "template", "spec", "restartPolicy")
    if policy in (None, "", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [unsupported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []
