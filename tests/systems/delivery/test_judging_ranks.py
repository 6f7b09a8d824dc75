"""The test of Mann and Whitney, beside scipy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu  # type: ignore[import-untyped]

from trimtab.systems.delivery.judging.ranks import EXACT, higher

NUMBERS = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=30)
DIFFERENT = st.lists(st.integers(-10_000, 10_000).map(float), min_size=2, max_size=24, unique=True)


@given(NUMBERS, NUMBERS)
def test_it_is_what_scipy_says_whether_or_not_numbers_are_equal(one: list[float], other: list[float]) -> None:
    if len({*one, *other}) == 1:
        assert higher(one, other) == 1.0
        return
    exact = len({*one, *other}) == len(one) + len(other) and len(one) * len(other) <= EXACT
    expected = mannwhitneyu(one, other, alternative="greater", method="exact" if exact else "asymptotic").pvalue
    assert higher(one, other) == pytest.approx(min(1.0, float(expected)), abs=1e-9)


@given(DIFFERENT, st.data())
def test_few_numbers_are_counted_out(numbers: list[float], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(numbers) - 1))
    one, other = numbers[:cut], numbers[cut:]
    expected = mannwhitneyu(one, other, alternative="greater", method="exact").pvalue
    assert higher(one, other) == pytest.approx(float(expected), abs=1e-9)


def test_four_above_four_is_one_chance_in_seventy() -> None:
    assert higher([5, 6, 7, 8], [1, 2, 3, 4]) == pytest.approx(1 / 70)


def test_numbers_that_are_all_equal_and_no_numbers_say_nothing() -> None:
    assert higher([3.0] * 9, [3.0] * 7) == 1.0
    assert higher([], [1.0]) == 1.0
