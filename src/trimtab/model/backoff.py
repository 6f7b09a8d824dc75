"""How long to wait before trying again: twice as long each time, up to a bound, and never all at the same moment."""

from __future__ import annotations

from typing import Protocol

MOST_DOUBLINGS = 1000  # 2.0**1024 is no float


class Chance(Protocol):
    """A `random.Random`, or the module `random`."""

    def uniform(self, a: float, b: float, /) -> float: ...


def pause(attempt: int, first: float, longest: float, chance: Chance) -> float:
    """Seconds. `attempt` counts from 0. Chance only shortens, by up to a half, so that `longest` stays a promise."""
    return min(longest, first * 2.0 ** min(attempt, MOST_DOUBLINGS)) * chance.uniform(0.5, 1.0)
