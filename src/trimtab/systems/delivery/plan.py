"""The steps of a run, from its analysis. Pure.

Canary: growing weights, after one step of mirrored requests where that is wanted. A/B: all requests that match, for so
many checks. Blue/green: no requests (or copies of them) for so many checks, then all of them once.
"""

from __future__ import annotations

import enum

import msgspec
from msgspec import UNSET, UnsetType

from trimtab.systems.delivery.kinds.analysis import Analysis


class Strategy(enum.Enum):
    CANARY = "Canary"
    AB = "AB"
    BLUE_GREEN = "BlueGreen"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What the canary gets, and how many checks must pass meanwhile. `matched`: the weight is of those that match, and
    all others stay at stable."""

    weight: int
    mirror: int = 0
    matched: bool = False
    passes: int = 1

    @property
    def judged(self) -> bool:
        """Whether any request reaches the canary. Where none does, there is nothing to measure."""
        return bool(self.weight or self.mirror)


def strategy(analysis: Analysis | UnsetType) -> Strategy | None:
    """None when nothing is analysed."""
    if isinstance(analysis, UnsetType):
        return None
    if analysis.iterations is not UNSET:
        return Strategy.AB if analysis.match else Strategy.BLUE_GREEN
    if analysis.step_weight is not UNSET or analysis.step_weights is not UNSET:
        return Strategy.CANARY
    return None


def steps(analysis: Analysis | UnsetType) -> tuple[Step, ...]:
    """All of them; none when nothing is analysed."""
    way = strategy(analysis)
    if way is None or isinstance(analysis, UnsetType):
        return ()
    mirror = analysis.mirror_weight if analysis.mirror else 0
    if way is Strategy.AB:
        return (Step(weight=100, matched=True, passes=analysis.iterations or 1),)
    if way is Strategy.BLUE_GREEN:
        return (Step(weight=0, mirror=mirror, passes=analysis.iterations or 1), Step(weight=100))
    first = (Step(weight=0, mirror=mirror, passes=analysis.passes),) if mirror else ()
    return first + tuple(Step(weight=weight, passes=analysis.passes) for weight in weights(analysis))


def weights(analysis: Analysis) -> tuple[int, ...]:
    """Those that are listed, or steps up to maxWeight, which is the last one whether or not the steps meet it."""
    if not isinstance(analysis.step_weights, UnsetType):
        return analysis.step_weights
    if isinstance(analysis.step_weight, UnsetType):
        return ()
    grown = tuple(range(analysis.step_weight, analysis.max_weight, analysis.step_weight))
    return (*grown, analysis.max_weight)
