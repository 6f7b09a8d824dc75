"""The order of a sweep, its budget and its clock: pure."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.systems.discovery.sweep.attention import ALLOWANCE, Attention
from trimtab.systems.discovery.sweep.budget import DEPTH, Bucket, share
from trimtab.systems.discovery.sweep.permutation import Permutation

SEEDS = st.integers(min_value=0, max_value=2**64)


@settings(max_examples=60)
@given(size=st.integers(min_value=0, max_value=3000), seed=SEEDS)
def test_every_position_comes_once(size, seed):
    order = Permutation(size, seed)
    assert sorted(order.at(index) for index in range(size)) == list(range(size))


@settings(max_examples=60)
@given(size=st.integers(min_value=1, max_value=2**21), seed=SEEDS, share_of=st.floats(min_value=0, max_value=1))
def test_size_and_seed_decide_the_order(size, seed, share_of):
    index = int(share_of * (size - 1))
    assert Permutation(size, seed).at(index) == Permutation(size, seed).at(index)


@pytest.mark.parametrize("size", [65_534, 65_536, 2**20, 2**20 - 2, 99_991])
def test_no_subnet_gets_a_burst(size):
    order = Permutation(size, 7)
    subnets = [order.at(index) // 256 for index in range(1000)]
    assert max(subnets.count(subnet) for subnet in set(subnets)) <= 1000 * 256 / size + 3


def test_a_place_outside_of_the_order_is_an_error():
    with pytest.raises(IndexError):
        Permutation(10, 0).at(10)


@settings(max_examples=100)
@given(
    available=st.integers(min_value=0, max_value=2000),
    wants=st.lists(st.integers(min_value=0, max_value=1000), max_size=9),
    turn=st.integers(min_value=0, max_value=100),
)
def test_shares_waste_nothing_and_are_fair(available, wants, turn):
    grants = share(available, wants, turn)
    assert sum(grants) == min(available, sum(wants))
    assert all(0 <= grant <= want for grant, want in zip(grants, wants, strict=True))
    unsatisfied = [grant for grant, want in zip(grants, wants, strict=True) if grant < want]
    if unsatisfied:
        assert max(grants) - min(unsatisfied) <= 1


def test_what_cannot_be_divided_goes_round():
    assert [share(1, [5, 5, 5], turn).index(1) for turn in range(3)] == [0, 1, 2]


@settings(max_examples=60)
@given(
    rate=st.integers(min_value=1, max_value=100_000),
    pauses=st.lists(st.floats(min_value=0, max_value=0.5), min_size=1, max_size=50),
)
def test_a_bucket_never_gives_more_than_its_rate_and_its_depth(rate, pauses):
    bucket, now, spent = Bucket(rate, 0.0), 0.0, 0
    for pause in pauses:
        now += pause
        available = bucket.available(now)
        bucket.spend(available)
        spent += available
    assert spent <= rate * now + max(1, rate * DEPTH) + 1e-6


def test_an_empty_bucket_says_when_the_next_packet_may_go():
    bucket = Bucket(10, 0.0)
    bucket.spend(bucket.available(0.0))
    assert bucket.available(0.0) == 0
    assert bucket.wait == pytest.approx(0.1)
    assert bucket.available(0.1001) == 1


def test_time_without_a_processor_counts_for_no_deadline():
    clock = Attention(now=0.0)
    lag = clock.heard(slept=0.001, asked=0.002, now=3.0)
    assert lag == pytest.approx(2.998)
    assert clock.time(3.0) == pytest.approx(0.002 + ALLOWANCE)


def test_a_sleep_that_was_asked_for_counts():
    clock = Attention(now=0.0)
    assert clock.heard(slept=0.0, asked=1.0, now=1.0) == 0.0
    assert clock.heard(slept=1.0, asked=None, now=9.0) == 0.0
    assert clock.time(9.0) == 9.0
