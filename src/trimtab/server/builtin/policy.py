"""PodDisruptionBudget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import (
    at,
    at_most_all,
    int_or_percent,
    invalid_go,
    label_selector,
    not_negative,
    unsupported,
)
from trimtab.server.strategy import Document

EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class PodDisruptionBudget(Native):
    has_generation = True
    unconditional_update = False
    shown = (
        NAME,
        Column("Min Available", ".spec.minAvailable"),
        Column("Max Unavailable", ".spec.maxUnavailable"),
        Column("Allowed Disruptions", ".status.disruptionsAllowed", "integer"),
        AGE,
    )

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            errors = []
            for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
                errors += not_negative(f"status.{field}", at(new, "status", field))
            return errors
        spec = new.get("spec") or {}
        errors = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            why = "minAvailable and maxUnavailable cannot be both set"
            errors.append(invalid_go("spec", "policy.PodDisruptionBudgetSpec{…}", why))
        for field in ("minAvailable", "maxUnavailable"):
            if spec.get(field) is not None:
                path = f"spec.{field}"
                errors += int_or_percent(path, spec[field]) + at_most_all(path, spec[field])
        errors += label_selector(spec.get("selector"), "spec.selector")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in EVICTION_POLICIES:
            errors.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, EVICTION_POLICIES))
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        spec = obj.get("spec") or {}
        amounts = ("N/A" if spec.get(f) is None else str(spec[f]) for f in ("minAvailable", "maxUnavailable"))
        return (*amounts, at(obj, "status", "disruptionsAllowed") or 0)


STRATEGIES = (
    PodDisruptionBudget(
        kind(
            "io.k8s.api.policy.v1.PodDisruptionBudget",
            "poddisruptionbudgets",
            group="policy",
            short=("pdb",),
            status=True,
        )
    ),
)
