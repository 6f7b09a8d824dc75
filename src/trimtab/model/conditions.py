"""Conditions: what is true of an object, since when, and why (metav1.Condition).

Conditions are values: `set_condition` returns the new tuple, and the same one when nothing changed, so that a
controller can see by identity whether there is a status to write.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trimtab.model.clock import format_time
from trimtab.model.markers import Keyed

Truth = Literal["True", "False", "Unknown"]


class Condition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One aspect of an object's current state."""

    type: Annotated[str, Meta(max_length=316, description="What this is about, in CamelCase.")]
    status: Annotated[Truth, Meta(description="Whether it is so.")]
    observed_generation: (
        Annotated[int, Meta(ge=0, description="The metadata.generation that this speaks of.")] | UnsetType
    ) = UNSET
    last_transition_time: Annotated[
        str, Meta(description="When the status last changed.", extra_json_schema={"format": "date-time"})
    ]
    reason: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1024,
            pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            description="Why, in one CamelCase word for programs.",
        ),
    ]
    message: Annotated[str, Meta(max_length=32768, description="Why, in a sentence for people. May be empty.")]


Conditions = Annotated[tuple[Condition, ...], Keyed("type"), Meta(description="What is true of this object, and why.")]
"""The type of `status.conditions`, which is `Conditions | UnsetType = UNSET`."""


def set_condition(
    conditions: tuple[Condition, ...] | UnsetType,
    kind: str,
    status: Truth | bool,
    reason: str,
    message: str = "",
    *,
    now: datetime,
    observed_generation: int | UnsetType = UNSET,
) -> tuple[Condition, ...]:
    """`conditions` with this one. The transition time moves only when the status does."""
    truth: Truth = status if isinstance(status, str) else ("True" if status else "False")
    current: tuple[Condition, ...] = () if isinstance(conditions, UnsetType) else conditions
    before = get_condition(current, kind)
    changed = before is None or before.status != truth
    condition = Condition(
        type=kind,
        status=truth,
        observed_generation=observed_generation,
        last_transition_time=format_time(now) if before is None or changed else before.last_transition_time,
        reason=reason,
        message=message,
    )
    if condition == before:
        return current
    if before is None:
        return (*current, condition)
    return tuple(condition if c.type == kind else c for c in current)


def without_condition(conditions: tuple[Condition, ...], kind: str) -> tuple[Condition, ...]:
    """`conditions` without this one; the same tuple when it was not there."""
    if get_condition(conditions, kind) is None:
        return conditions
    return tuple(c for c in conditions if c.type != kind)


def get_condition(conditions: Sequence[Condition] | UnsetType, kind: str) -> Condition | None:
    """The condition of this type; None when nobody has set it."""
    if isinstance(conditions, UnsetType):
        return None
    return next((c for c in conditions if c.type == kind), None)


def is_true(conditions: Sequence[Condition] | UnsetType, kind: str) -> bool:
    """Whether it is there and True; Unknown is not."""
    condition = get_condition(conditions, kind)
    return condition is not None and condition.status == "True"


def is_false(conditions: Sequence[Condition] | UnsetType, kind: str) -> bool:
    """Whether it is there and False; Unknown is not."""
    condition = get_condition(conditions, kind)
    return condition is not None and condition.status == "False"
