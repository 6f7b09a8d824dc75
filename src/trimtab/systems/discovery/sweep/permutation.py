"""The order of a sweep: every position once, neighbours far apart. Pure, and without memory.

The golden ratio divides the positions: each step is the number next to 0.618 of the size that has no divisor in common
with it. So the walk visits all before it comes back, and any stretch of it is spread evenly over the whole (the
three-distance theorem): no subnet and no box behind it ever gets a burst, which a random order does not promise. The
seed says where the walk begins.
"""

from __future__ import annotations

from math import gcd

_GOLDEN = (5**0.5 - 1) / 2


class Permutation:
    """Of the numbers from 0 to size - 1. The same size and seed always give the same order."""

    __slots__ = ("size", "start", "step")

    def __init__(self, size: int, seed: int) -> None:
        if size < 0:
            raise ValueError(f"a permutation of {size} positions cannot be")
        self.size = size
        self.start = seed % size if size else 0
        self.step = _step(size)

    def at(self, index: int) -> int:
        """The position that comes at `index`."""
        if not 0 <= index < self.size:
            raise IndexError(f"{index} is not between 0 and {self.size - 1}")
        return (self.start + index * self.step) % self.size


def _step(size: int) -> int:
    step = max(1, round(size * _GOLDEN))
    while gcd(step, size) > 1:
        step += 1
    return step
