"""How long to wait before trying again."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.runtime.limits import Backoff, TokenBucket
from trimtab.testing.clock import FakeClock


def backoff(**options: float) -> Backoff[str]:
    return Backoff(**options, random=Random(7))


def test_delays_double_from_five_milliseconds_to_a_thousand_seconds() -> None:
    plain = backoff(jitter=0)

    delays = [plain.next("a") for _ in range(20)]

    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[17:] == [0.005 * 2**17, 1000.0, 1000.0]


def test_each_key_counts_its_own_failures() -> None:
    plain = backoff(jitter=0)

    plain.next("a")
    plain.next("a")

    assert plain.next("b") == 0.005
    assert plain.next("a") == 0.02


def test_a_forgotten_key_starts_again() -> None:
    plain = backoff(jitter=0)
    plain.next("a")
    plain.next("a")

    plain.forget("a")
    plain.forget("never seen")

    assert plain.next("a") == 0.005


def test_a_thousand_failures_do_not_overflow() -> None:
    steep = backoff(factor=10.0)

    assert max(steep.next("a") for _ in range(2000)) <= 1000.0


@given(jitter=st.floats(0, 0.99), seed=st.integers(), factor=st.floats(1, 10), failures=st.integers(1, 30))
def test_jitter_only_shortens_and_never_by_more_than_its_share(
    jitter: float, seed: int, factor: float, failures: int
) -> None:
    plain = Backoff[str](factor=factor, jitter=0, random=Random(seed))
    jittered = Backoff[str](factor=factor, jitter=jitter, random=Random(seed))

    for _ in range(failures):
        nominal, delay = plain.next("a"), jittered.next("a")
        assert nominal * (1 - jitter) <= delay <= nominal


def test_the_same_seed_gives_the_same_delays() -> None:
    one, other = backoff(), backoff()

    assert [one.next("a") for _ in range(9)] == [other.next("a") for _ in range(9)]


@pytest.mark.parametrize(
    "wrong", [{"first": 0.0}, {"first": 2.0, "longest": 1.0}, {"factor": 0.5}, {"jitter": 1.0}, {"jitter": -0.1}]
)
def test_a_back_off_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        backoff(**wrong)


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    bucket = TokenBucket(rate=10, burst=3, clock=FakeClock())

    assert [bucket.reserve() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])


async def test_a_bucket_fills_with_time_up_to_its_burst() -> None:
    clock = FakeClock()
    bucket = TokenBucket(rate=10, burst=2, clock=clock)
    bucket.reserve()
    bucket.reserve()

    await clock.advance(0.1)
    assert bucket.reserve() == pytest.approx(0)
    assert bucket.reserve() == pytest.approx(0.1)

    await clock.advance(3600)
    assert [bucket.reserve() for _ in range(3)] == pytest.approx([0, 0, 0.1])


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_never_gives_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="rate > 0 and burst >= 1"):
        TokenBucket(rate, burst, FakeClock())


@given(st.lists(st.floats(0, 3), min_size=1, max_size=60), st.floats(0.5, 20), st.integers(1, 10))
@settings(max_examples=60, deadline=None)
async def test_a_bucket_never_gives_more_than_rate_and_burst(gaps: list[float], rate: float, burst: int) -> None:
    clock = FakeClock()
    bucket, given_at = TokenBucket(rate, burst, clock), []
    for gap in gaps:
        await clock.advance(gap)
        given_at.append(clock.monotonic() + bucket.reserve())
    for first, start in enumerate(given_at):
        for last in range(first, len(given_at)):
            count = last - first + 1
            assert count <= burst + (given_at[last] - start) * rate + 1e-6


def test_what_is_put_back_is_there_for_the_next_and_no_more_than_the_burst() -> None:
    bucket = TokenBucket(rate=10, burst=2, clock=FakeClock())
    bucket.put_back()
    assert bucket.full

    assert [bucket.reserve() for _ in range(3)] == pytest.approx([0, 0, 0.1])
    assert not bucket.full
    bucket.put_back()
    assert bucket.reserve() == pytest.approx(0.1)
