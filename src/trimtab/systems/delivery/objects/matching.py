"""Both of two conditions: Istio's HTTPMatchRequest has no `and`, so two of them become one, where one can say it.

Conditions on different fields, headers, parameters or labels stand side by side. Two on the same one are joined where the
stricter is plain (equal ones, a prefix of a prefix or of an exact text). What can never hold is NEVER; what no single
condition can say is UNSAYABLE.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

Match = Mapping[str, Any]


class Refused(enum.Enum):
    NEVER = "never"
    UNSAYABLE = "unsayable"


NEVER, UNSAYABLE = Refused.NEVER, Refused.UNSAYABLE
_MAPS = frozenset({"headers", "queryParams", "sourceLabels", "withoutHeaders"})


def both(one: Match, other: Match) -> dict[str, Any] | Refused:
    """The condition that holds when both do. `one` gives the name."""
    joined: dict[str, Any] = dict(one)
    for field, value in other.items():
        if field == "name":
            joined.setdefault(field, value)
            continue
        if field not in joined:
            joined[field] = value
            continue
        met = _both_of(field, joined[field], value)
        if isinstance(met, Refused):
            return met
        joined[field] = met
    return joined


def all_of(ones: Iterable[Match], others: Iterable[Match]) -> tuple[list[dict[str, Any]], list[tuple[Match, Match]]]:
    """Any of the first and any of the second: the conditions, and the pairs that cannot be said. None of the first means
    that all requests are meant."""
    said: list[dict[str, Any]] = []
    unsaid: list[tuple[Match, Match]] = []
    others = list(others)
    for one in list(ones) or [{}]:
        for other in others:
            met = both(one, other)
            if met is UNSAYABLE:
                unsaid.append((one, other))
            elif isinstance(met, dict):
                said.append(met)
    return said, unsaid


def _both_of(field: str, one: Any, other: Any) -> Any:
    if one == other:
        return one
    if field in _MAPS and isinstance(one, Mapping) and isinstance(other, Mapping):
        return _both_maps(field, one, other)
    if field == "gateways":
        shared = [gateway for gateway in one if gateway in other]
        return shared or NEVER
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return _both_texts(one, other)
    return NEVER  # a port, a namespace, ignoreUriCase


def _both_maps(field: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Any:
    joined = dict(one)
    names = {name.lower(): name for name in one} if field != "sourceLabels" else {name: name for name in one}
    for name, value in other.items():
        known = names.get(name.lower() if field != "sourceLabels" else name)
        if known is None:
            joined[name] = value
        elif joined[known] != value:
            if field == "withoutHeaders":
                return UNSAYABLE  # neither of two conditions on one header
            if field == "sourceLabels":
                return NEVER
            met = _both_texts(joined[known] or {}, value or {})
            if isinstance(met, Refused):
                return met
            joined[known] = met
    return joined


def _both_texts(one: Mapping[str, Any], other: Mapping[str, Any]) -> Any:
    """Of two StringMatches. An empty one holds for all texts."""
    if not one or not other or one == other:
        return dict(one or other)
    for strict, loose in ((one, other), (other, one)):
        if "exact" in strict and "exact" in loose:
            return NEVER
        if "exact" in strict and "prefix" in loose:
            return dict(strict) if str(strict["exact"]).startswith(str(loose["prefix"])) else NEVER
        if "prefix" in strict and "prefix" in loose and str(strict["prefix"]).startswith(str(loose["prefix"])):
            return dict(strict)
    return NEVER if "prefix" in one and "prefix" in other else UNSAYABLE
