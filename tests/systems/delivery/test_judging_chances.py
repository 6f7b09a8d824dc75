"""The chance that one share exceeds another, beside scipy's distributions."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats  # type: ignore[import-untyped]

from trimtab.systems.delivery.judging.chances import Share, above, exceeds

SHARES = st.builds(
    lambda total, part, prior: Share(prior + round(total * part), 0.5 + total - round(total * part)),
    st.integers(0, 1_000_000),
    st.sampled_from([0.0, 0.0001, 0.003, 0.02, 0.3, 0.97, 1.0]),
    st.sampled_from([0.5, 1.0]),
)
MARGINS = st.sampled_from([0.0, 0.001, 0.005, 0.1])


def by_scipy(one: Share, other: Share, margin: float) -> float:
    def density(angle: float) -> float:
        share = math.sin(angle) ** 2
        slope = 2 * math.sin(angle) * math.cos(angle)
        return float(stats.beta.sf(share + margin, *one) * stats.beta.pdf(share, *other) * slope)

    low, high = (math.asin(math.sqrt(each)) for each in stats.beta.ppf([1e-12, 1 - 1e-12], *other))
    marks = [
        *stats.beta.ppf([1e-9, 0.01, 0.5, 0.99], *other),
        *(stats.beta.ppf([1e-6, 0.01, 0.5, 0.99], *one) - margin),
    ]
    angles = [math.asin(math.sqrt(min(1.0, max(0.0, each)))) for each in marks]
    inside = sorted({each for each in angles if low < each < high})
    return float(integrate.quad(density, low, high, points=inside, limit=500, epsabs=1e-9)[0])


@pytest.mark.parametrize(
    ("one", "other", "margin"),
    [
        (Share(1.0, 125.0), Share(0.5, 4500.5), 0.005),
        (Share(2.0, 144.0), Share(14.5, 4486.5), 0.005),
        (Share(16.0, 486.0), Share(9.5, 4491.5), 0.005),
        (Share(6.0, 496.0), Share(9.5, 4491.5), 0.005),
        (Share(1.5, 2.5), Share(0.5, 1.5), 0.0),
        (Share(10.5, 2037.5), Share(0.5, 35.5), 0.005),
        (Share(3000.0, 40000.0), Share(320.5, 390000.5), 0.001),
        (Share(1.0, 1e6), Share(0.5, 1e7), 0.0),
        (Share(300.0, 2.0), Share(2000.5, 12.5), 0.0),
    ],
)
def test_it_is_what_scipy_integrates(one: Share, other: Share, margin: float) -> None:
    assert exceeds(one, other, margin) == pytest.approx(by_scipy(one, other, margin), abs=5e-5)


@given(SHARES, SHARES)
def test_one_of_two_shares_is_the_larger(one: Share, other: Share) -> None:
    assert exceeds(one, other) + exceeds(other, one) == pytest.approx(1.0, abs=1e-4)


@given(SHARES, SHARES, MARGINS, st.integers(1, 50))
def test_more_failures_make_it_more_likely_and_a_wider_margin_less(
    one: Share, other: Share, margin: float, more: int
) -> None:
    chance = exceeds(one, other, margin)
    assert 0.0 <= chance <= 1.0
    assert exceeds(Share(one.failed + more, one.passed), other, margin) >= chance - 1e-4
    assert exceeds(one, other, margin + 0.01) <= chance + 1e-4


@given(SHARES, st.floats(0.0, 1.0))
def test_the_chance_to_be_above_a_known_share_is_the_survival_function(one: Share, share: float) -> None:
    assert above(one, share) == pytest.approx(float(stats.beta.sf(share, *one)), abs=1e-5)


def test_the_same_counts_always_give_the_same_answer_within_two_milliseconds() -> None:
    one, other = Share(4.0, 500.0), Share(30.5, 9000.5)
    first = exceeds(one, other, 0.005)
    began = time.process_time()
    assert all(exceeds(one, other, 0.005) == first for _ in range(50))
    assert (time.process_time() - began) / 50 < 0.002
