"""Lease."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import at, invalid, not_negative
from trimtab.server.strategy import Document


class Lease(Native):
    create_on_update = True
    unconditional_update = False
    shown = (NAME, Column("Holder", ".spec.holderIdentity"), AGE)

    def prepare(self, new: Document, old: Document | None, subresource: str) -> None:
        """Coordinated leader election is an alpha feature, which is off."""
        spec = new.get("spec")
        if isinstance(spec, dict):
            spec.pop("strategy", None)
            spec.pop("preferredHolder", None)

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        spec = new.get("spec") or {}
        errors = []
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        errors += not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        return (at(obj, "spec", "holderIdentity") or "",)


STRATEGIES = (Lease(kind("io.k8s.api.coordination.v1.Lease", "leases", group="coordination.k8s.io")),)
