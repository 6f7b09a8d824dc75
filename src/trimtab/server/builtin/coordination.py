"""Lease."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.names import label_key_problems
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import at, each, forbidden, invalid, not_negative, unsupported
from trimtab.server.strategy import Document


class Lease(Native):
    create_on_update = True
    unconditional_update = False
    shown = (NAME, Column("Holder", ".spec.holderIdentity"), AGE)

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        spec = new.get("spec") or {}
        errors = []
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        errors += not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))
        strategy = spec.get("strategy")
        if strategy is not None and "/" in strategy:
            errors += each("spec.strategy.strategy", strategy, label_key_problems(strategy))
        elif strategy is not None and strategy != "OldestEmulationVersion":
            errors.append(unsupported("spec.strategy.strategy", strategy, ["OldestEmulationVersion"]))
        if spec.get("preferredHolder") and not strategy:
            errors.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        return (at(obj, "spec", "holderIdentity") or "",)


STRATEGIES = (Lease(kind("io.k8s.api.coordination.v1.Lease", "leases", group="coordination.k8s.io")),)
