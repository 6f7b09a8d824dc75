"""How likely it is that one share of failures is larger than another by more than a margin.

What is known of a share after so many requests is a Beta distribution. Both are looked at as angles (a share is the
sine of its angle, squared): there every Beta density is smooth, falls off like a normal one and has a width that only
the number of requests decides, so that a fixed, small rule of Gauss and Legendre integrates it. There are no random
draws: the same counts always give the same answer, to about one in a hundred thousand.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

NODES, INNER = 32, 3
REACH = 6.0
"""How many widths of a density are looked at on either side of its peak; what lies beyond is below one in a million."""


class Share(NamedTuple):
    """What is known of a share: a Beta distribution. Both numbers are at least one half."""

    failed: float
    passed: float


def exceeds(one: Share, other: Share, margin: float = 0.0) -> float:
    """The chance that `one` is larger than `other` by more than the margin."""
    if sum(one) > sum(other):  # walk along the narrower one; of the shares that passed, the same can be asked
        one, other = Share(other.passed, other.failed), Share(one.passed, one.failed)
    inner, outer = _angles(one), _angles(other)
    whole = _whole(one, inner) * _whole(other, outer)
    low = outer.low
    high = min(outer.high, math.asin(math.sqrt(max(0.0, 1.0 - margin))))  # above, nothing is larger by the margin
    if high <= low:
        return 0.0
    middle, half = (low + high) / 2, (high - low) / 2
    found, tail, reached = 0.0, 0.0, inner.high
    for node, weight in reversed(_gauss(NODES)):  # downwards, where the tail of the other only grows
        angle = middle + half * node
        at = max(inner.low, math.asin(math.sqrt(min(1.0, math.sin(angle) ** 2 + margin))))
        if at < reached:
            tail += _mass(inner, at, reached, NODES if reached == inner.high else INNER)
            reached = at
        found += weight * _density(outer, angle) * tail
    return min(1.0, max(0.0, found * half / whole))


def above(one: Share, share: float) -> float:
    """The chance that `one` is larger than a share that is known."""
    if share <= 0.0 or share >= 1.0:
        return 1.0 if share <= 0.0 else 0.0
    angles = _angles(one)
    at = min(angles.high, max(angles.low, math.asin(math.sqrt(share))))
    return min(1.0, _mass(angles, at, angles.high) / _whole(one, angles))


class _Angles(NamedTuple):
    """The density of the angle: sin^rise · cos^fall, divided by its height at the peak so that nothing overflows."""

    rise: float
    fall: float
    height: float
    low: float
    high: float


def _angles(share: Share) -> _Angles:
    rise, fall = 2 * share.failed - 1, 2 * share.passed - 1
    bend = rise + fall  # the log of the density bends at least so much everywhere
    if bend <= 0:
        return _Angles(0.0, 0.0, 0.0, 0.0, math.pi / 2)
    peak, reach = math.atan2(math.sqrt(rise), math.sqrt(fall)), REACH / math.sqrt(bend)
    height = sum(power * math.log(power / bend) / 2 for power in (rise, fall) if power > 0)
    return _Angles(rise, fall, height, max(0.0, peak - reach), min(math.pi / 2, peak + reach))


def _density(angles: _Angles, angle: float) -> float:
    rise, fall, height, _, _ = angles
    sine, cosine = math.sin(angle), math.cos(angle)
    if sine <= 0.0 or cosine <= 0.0:
        return 0.0
    return math.exp(rise * math.log(sine) + fall * math.log(cosine) - height)


def _whole(share: Share, angles: _Angles) -> float:
    """All of the density: half of the Beta function, by the height."""
    failed, passed = share
    return math.exp(math.lgamma(failed) + math.lgamma(passed) - math.lgamma(failed + passed) - angles.height) / 2


def _mass(angles: _Angles, low: float, high: float, count: int = NODES) -> float:
    if high <= low:
        return 0.0
    middle, half = (low + high) / 2, (high - low) / 2
    rise, fall, height, _, _ = angles
    exp, log, sin, cos = math.exp, math.log, math.sin, math.cos
    total = 0.0
    for node, weight in _gauss(count):  # never at the very ends, where a logarithm would fail
        angle = middle + half * node
        total += weight * exp(rise * log(sin(angle)) + fall * log(cos(angle)) - height)
    return half * total


@functools.cache
def _gauss(count: int) -> tuple[tuple[float, float], ...]:
    """The nodes, rising, and weights of Gauss and Legendre on -1…1, by Newton's method."""
    rule = []
    for index in range(count, 0, -1):
        x, slope = math.cos(math.pi * (index - 0.25) / (count + 0.5)), 0.0
        for _ in range(100):
            before, now = 1.0, x
            for degree in range(2, count + 1):
                before, now = now, ((2 * degree - 1) * x * now - (degree - 1) * before) / degree
            slope = count * (x * now - before) / (x * x - 1)
            step = now / slope
            x -= step
            if abs(step) < 1e-15:
                break
        rule.append((x, 2 / ((1 - x * x) * slope * slope)))
    return tuple(rule)
