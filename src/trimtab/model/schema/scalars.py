"""The checks of strings and numbers, and enum. What they accept and say is kube-openapi's, `validate/values.go`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trimtab.model.schema import finding
from trimtab.model.schema.finding import Check, Found
from trimtab.model.schema.formats import check_of
from trimtab.model.schema.gotext import number, quoted
from trimtab.model.schema.kinds import LEAST_INT64, MOST_INT64, formatted, whole
from trimtab.model.schema.patterns import BadPattern, Matcher, matcher

Document = Mapping[str, Any]


def string_checks(document: Document) -> list[Check]:
    """Length and pattern are one check, of which the first failure is told; the format is another."""
    checks: list[Check] = []
    most, least, pattern = document.get("maxLength"), document.get("minLength"), document.get("pattern")
    if most is not None or least is not None or pattern:
        checks.append(_text(most, least, pattern))
    fmt = formatted(document)
    valid = check_of(fmt) if fmt else None
    if valid is not None:

        def has_format(value: str) -> Found:
            return None if valid(value) else [finding.wrong_type(fmt, value)]

        checks.append(has_format)
    return checks


def _text(most: int | None, least: int | None, pattern: str | None) -> Check:
    matches, complaint = _pattern(pattern) if pattern else (None, "")

    def check(value: str) -> Found:
        if most is not None and len(value) > most:
            return [finding.too_long(most)]
        if least is not None and len(value) < least:
            return [finding.invalid(value, f"should be at least {least} chars long")]
        if matches is not None and not matches(value):
            return [finding.invalid(value, complaint)]
        return None

    return check


def _pattern(pattern: str) -> tuple[Matcher, str]:
    """What cannot be compiled matches nothing."""
    try:
        return matcher(pattern), f"should match '{pattern}'"
    except BadPattern as bad:
        return (lambda text: False), f"should match '{pattern}, but pattern is invalid: {bad}'"


def number_checks(document: Document) -> list[Check]:
    """Bounds of an integer are cut to integers first, because the real server does."""
    factor, least, most = document.get("multipleOf"), document.get("minimum"), document.get("maximum")
    if factor is None and least is None and most is None:
        return []
    above, below = bool(document.get("exclusiveMinimum")), bool(document.get("exclusiveMaximum"))

    def check(value: float) -> Found:
        exact = isinstance(value, int) and LEAST_INT64 <= value <= MOST_INT64
        found = []
        if factor is not None:
            found.extend(_multiple(value, _cut(factor) if exact else float(factor)))
        if least is not None:
            bound = _cut(least) if exact else least
            if value < bound or (above and value == bound):
                found.append(finding.invalid(value, f"should be greater than {'' if above else _OR}{number(bound)}"))
        if most is not None:
            bound = _cut(most) if exact else most
            if value > bound or (below and value == bound):
                found.append(finding.invalid(value, f"should be less than {'' if below else _OR}{number(bound)}"))
        return found or None

    return [check]


_OR = "or equal to "


def _cut(bound: float) -> int:
    """A bound as Go converts it to a 64-bit integer."""
    return int(bound) if LEAST_INT64 <= bound <= MOST_INT64 else LEAST_INT64


def _multiple(value: float, factor: float) -> list[finding.Finding]:
    if factor <= 0:
        return [finding.not_positive(factor)]
    if isinstance(factor, int):
        fits = value % factor == 0
    else:
        fits = whole(1 / factor * value if factor < 1 else value / factor)
    return [] if fits else [finding.invalid(value, f"should be a multiple of {number(factor)}")]


def enum_check(document: Document) -> Check | None:
    """null is in no enum, not even in one that lists it."""
    values = document.get("enum")
    if not values:
        return None
    names = [value if isinstance(value, str) else json.dumps(value, separators=(",", ":")) for value in values]
    detail = "supported values: " + ", ".join(map(quoted, names))
    words = frozenset(value for value in values if isinstance(value, str))
    others = [value for value in values if value is not None and not isinstance(value, str)]

    def check(value: Any) -> Found:
        if value in words if isinstance(value, str) else any(_same(value, other) for other in others):
            return None
        return [finding.unsupported(value, detail)]

    return check


def _same(one: Any, other: Any) -> bool:
    """Equality in JSON: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
