"""A data plane that is scraped by ourselves, and what is kept of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.systems.delivery.measuring_kit import Counters, answering, said, target_of
from trimtab.model.clock import SystemClock
from trimtab.systems.delivery.kinds.analysis import Metric
from trimtab.systems.delivery.measuring import keeping
from trimtab.systems.delivery.measuring.contract import Counts, SourceError, Window, WindowLost
from trimtab.systems.delivery.measuring.keeping import Kept
from trimtab.systems.delivery.measuring.measure import measure
from trimtab.systems.delivery.measuring.names import REQUESTS, workload
from trimtab.systems.delivery.measuring.scraping import ScrapeSource
from trimtab.testing.ports import free_ports

SUCCESS, DURATION = Metric(name="request-success-rate"), Metric(name="request-duration", quantile=0.9)
SHOP = target_of("shop")
NAMES = frozenset({"x_total"})


@pytest.fixture
def counters() -> Iterator[Counters]:
    with Counters() as made:
        yield made


@pytest.fixture
async def source(counters: Counters) -> AsyncIterator[ScrapeSource]:
    made = ScrapeSource(counters.url, interval=0.02)
    yield made
    await made.close()


def now() -> datetime:
    return datetime.now(UTC)


async def test_success_is_counted_from_the_data_plane_itself(source: ScrapeSource, counters: Counters) -> None:
    counters.requests(500, "shop", "web-canary")
    counters.requests(9, "elsewhere", "web-canary")
    source.begin()
    await counters.scraped()
    start = now()
    await counters.scraped()
    counters.requests(107, "shop", "web-canary")
    counters.requests(101, "shop", "web-canary", "503")
    counters.requests(9, "elsewhere", "web-canary", "503")
    await counters.scraped()
    found = await measure(source, SUCCESS, SHOP, Window(start, now()))
    assert (found.canary_counts, found.problem) == (Counts(208, 101), "")
    assert found.value is not None
    assert round(found.value, 1) == 51.4


async def test_durations_are_counted_too(source: ScrapeSource, counters: Counters) -> None:
    source.begin()
    await counters.scraped()
    start = now()
    counters.durations({"5": 50, "10": 90, "+Inf": 100}, "shop", "web-canary")
    await counters.scraped()
    found = await measure(source, DURATION, SHOP, Window(start, now()))
    assert (found.value, found.canary_counts) == (10.0, Counts(100))


async def test_a_restart_of_the_data_plane_counts_what_came_after_it(source: ScrapeSource, counters: Counters) -> None:
    counters.requests(500, "shop", "web-canary")
    source.begin()
    await counters.scraped()
    start = now()
    await counters.scraped()
    counters.restart()
    await counters.scraped()
    counters.requests(7, "shop", "web-canary")
    await counters.scraped()
    found = await measure(source, SUCCESS, SHOP, Window(start, now()))
    assert found.canary_counts == Counts(7, 0)


async def test_a_window_from_before_the_first_scrape_has_no_base(source: ScrapeSource, counters: Counters) -> None:
    counters.requests(500, "shop", "web-canary")
    start = now() - timedelta(seconds=3)
    found = await measure(source, SUCCESS, SHOP, Window(start, now()))
    assert (found.value, found.canary_counts, found.error) == (None, None, False)
    assert found.problem.startswith("no samples since the start of the window")
    start = now()
    await counters.scraped()
    counters.requests(5, "shop", "web-canary")
    await counters.scraped()
    assert (await measure(source, SUCCESS, SHOP, Window(start, now()))).canary_counts == Counts(5, 0)


async def test_a_series_that_comes_back_after_it_was_gone_begins_anew(source: ScrapeSource, counters: Counters) -> None:
    counters.requests(10, "shop", "web-canary", "503")
    source.begin()
    await counters.scraped()
    counters.restart()
    await counters.scraped()
    start = now()
    await counters.scraped()
    counters.requests(101, "shop", "web-canary", "503")
    await counters.scraped()
    assert (await measure(source, SUCCESS, SHOP, Window(start, now()))).canary_counts == Counts(101, 101)


async def test_a_window_whose_end_was_not_scraped_is_an_error(source: ScrapeSource, counters: Counters) -> None:
    source.begin()
    await counters.scraped()
    later = now() + timedelta(seconds=30)
    found = await measure(source, SUCCESS, SHOP, Window(now(), later))
    assert found.error
    assert "cannot be had" in found.problem


async def test_a_data_plane_that_is_not_there_is_an_error() -> None:
    (port,) = free_ports(1)
    source = ScrapeSource(f"http://127.0.0.1:{port}/metrics")
    with pytest.raises(SourceError, match=f"127.0.0.1:{port} cannot be had: it does not answer: Connection refused"):
        await source.counters(REQUESTS, workload("shop", "web"), Window(now(), now()))
    await source.close()


@pytest.mark.parametrize(
    ("text", "status", "expected"), [("no", 503, "it answered 503"), ("<html></html>", 200, "is no sample")]
)
async def test_what_is_no_exposition_is_an_error(text: str, status: int, expected: str) -> None:
    async with answering(said(text, status)) as url:
        source = ScrapeSource(url)
        with pytest.raises(SourceError, match=expected):
            await source.counters(REQUESTS, {}, Window(now(), now()))
        await source.close()


async def test_a_query_needs_a_prometheus(source: ScrapeSource) -> None:
    found = await measure(source, Metric(name="own", query="up"), SHOP, Window(now(), now()))
    assert found.error
    assert found.problem == "a query needs a Prometheus: set analysis.prometheus.address or --prometheus"


@pytest.mark.parametrize("url", ["", "metrics", "file:///etc/passwd", "http://[::1"])
def test_an_address_that_cannot_be_used_is_an_error(url: str) -> None:
    with pytest.raises(SourceError, match="is no"):
        ScrapeSource(url)


class Skipping(SystemClock):
    """Its time can be put forward."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


