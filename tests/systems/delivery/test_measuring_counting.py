"""What counters say of a window."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.delivery.measuring_kit import EPOCH, window
from trimtab.systems.delivery.measuring import counting
from trimtab.systems.delivery.measuring.contract import Counts, Series
from trimtab.systems.delivery.measuring.counting import NotCountable, growths, quantile, requests

ZERO = EPOCH.timestamp()


def series(*samples: tuple[float, float], **labels: str) -> Series:
    """At seconds after zero."""
    return Series(labels, tuple((ZERO + moment, value) for moment, value in samples))


def total(*samples: tuple[float, float], start: float = 0, end: float = 60) -> float:
    (grown,) = growths([series(*samples)], window(start, end))
    return grown.total


def test_a_known_series_counts_from_its_first_sample_in_the_window() -> None:
    assert total((-5, 90), (10, 100), (25, 120), (40, 150)) == 50


def test_a_sample_at_either_end_is_in_the_window() -> None:
    assert total((-5, 90), (0, 100), (60, 150), (61, 999)) == 50


def test_a_series_that_appears_in_the_window_counts_from_zero() -> None:
    assert total((10, 101), (25, 101)) == 101


def test_a_value_that_falls_is_a_restart_and_what_comes_after_it_counts_in_full() -> None:
    assert total((-5, 900), (10, 1000), (25, 1010), (40, 7), (55, 9)) == 10 + 7 + 2


def test_a_value_that_fell_before_the_first_sample_in_the_window_counts_in_full() -> None:
    assert total((-5, 900), (10, 30), (25, 35)) == 35


def test_two_windows_that_touch_never_count_the_same_twice() -> None:
    samples = ((-5, 0), (0, 1), (10, 5), (20, 9), (30, 20))
    assert total(*samples, start=0, end=10) + total(*samples[1:], start=10, end=30) == 4 + 15


def test_no_samples_are_no_count() -> None:
    with pytest.raises(NotCountable, match="no samples since the start of the window"):
        growths([series((-5, 1))], window(0, 60))
    with pytest.raises(NotCountable, match="no samples"):
        growths([], window(0, 60))


def test_one_scrape_of_what_is_known_is_no_count() -> None:
    with pytest.raises(NotCountable, match="only one scrape"):
        growths([series((-5, 1), (30, 50)), series((30, 3), response_code="503")], window(0, 60))


def test_one_scrape_of_what_is_all_new_is_a_count() -> None:
    assert total((55, 40)) == 40


def test_a_pod_that_ended_in_the_window_counts_as_far_as_it_came() -> None:
    gone = series((-5, 10), (5, 20), (10, 25), pod="a")
    alive = series((-5, 10), (5, 20), (55, 50), pod="b")
    assert [one.total for one in growths([gone, alive], window(0, 60))] == [5, 30]


def test_values_that_are_no_numbers_are_passed_over() -> None:
    assert total((-5, 0), (10, 100), (20, math.nan), (30, math.inf), (40, 150)) == 50


def counted(*found: Series) -> Counts:
    return requests(growths(found, window(0, 60)))


def test_a_burst_of_errors_in_a_new_series_is_seen() -> None:
    good = series((-5, 300), (5, 300), (20, 350), (35, 407), reporter="source", response_code="200")
    bad = series((20, 101), (35, 101), reporter="source", response_code="503")
    found = counted(good, bad)
    assert found == Counts(208, 101)
    assert round(100 * (found.total - found.failed) / found.total, 1) == 51.4


def test_only_5xx_are_failures_of_http() -> None:
    codes = ("200", "301", "404", "499", "500", "503", "0")
    assert counted(*(series((10, 1), (20, 1), response_code=code) for code in codes)) == Counts(7, 2)


def test_a_grpc_call_that_is_not_ok_failed_although_http_says_200() -> None:
    states = ("0", "13", "")
    made = [series((10, 1), response_code="200", grpc_response_status=each) for each in states]
    assert counted(*made) == Counts(3, 1)


def test_a_call_that_both_ends_report_counts_once_by_the_end_that_saw_more() -> None:
    source = series((10, 100), reporter="source", response_code="503")
    destination = series((10, 90), reporter="destination", response_code="200")
    assert counted(source, destination) == Counts(100, 100)
    assert counted(series((10, 80), reporter="source", response_code="503"), destination) == Counts(90, 0)


def test_on_a_tie_the_source_is_believed() -> None:
    source = series((10, 100), reporter="source", response_code="503")
    destination = series((10, 100), reporter="destination", response_code="200")
    assert counted(destination, source) == counted(source, destination) == Counts(100, 100)


def test_parts_of_a_window_go_from_scrape_to_scrape_and_add_up() -> None:
    good = series((-5, 0), (0, 10), (15, 20), (30, 20), (45, 50), response_code="200")
    bad = series((30, 5), (45, 6), response_code="500")
    grown = growths([good, bad], window(0, 60))
    assert counting.request_parts(grown) == (Counts(10, 0), Counts(5, 5), Counts(31, 1))


def test_a_window_with_many_scrapes_has_a_bounded_number_of_parts() -> None:
    grown = growths([series(*((each, each * 2.0) for each in range(500)))], window(0, 600))
    parts = counting.request_parts(grown)
    assert len(parts) == counting.MOST_PARTS
    assert sum(part.total for part in parts) == grown[0].total


samples = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 1000)), min_size=1, max_size=20, unique_by=lambda s: s[0]
)


@given(st.lists(samples, min_size=1, max_size=4), st.booleans())
def test_parts_always_add_up_and_nothing_is_negative(drawn: list[list[tuple[int, int]]], known: bool) -> None:
    made = [
        series(*(((-1, 5),) if known else ()), *((float(t), float(v)) for t, v in sorted(each)), pod=str(number))
        for number, each in enumerate(drawn)
    ]
    try:
        grown = growths(made, window(0, 60))
    except NotCountable:
        return
    parts = counting.request_parts(grown)
    assert all(part.total >= 0 for part in parts)
    assert sum(part.total for part in parts) == requests(grown).total


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30), st.integers(1, 29))
def test_a_counter_that_only_grows_is_counted_exactly_however_often_it_is_scraped(steps: list[int], keep: int) -> None:
    values = [float(sum(steps[: each + 1])) for each in range(len(steps))]
    every = [(float(moment), value) for moment, value in enumerate(values)]
    some = [every[0], *every[1:-1:keep], every[-1]]
    assert total((-1, 0), *every) == total((-1, 0), *some) == values[-1] - values[0]


# Quantiles: test_measuring_measure compares them with Prometheus' own.


@pytest.mark.parametrize(
    ("histogram", "q", "expected"),
    [
        ({1: 0, 5: 50, 10: 100, math.inf: 100}, 0.5, 5),
        ({1: 0, 5: 50, 10: 100, math.inf: 100}, 0.75, 7.5),
        ({1: 100, math.inf: 100}, 0.5, 0.5),
        ({1: 0, 5: 50, math.inf: 100}, 0.99, 5),
        ({-5: 100, 5: 100, math.inf: 100}, 0.5, -5),
        ({1: 60, 5: 50, math.inf: 100}, 0.6, 1),  # a bucket that fell behind another
        ({1: 0, math.inf: 0}, 0.5, None),
        ({1: 5, 5: 9}, 0.5, None),
        ({math.inf: 9}, 0.5, None),
        ({}, 0.5, None),
    ],
)
def test_a_quantile_is_interpolated_within_its_bucket(
    histogram: dict[float, float], q: float, expected: float | None
) -> None:
    assert quantile(histogram, q) == (expected if expected is None else pytest.approx(expected))


def test_a_histogram_is_summed_over_pods_of_the_end_that_saw_more() -> None:
    made = [
        series((-5, 0), (0, 0), (10, amount), reporter=reporter, pod=pod, le=bound)
        for reporter, amounts in (("source", {"5": 3, "+Inf": 4}), ("destination", {"5.0": 9, "Inf": 9}))
        for pod in "ab"
        for bound, amount in amounts.items()
    ]
    assert counting.buckets(growths(made, window(0, 60))) == {5.0: 18, math.inf: 18}


def test_a_bound_that_is_no_number_is_passed_over() -> None:
    made = [series((10, 4), le=bound) for bound in ("5", "+Inf", "NaN", "many")]
    assert counting.buckets(growths(made, window(0, 60))) == {5.0: 4, math.inf: 4}


def test_the_mean_of_a_histogram_is_that_of_the_middles_of_its_buckets() -> None:
    assert counting.mean({10.0: 2.0, 20.0: 4.0, math.inf: 4.0}) == 10.0
    assert counting.mean({10.0: 0.0, math.inf: 3.0}) == 10.0  # above the highest bound: that bound
    assert counting.mean({10.0: 0.0, math.inf: 0.0}) is None
    assert counting.mean({}) is None
