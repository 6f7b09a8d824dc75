"""anyOf, oneOf, allOf and not: which branch's complaints to show.

The real server shows those of the branch that matched most, so `score` counts as kube-openapi's validators do.
It runs only when no branch fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.model.schema.finding import Check, Finding, Found, composite
from trimtab.model.schema.kinds import formatted, type_problem, types_of

Branch = tuple[Mapping[str, Any], Check]


def any_of(branches: Sequence[Branch]) -> Check:
    def check(value: Any) -> Found:
        failures = []
        for document, branch in branches:
            found = branch(value)
            if found is None:
                return None
            failures.append((document, found))
        return [composite("must validate at least one schema (anyOf)"), *_best(failures, value)]

    return check


def one_of(branches: Sequence[Branch]) -> Check:
    def check(value: Any) -> Found:
        fits = 0
        failures = []
        for document, branch in branches:
            found = branch(value)
            if found is None:
                fits += 1
            else:
                failures.append((document, found))
        if fits == 1:
            return None
        if fits:
            return [composite(f"must validate one and only one schema (oneOf). Found {fits} valid alternatives")]
        complaint = composite("must validate one and only one schema (oneOf). Found none valid")
        return [complaint, *_best(failures, value)]

    return check


def all_of(branches: Sequence[Branch]) -> Check:
    def check(value: Any) -> Found:
        complaints: list[Finding] = []
        failed = 0
        for _, branch in branches:
            found = branch(value)
            if found is not None:
                failed += 1
                complaints.extend(found)
        if not failed:
            return None
        none = ". None validated" if failed == len(branches) else ""
        return [*complaints, composite(f"must validate all the schemas (allOf){none}")]

    return check


def none_of(branch: Check) -> Check:
    def check(value: Any) -> Found:
        if branch(value) is None:
            return [composite("must not validate the schema (not)")]
        return None

    return check


def _best(failures: Sequence[tuple[Mapping[str, Any], list[Finding]]], value: Any) -> list[Finding]:
    return max(failures, key=lambda failure: score(failure[0], value))[1]


def score(document: Mapping[str, Any], value: Any) -> int:
    """How many checks of the real server's validators would count as matches; independent of most failures."""
    typed = bool(types_of(document)) or bool(formatted(document))
    right = type_problem(document, value) is None
    if value is None:
        return int(right)
    count = 1 + 2  # the schema itself; its combinators, which always apply and always count
    count += (1 + int(right)) if typed else 0
    count += _score_branches(document, value)
    count += 1  # enum applies to all
    if isinstance(value, str):
        count += 1 + int(bool(formatted(document)))
    elif isinstance(value, list):
        items = document.get("items")
        count += 2 + (sum(score(items, item) for item in value) if isinstance(items, Mapping) else 0)
    elif isinstance(value, dict):
        count += 1 + _score_fields(document, value)
    elif not isinstance(value, bool):
        count += 2
    return count


def _score_fields(document: Mapping[str, Any], value: dict[str, Any]) -> int:
    properties = document.get("properties") or {}
    additional = document.get("additionalProperties")
    count = 0
    for name, item in value.items():
        if name in properties:
            count += score(properties[name], item)
        elif isinstance(additional, Mapping):
            count += score(additional, item)
    return count


def _score_branches(document: Mapping[str, Any], value: Any) -> int:
    count = sum(score(branch, value) for branch in document.get("allOf") or ())
    for word in ("anyOf", "oneOf"):
        branches = document.get(word)
        if branches:
            count += max(score(branch, value) for branch in branches)
    return count
