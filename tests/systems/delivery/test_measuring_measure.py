"""What a measure makes of sources that know one side only, or fail for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import pytest

from tests.systems.delivery.measuring_kit import EPOCH, target_of, window
from trimtab.systems.delivery.kinds.analysis import Comparison, Judge, Metric
from trimtab.systems.delivery.measuring.contract import Counts, Point, Series, SourceError, Window, WindowLost
from trimtab.systems.delivery.measuring.measure import measure
from trimtab.systems.delivery.measuring.names import REQUESTS

ZERO = EPOCH.timestamp()
SHOP, SEEN = target_of("shop"), window(0, 60)


def success(judge: Judge = "Threshold") -> Metric:
    return Metric(name="request-success-rate", compare=Comparison(judge=judge))


def own(judge: Judge = "Threshold") -> Metric:
    return Metric(name="own", query="{{ target }}", compare=Comparison(judge=judge))


def counted(total: float) -> list[Series]:
    return [Series({"response_code": "200"}, ((ZERO - 1, 0), (ZERO, 0), (ZERO + 30, total / 2), (ZERO + 60, total)))]


class Known:
    """Answers by workload; an error is raised."""

    def __init__(self, **answers: list[Series] | list[Point] | Exception) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def counters(self, name: str, labels: Mapping[str, str], window: Window) -> Sequence[Series]:
        assert (name, window) == (REQUESTS, SEEN)
        assert labels["destination_workload_namespace"] == "shop"
        return self._answer(labels["destination_workload"])

    async def query(self, promql: str, at: datetime) -> Sequence[Point]:
        assert at == SEEN.end
        return self._answer(promql)

    def _answer(self, workload: str) -> Sequence[object]:
        self.asked.append(workload)
        answer = self._answers["canary" if workload == "web-canary" else "stable"]
        if isinstance(answer, Exception):
            raise answer
        return answer


DOWN = SourceError("Prometheus at there: it does not answer")


async def test_both_sides_are_counted_in_parts() -> None:
    found = await measure(Known(canary=counted(10), stable=counted(90)), success("MannWhitney"), SHOP, SEEN)
    assert (found.value, found.stable) == (100.0, 100.0)
    assert (found.canary_counts, found.stable_counts) == (Counts(10, 0), Counts(90, 0))
    assert found.canary_values == found.stable_values == (100.0, 100.0)


async def test_a_source_that_fails_for_the_canary_is_an_error() -> None:
    found = await measure(Known(canary=DOWN, stable=counted(90)), success(), SHOP, SEEN)
    assert (found.value, found.error, found.problem) == (None, True, str(DOWN))


@pytest.mark.parametrize("metric", [success, own])
async def test_a_source_that_fails_for_stable_is_an_error_only_where_it_is_compared(metric: type) -> None:
    answer = counted(10) if metric is success else [Point({}, 100.0)]
    found = await measure(Known(canary=answer, stable=DOWN), metric(), SHOP, SEEN)
    assert (found.value, found.error, found.problem) == (100.0, False, "")
    compared = await measure(Known(canary=answer, stable=DOWN), metric("Ratio"), SHOP, SEEN)
    assert (compared.value, compared.error, compared.problem) == (100.0, True, f"stable: {DOWN}")


async def test_a_query_asks_for_stable_only_where_it_is_compared() -> None:
    source = Known(canary=[Point({}, 1.0)], stable=[Point({}, 2.0)])
    assert (await measure(source, own(), SHOP, SEEN)).stable is None
    assert source.asked == ["web-canary"]
    assert (await measure(source, own("Bayes"), SHOP, SEEN)).stable == 2.0
    assert source.asked == ["web-canary", "web-canary", "web"]


async def test_a_query_of_ones_own_comes_before_the_built_in_one_of_the_same_name() -> None:
    found = await measure(Known(canary=[Point({}, 7.0)]), success(), SHOP, SEEN, "{{ target }}")
    assert (found.value, found.canary_counts, found.query) == (7.0, None, "web-canary")


async def test_a_lost_window_is_a_problem_and_no_error() -> None:
    lost = WindowLost("no samples since the start of the window: nobody looked")
    found = await measure(Known(canary=lost, stable=lost), success("Bayes"), SHOP, SEEN)
    assert (found.value, found.canary_counts, found.error, found.problem) == (None, None, False, str(lost))
    assert found.lost
    half = await measure(Known(canary=counted(10), stable=lost), success("Bayes"), SHOP, SEEN)
    assert (half.lost, half.problem) == (True, f"stable: {lost}")
    assert not (await measure(Known(canary=counted(10), stable=lost), success(), SHOP, SEEN)).lost
