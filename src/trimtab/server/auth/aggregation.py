"""Aggregated ClusterRoles: the rules of every role that the selectors choose, each rule once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from trimtab.model.selectors import LabelSelector


def aggregated_rules(role: Mapping[str, Any], roles: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """What `role.rules` must be, given all ClusterRoles; None when the role does not aggregate."""
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
    if not selectors:
        return None
    by_name = sorted(roles, key=lambda other: str(other["metadata"]["name"]))
    rules: dict[bytes, dict[str, Any]] = {}  # each once, however many there are
    for document in selectors:
        selector = LabelSelector.from_document(document)
        for other in by_name:
            if other["metadata"]["name"] == role["metadata"]["name"]:
                continue
            if selector.matches(other["metadata"].get("labels") or {}):
                for rule in other.get("rules") or ():
                    rules.setdefault(orjson.dumps(rule, option=orjson.OPT_SORT_KEYS), rule)
    return list(rules.values())
