"""PriorityClass. Nothing schedules here: it is what pods may name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import forbidden, immutable, unsupported
from trimtab.server.strategy import Document

SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
HIGHEST = 1_000_000_000
POLICIES = ("Never", "PreemptLowerPriority")
RESERVED = "priority class names with 'system-' prefix are reserved for system use only"


class PriorityClass(Native):
    has_generation = True
    shown = (
        NAME,
        Column("Value", ".value", "integer"),
        Column("Global-Default", ".globalDefault", "boolean"),
        AGE,
        Column("PreemptionPolicy", ".preemptionPolicy"),
    )

    def bumps_generation(self, new: Document, old: Document) -> bool:
        """The real server counts the creation only."""
        return False

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        name, value, policy = new["metadata"].get("name", ""), new.get("value") or 0, new.get("preemptionPolicy")
        errors = []
        if name.startswith("system-"):
            if SYSTEM.get(name) != value or new.get("globalDefault"):
                errors.append(forbidden("metadata.name", f"{RESERVED}. error: {_why(name, value)}"))
        elif value > HIGHEST:
            errors.append(forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST}"))
        if policy not in POLICIES:
            errors.append(unsupported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never")))
        if old is not None:
            if value != (old.get("value") or 0):
                errors.append(forbidden("value", "may not be changed in an update."))
            errors += immutable("preemptionPolicy", policy, old.get("preemptionPolicy"))
        return errors

    def cells(self, obj: Document) -> list[Any] | None:
        metadata = obj["metadata"]
        age = self.age(metadata.get("creationTimestamp"))
        policy = obj.get("preemptionPolicy") or ""
        return [metadata.get("name", ""), obj.get("value") or 0, bool(obj.get("globalDefault")), age, policy]


def _why(name: str, value: int) -> str:
    if name not in SYSTEM:
        return f"{name} is not a known system priority class"
    if value != SYSTEM[name]:
        return f"value of {name} PriorityClass must be {SYSTEM[name]}"
    return f"globalDefault of {name} PriorityClass must be false"


STRATEGIES = (
    PriorityClass(
        kind(
            "io.k8s.api.scheduling.v1.PriorityClass",
            "priorityclasses",
            group="scheduling.k8s.io",
            namespaced=False,
            short=("pc",),
            singular="priorityclass",
        )
    ),
)
