"""Weights are whole percents that sum to 100, and each is written out: Istio reads a missing one as 0."""

from __future__ import annotations

from collections.abc import Sequence


def scaled(weights: Sequence[int], total: int) -> list[int]:
    """Whole numbers in the proportions of `weights` that sum to `total`: the largest remainders are rounded up. When all
    are 0 they are equal."""
    if not weights:
        return []
    if not any(weights):
        weights = [1] * len(weights)
    whole = sum(weights)
    floors = [weight * total // whole for weight in weights]
    order = sorted(range(len(weights)), key=lambda at: (-(weights[at] * total % whole), at))
    for at in order[: total - sum(floors)]:
        floors[at] += 1
    return floors


def part(total: int, percent: int) -> int:
    """So many percent of a share, rounded half up."""
    return (total * percent + 50) // 100
