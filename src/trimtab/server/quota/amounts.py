"""Arithmetic on amounts of several resources: `{"pods": 2, "limits.cpu": 500m}`. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from trimtab.model.quantity import Quantity

Amounts = Mapping[str, Quantity]
ZERO = Quantity(0)


def amounts_of(document: Any) -> dict[str, Quantity]:
    """The amounts in a document that was validated."""
    return {name: Quantity(value) for name, value in (document or {}).items()}


def written(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(amounts.items())}


def added(one: Amounts, other: Amounts) -> dict[str, Quantity]:
    return {name: one.get(name, ZERO) + other.get(name, ZERO) for name in {**one, **other}}


def largest(one: Amounts, other: Amounts) -> dict[str, Quantity]:
    return {name: max(one.get(name, ZERO), other.get(name, ZERO)) for name in {**one, **other}}


def increase(new: Amounts, old: Amounts) -> dict[str, Quantity]:
    """How much more is used; less counts as none."""
    return {name: max(amount - old.get(name, ZERO), ZERO) for name, amount in new.items()}


def only(amounts: Amounts, names: Collection[str]) -> dict[str, Quantity]:
    return {name: amount for name, amount in amounts.items() if name in names}


def listed(amounts: Amounts) -> str:
    """As refusals show them."""
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))