async def test_nobody_is_scraped_for_nobody(counters: Counters) -> None:
    clock = Skipping()
    source = ScrapeSource(counters.url, interval=0.01, clock=clock)
    source.begin(400)
    await counters.scraped()
    clock.ahead = 790
    await counters.scraped()
    clock.ahead = 801
    assert source._task is not None
    await source._task
    source.begin()
    await counters.scraped()
    await source.close()
    with pytest.raises(SourceError, match="closed"):
        source.begin()


# What is kept


def samples(kept: Kept, start: float, end: float) -> list[tuple[tuple[float, float], ...]]:
    return [series.samples for series in kept.series("x_total", {}, start, end)]


def test_a_window_has_its_samples_and_the_one_before() -> None:
    kept = Kept()
    for moment in range(10):
        kept.take(moment, f"x_total {moment * 2}", NAMES)
    assert samples(kept, 3, 5) == [((2, 4), (3, 6), (4, 8), (5, 10))]


def test_a_series_is_known_again_whatever_follows_it() -> None:
    kept = Kept()
    for moment, text in enumerate(('x_total{a="b c"} 1', 'x_total{a="b c"} 2 1700000000000', ' x_total{a="b c"}  3 ')):
        kept.take(moment, text, NAMES)
    assert samples(kept, 0, 5) == [((0, 1), (1, 2), (2, 3))]


def test_a_series_that_was_not_in_the_last_scrape_has_no_sample_before() -> None:
    kept = Kept()
    kept.take(1, "x_total 9", NAMES)
    kept.take(2, "", NAMES)
    kept.take(3, "x_total 10", NAMES)
    assert samples(kept, 2.5, 4) == [((3, 10),)]


def test_series_are_chosen_by_their_labels() -> None:
    kept = Kept()
    kept.take(1, 'x_total{destination_workload="a",b="c"} 1\nx_total{destination_workload="d"} 2\ny_total 3', NAMES)
    assert len(kept.series("x_total", {}, 0, 2)) == 2
    assert len(kept.series("x_total", {"destination_workload": "a", "b": "c"}, 0, 2)) == 1
    assert len(kept.series("x_total", {"destination_workload": "a", "b": "d"}, 0, 2)) == 0
    assert len(kept.series("x_total", {"destination_workload": "d", "b": ""}, 0, 2)) == 1
    assert len(kept.series("y_total", {}, 0, 2)) == 0


@pytest.mark.parametrize(
    ("start", "covered"), [(0.5, False), (1, False), (1.5, True), (2, True), (2.9, True), (10, False), (19.5, True), (20.5, True)]
)  # fmt: skip
def test_a_window_is_covered_when_scrapes_were_made_around_its_start(start: float, covered: bool) -> None:
    kept = Kept()
    for moment in (1, 2, 3, 19, 20):
        kept.take(moment, "", NAMES)
    assert kept.covers(start, 5) is covered


def test_a_scrape_that_is_no_good_leaves_nothing_behind() -> None:
    kept = Kept()
    with pytest.raises(ValueError, match="is no sample"):
        kept.take(1, "x_total 1\nx_total{ 1", NAMES)
    assert (kept.times, samples(kept, 0, 2)) == ([], [])
    kept.take(2, "x_total 1", NAMES)
    with pytest.raises(ValueError, match="is no sample"):
        kept.take(3, "x_total one", NAMES)
    assert kept.times == [2]


def test_a_clock_that_is_set_back_is_waited_for() -> None:
    kept = Kept()
    for moment in (5, 3, 6):
        kept.take(moment, f"x_total {moment}", NAMES)
    assert samples(kept, 0, 9) == [((5, 5), (6, 6))]


def test_values_that_no_counter_has_are_not_kept() -> None:
    kept = Kept()
    kept.take(1, "x_total NaN", NAMES)
    kept.take(2, "x_total -1", NAMES)
    kept.take(3, "x_total +Inf", NAMES)
    assert samples(kept, 0, 9) == []


def test_what_is_old_is_forgotten_and_series_with_it() -> None:
    kept = Kept()
    kept.take(0, 'x_total{destination_workload="a"} 1', NAMES)
    for moment in range(1, 201):
        kept.take(moment, "x_total 1", NAMES)
    kept.forget(100)
    assert (len(kept.times), kept.times[0], kept._samples, len(kept._index)) == (101, 100, 101, 1)
    assert len(kept.series("x_total", {"destination_workload": "a"}, 0, 300)) == 0


def test_the_number_of_samples_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST_SAMPLES", 100)
    kept = Kept()
    for moment in range(1000):
        kept.take(moment, "x_total 1", NAMES)
        kept.forget(0)
    assert len(kept.times) == kept._samples <= 101


def test_the_number_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST_SERIES", 2)
    kept = Kept()
    with pytest.raises(SourceError, match="more than 2 series"):
        kept.take(1, "".join(f'x_total{{a="{each}"}} 1\n' for each in range(3)), NAMES)


async def test_a_window_that_is_lost_is_told_apart_from_a_failure(source: ScrapeSource) -> None:
    with pytest.raises(WindowLost):
        await source.counters(REQUESTS, {}, Window(now() - timedelta(seconds=2), now()))
