"""Pauses double up to a bound, and chance only shortens them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.model.backoff import pause


class Luckless(Random):
    """Always draws the longest."""

    def random(self) -> float:
        return 1.0


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(0, 0.1), (1, 0.2), (2, 0.4), (3, 0.8), (6, 6.4), (7, 10.0), (8, 10.0), (10**6, 10.0)]
)
def test_the_longest_pause_doubles_up_to_the_bound(attempt: int, seconds: float) -> None:
    assert pause(attempt, 0.1, 10.0, Luckless()) == pytest.approx(seconds)


@given(
    attempt=st.integers(0, 10**6),
    first=st.floats(0.001, 1e6),
    longest=st.floats(0.001, 1e6),
    seed=st.integers(0, 1000),
)
def test_a_pause_is_never_above_the_longest_nor_below_half_of_its_length(
    attempt: int, first: float, longest: float, seed: int
) -> None:
    drawn = pause(attempt, first, longest, Random(seed))
    assert min(first, longest) / 2 <= drawn <= longest


def test_two_who_failed_together_do_not_return_together() -> None:
    assert pause(3, 0.1, 10.0, Random(1)) != pause(3, 0.1, 10.0, Random(2))
