"""The test of Mann and Whitney: whether one lot of numbers tends to be higher than another, whatever their shapes.

It looks at ranks only, so that a single outlier, which latencies always have, weighs no more than any other number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import groupby
from statistics import NormalDist

EXACT = 150
"""Up to so many pairs, and without ties, the chance is counted out; above, the normal approximation is as good."""


def higher(one: Sequence[float], other: Sequence[float]) -> float:
    """The chance (one-sided p) to see `one` this much higher than `other` if both came from the same source."""
    n, m = len(one), len(other)
    if not n or not m:
        return 1.0
    first, ties = 0.0, 0.0  # the sum of the ranks of `one`; the sum of t³ - t over all groups of equal numbers
    rank = 0
    everything = sorted([(value, 1) for value in one] + [(value, 0) for value in other])
    for _, group in groupby(everything, key=lambda pair: pair[0]):
        marks = [mark for _, mark in group]
        count = len(marks)
        first += sum(marks) * (rank + (count + 1) / 2)
        ties += count**3 - count
        rank += count
    u = first - n * (n + 1) / 2
    if not ties and n * m <= EXACT:
        ways = _ways(min(n, m), max(n, m))
        return sum(ways[round(u) :]) / sum(ways)
    spread = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)))
    if spread <= 0:
        return 1.0  # all are equal
    return 1.0 - NormalDist().cdf((u - n * m / 2 - 0.5) / math.sqrt(spread))


@functools.lru_cache(maxsize=256)
def _ways(n: int, m: int) -> tuple[int, ...]:
    """In how many orders of n and m different numbers the statistic is 0, 1, … n·m: a Gaussian binomial coefficient,
    which is the product over i = 1 … n of (1 - q^(m+i)) / (1 - q^i)."""
    size = n * m + 1
    ways = [1] + [0] * (size - 1)
    for i in range(1, n + 1):
        for at in range(size - 1, m + i - 1, -1):
            ways[at] -= ways[at - m - i]
        for at in range(i, size):
            ways[at] += ways[at - i]
    return tuple(ways)
