"""A real Prometheus with counters that are known; and servers that are none, or not well."""

from __future__ import annotations

import math
import random
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.needs import needs
from tests.systems.delivery.measuring_kit import (
    Answering,
    Counters,
    answering,
    at,
    said,
    scraping_prometheus,
    target_of,
    window,
)
from trimtab.lab.prometheus import Prometheus
from trimtab.model.duration import Duration
from trimtab.model.redacted import Redacted
from trimtab.runtime.credentials.types import CredentialError, SecretRef
from trimtab.systems.delivery.kinds.analysis import Comparison, Metric
from trimtab.systems.delivery.measuring.contract import Counts, SourceError, Target, Window
from trimtab.systems.delivery.measuring.counting import quantile
from trimtab.systems.delivery.measuring.login import Login, login_of
from trimtab.systems.delivery.measuring.measure import measure
from trimtab.systems.delivery.measuring.names import REQUESTS, workload
from trimtab.systems.delivery.measuring.prometheus import PrometheusSource
from trimtab.testing.pki import Authority
from trimtab.testing.ports import free_ports

SUCCESS, DURATION = Metric(name="request-success-rate"), Metric(name="request-duration", quantile=0.9)
BAYES = Comparison(judge="Bayes")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, Counters]]:
    with scraping_prometheus(tmp_path_factory.mktemp("prometheus")) as made:
        yield made


@pytest.fixture
def counters(lab: tuple[Prometheus, Counters]) -> Counters:
    return lab[1]


@pytest.fixture
async def source(lab: tuple[Prometheus, Counters]) -> AsyncIterator[PrometheusSource]:
    made = PrometheusSource(lab[0].url)
    yield made
    await made.close()


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Target:
    """In a namespace of the test's own, for all share one Prometheus."""
    return target_of(request.node.name)


def now() -> datetime:
    return datetime.now(UTC)


# Numbers that are known


async def test_success_is_counted_of_canary_and_stable_in_the_same_window(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    for name in ("web", "web-canary"):
        counters.requests(1000, target.namespace, name)
        counters.requests(50, target.namespace, name, "500")
    await counters.scraped()
    start = now()
    await counters.scraped()
    counters.requests(98, target.namespace, "web-canary")
    counters.requests(2, target.namespace, "web-canary", "500")
    counters.requests(900, target.namespace, "web")
    counters.requests(100, target.namespace, "web", "404")
    await counters.scraped()
    found = await measure(source, SUCCESS, target, Window(start, now()))
    assert (found.problem, found.error) == ("", False)
    assert (found.value, found.stable) == (98.0, 100.0)
    assert (found.canary_counts, found.stable_counts) == (Counts(100, 2), Counts(1000, 0))
    assert found.canary_values == (98.0,)
    assert found.query == (
        f'istio_requests_total{{destination_workload_namespace="{target.namespace}",destination_workload="web-canary"}}'
    )


async def test_a_burst_in_a_new_series_is_seen_where_rate_sees_nothing(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    counters.requests(300, target.namespace, "web-canary")
    await counters.scraped()
    start = now()
    await counters.scraped()
    counters.requests(101, target.namespace, "web-canary", "503")
    counters.requests(107, target.namespace, "web-canary")
    await counters.scraped()
    seen = Window(start, now())
    found = await measure(source, SUCCESS, target, seen)
    assert found.canary_counts == Counts(208, 101)
    assert found.value is not None
    assert round(found.value, 1) == 51.4
    rated = Metric(
        name="rated",
        query='100 * sum(rate(istio_requests_total{destination_workload_namespace="{{ namespace }}",'
        'destination_workload="{{ target }}",response_code!~"5.*"}[{{ window }}])) / '
        'sum(rate(istio_requests_total{destination_workload_namespace="{{ namespace }}",'
        'destination_workload="{{ target }}"}[{{ window }}]))',
    )
    assert (await measure(source, rated, target, seen)).value == pytest.approx(100.0)


async def test_a_restart_of_the_target_counts_what_came_before_and_after(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    counters.requests(1000, target.namespace, "web-canary")
    await counters.scraped()
    start = now()
    await counters.scraped()
    counters.requests(10, target.namespace, "web-canary")
    await counters.scraped()
    counters.restart()
    counters.requests(7, target.namespace, "web-canary")
    await counters.scraped()
    found = await measure(source, SUCCESS, target, Window(start, now()))
    assert found.canary_counts == Counts(17, 0)


async def test_a_series_that_was_gone_and_comes_back_begins_anew(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    counters.requests(10, target.namespace, "web-canary", "503")
    await counters.scraped()
    counters.restart()
    await counters.scraped()
    start = now()
    await counters.scraped()
    counters.requests(101, target.namespace, "web-canary", "503")
    await counters.scraped()
    found = await measure(source, SUCCESS, target, Window(start, now()))
    assert found.canary_counts == Counts(101, 101)


async def test_a_series_that_could_not_be_scraped_for_a_while_goes_on(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    counters.requests(1000, target.namespace, "web-canary")
    await counters.scraped()
    counters.broken = True
    await counters.scraped()
    start = now()
    counters.broken = False
    await counters.scraped()
    counters.requests(5, target.namespace, "web-canary")
    await counters.scraped()
    found = await measure(source, SUCCESS, target, Window(start, now()))
    assert found.canary_counts == Counts(5, 0)


async def test_windows_one_after_another_lose_and_repeat_nothing_that_was_scraped(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    counters.requests(0, target.namespace, "web-canary")
    await counters.scraped()
    counted, start = 0.0, now()
    for _ in range(3):
        await counters.scraped()
        counters.requests(10, target.namespace, "web-canary")
        await counters.scraped()
        end = now()
        found = await measure(source, SUCCESS, target, Window(start, end))
        assert found.canary_counts is not None
        counted, start = counted + found.canary_counts.total, end
    assert counted == 30


async def test_a_quantile_is_the_one_that_prometheus_finds(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    counters.durations({"5": 0, "10": 0, "25": 0, "+Inf": 0}, target.namespace, "web-canary")
    await counters.scraped()
    start = now()
    await counters.scraped()
    counters.durations({"5": 20, "10": 61, "25": 97, "+Inf": 100}, target.namespace, "web-canary")
    await counters.scraped()
    seen = Window(start, now())
    found = await measure(source, DURATION, target, seen)
    theirs = await source.query(
        "histogram_quantile(0.9, istio_request_duration_milliseconds_bucket"
        f'{{destination_workload_namespace="{target.namespace}"}})',
        seen.end,
    )
    assert found.value == pytest.approx(theirs[0].value)
    assert (found.canary_counts, found.canary_values) == (Counts(100), (10.625,))  # parts are told by their mean
    assert (found.problem, found.stable) == ("", None)


async def test_no_traffic_is_a_problem_and_no_number(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    counters.requests(10, target.namespace, "web-canary")
    await counters.scraped()
    start = now()
    await counters.scraped()
    await counters.scraped()
    found = await measure(source, SUCCESS, target, Window(start, now()))
    assert (found.value, found.canary_counts) == (None, Counts(0, 0))
    assert (found.problem, found.error) == ("no requests to web-canary", False)


async def test_a_workload_that_nobody_counts_is_a_problem_and_no_number(
    source: PrometheusSource, target: Target
) -> None:
    found = await measure(source, SUCCESS, target, Window(now() - timedelta(seconds=60), now()))
    assert (found.value, found.canary_counts, found.error) == (None, None, False)
    assert found.problem == "istio_requests_total of web-canary: no samples since the start of the window"


async def test_stable_without_numbers_is_a_problem_only_where_it_is_compared(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    start = now()
    counters.requests(10, target.namespace, "web-canary")
    await counters.scraped()
    seen = Window(start, now())
    assert (await measure(source, SUCCESS, target, seen)).problem == ""
    compared = await measure(source, Metric(name="request-success-rate", compare=BAYES), target, seen)
    assert compared.problem == "stable: istio_requests_total of web: no samples since the start of the window"
    assert not compared.error


async def test_labels_are_quoted(source: PrometheusSource) -> None:
    seen = Window(now() - timedelta(seconds=60), now())
    assert await source.counters(REQUESTS, workload('a"} or up{b="', "\\\n"), seen) == ()


async def test_only_what_is_in_the_window_is_given_and_one_sample_before(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    counters.requests(5, target.namespace, "web")
    await counters.scraped()
    await counters.scraped()
    start = now()
    await counters.scraped()
    end = now()
    await counters.scraped()
    (series,) = await source.counters(REQUESTS, workload(target.namespace, "web"), Window(start, end))
    before, *inside = series.samples
    assert before[0] < start.timestamp()
    assert inside
    assert all(start.timestamp() <= moment <= end.timestamp() for moment, _ in inside)
    assert "__name__" not in series.labels


# Queries of one's own


@pytest.mark.parametrize(
    ("query", "value", "problem"),
    [
        ("vector(42)", 42.0, ""),
        ("41 + 1", 42.0, ""),
        ("nothing_of_this_name", None, "the query found nothing"),
        ("vector(0) / 0", None, "the query gave NaN, no number"),
        ("vector(1) / 0", None, "the query gave +inf, no number"),
        ("vector(-1) / 0", None, "the query gave -inf, no number"),
        ('label_replace(vector(1), "a", "b", "", "") or vector(2)', None, "the query gave 2 series, and one is wanted"),
    ],
)
async def test_a_query_gives_one_number_or_a_problem(
    source: PrometheusSource, target: Target, query: str, value: float | None, problem: str
) -> None:
    found = await measure(source, Metric(name="own", query=query), target, Window(now(), now()))
    assert (found.value, found.error) == (value, False)
    assert found.problem.startswith(problem)
    assert bool(found.problem) == bool(problem)


async def test_a_query_is_asked_of_stable_too_where_it_is_compared(
    source: PrometheusSource, counters: Counters, target: Target
) -> None:
    counters.requests(7, target.namespace, "web-canary")
    counters.requests(70, target.namespace, "web")
    await counters.scraped()
    metric = Metric(name="own", compare=Comparison(judge="Ratio"), variables={"metric": REQUESTS})
    query = (
        '{{ variables.metric }}{destination_workload_namespace="{{ namespace }}",destination_workload="{{ target }}"}'
    )
    found = await measure(source, metric, target, Window(now() - timedelta(seconds=9), now()), query)
    assert (found.value, found.stable) == (7.0, 70.0)
    assert (found.canary_values, found.stable_values) == ((7.0,), (70.0,))
    assert 'destination_workload="web-canary"' in found.query


async def test_a_query_that_prometheus_refuses_is_an_error_with_its_words(
    source: PrometheusSource, target: Target, lab: tuple[Prometheus, Counters]
) -> None:
    found = await measure(source, Metric(name="own", query="sum(rate(x"), target, Window(now(), now()))
    assert (found.value, found.error) == (None, True)
    assert found.problem.startswith(f"Prometheus at 127.0.0.1:{lab[0].port}: bad_data: ")
    assert "parse error" in found.problem


async def test_a_query_with_an_unknown_variable_is_a_problem(source: PrometheusSource, target: Target) -> None:
    found = await measure(source, Metric(name="own", query="{{ who }}"), target, Window(now(), now()))
    assert found.problem.startswith("{{ who }} is no variable")


async def test_a_query_that_gives_ranges_is_an_error(source: PrometheusSource, target: Target) -> None:
    found = await measure(source, Metric(name="own", query="vector(1)[10s:1s]"), target, Window(now(), now()))
    assert found.error
    assert found.problem.endswith("the query gives ranges of samples, not numbers")


async def test_a_long_query_is_asked_too(source: PrometheusSource) -> None:
    long = " + ".join(["vector(1)"] * 700)
    assert [point.value for point in await source.query(long, now())] == [700.0]


async def test_a_metric_without_a_query_is_a_problem(source: PrometheusSource, target: Target) -> None:
    found = await measure(source, Metric(name="own"), target, Window(now(), now()))
    assert found.problem == "own is not built in and has no query"


async def test_the_interval_of_a_metric_is_in_its_query(source: PrometheusSource, target: Target) -> None:
    metric = Metric(name="own", query="vector(1) # {{ interval }} {{ window }}", interval=Duration("1m30s"))
    found = await measure(source, metric, target, Window(at(0), at(20)))
    assert found.query == "vector(1) # 90s 20s"


async def test_quantiles_are_those_of_prometheus_whatever_the_histogram(source: PrometheusSource) -> None:
    chance = random.Random(7)
    for _ in range(40):
        bounds = sorted(
            chance.sample(["-5", "0", "0.5", "1", "5", "10", "25", "1000"], chance.randint(1, 8)), key=float
        )
        counts = [float(chance.randint(0, 20)) for _ in bounds]
        written = dict(zip([*bounds, "+Inf"], [*counts, max(counts) + chance.randint(0, 3)], strict=True))
        q = chance.choice([0.01, 0.5, 0.9, 0.99])
        parts = (f'label_replace(vector({count}), "le", "{bound}", "", "")' for bound, count in written.items())
        (theirs,) = await source.query(f"histogram_quantile({q}, {' or '.join(parts)})", now())
        ours = quantile({float(bound): count for bound, count in written.items()}, q)
        assert (math.nan if ours is None else ours) == pytest.approx(theirs.value, nan_ok=True), (written, q)


# Trouble


async def trouble(answer: Answering, **options: Any) -> str:
    """What is said of a server that answers so."""
    async with answering(answer) as url:
        source = PrometheusSource(url, **options)
        try:
            with pytest.raises(SourceError) as raised:
                await source.query("up", at(0))
            text = str(raised.value)
            assert text.startswith(f"Prometheus at {url.removeprefix('http://')}")
            return text.partition(url.removeprefix("http://"))[2]
        finally:
            await source.close()


def vector(*values: object) -> str:
    result = [{"metric": {}, "value": [1, value]} for value in values]
    return orjson.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).decode()


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        ("<html>login</html>", 200, ": the answer is not Prometheus' JSON"),
        ("[" * 100_000, 200, ": the answer is not Prometheus' JSON"),
        ("", 200, ": the answer is not Prometheus' JSON"),
        ("{}", 200, ": the answer is not Prometheus' JSON"),
        ('{"status":"success"}', 200, ": the answer is not numbers"),
        (vector("one"), 200, ": the answer is not numbers"),
        (vector(1), 200, ": the answer is not numbers"),
        ('{"status":"success","data":{"resultType":"string","result":[1,"x"]}}', 200, ": the answer is not numbers"),
        ('{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{}]}]}}', 200,
         ": the answer is not numbers"),
        ('{"status":"error","errorType":"execution","error":"too many samples"}', 422, ": execution: too many samples"),
        ('{"status":"error","error":"x"}', 200, ": x"),
        ('{"status":"error"}', 503, ": it answered 503"),
        ("secret page of someone else", 404, " answered 404"),
        ("bad gateway", 502, " answered 502"),
        (vector("1"), 500, " answered 500"),
        (vector("1").replace('"data"', '"warnings":["store a is down"],"data"'), 200,
         ": its answer may not be whole: store a is down"),
    ],
)  # fmt: skip
async def test_an_answer_of_no_use_is_an_error(text: str, status: int, expected: str) -> None:
    assert await trouble(said(text, status)) == expected


async def test_a_remark_about_the_query_is_no_error() -> None:
    text = vector("1").replace('"data"', '"warnings":["PromQL info: might not be a counter"],"infos":["x"],"data"')
    async with answering(said(text)) as url:
        source = PrometheusSource(url)
        assert [point.value for point in await source.query("up", at(0))] == [1.0]
        await source.close()


async def test_numbers_that_are_none_are_read() -> None:
    async with answering(said(vector("NaN", "+Inf", "-Inf"))) as url:
        source = PrometheusSource(url)
        first, *others = [point.value for point in await source.query("up", at(0))]
        assert math.isnan(first)
        assert others == [math.inf, -math.inf]
        await source.close()


async def test_a_huge_answer_is_an_error() -> None:
    assert await trouble(said(vector(*["1"] * 10_000)), max_bytes=1 << 18) == ": the answer is over 262144 bytes"


async def test_an_error_of_many_words_is_cut() -> None:
    text = orjson.dumps({"status": "error", "error": "word \n" * 1000}).decode()
    found = await trouble(said(text, 400))
    assert len(found) < 310
    assert "\n" not in found


async def test_a_server_that_is_not_there_is_an_error(target: Target) -> None:
    (port,) = free_ports(1)
    source = PrometheusSource(f"http://user:hunter2@127.0.0.1:{port}")
    found = await measure(source, SUCCESS, target, window(0, 60))
    assert (found.value, found.error) == (None, True)
    assert found.problem == f"Prometheus at 127.0.0.1:{port}: it does not answer: Connection refused"
    await source.close()


async def test_a_server_that_never_answers_is_an_error_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        source = PrometheusSource(f"http://127.0.0.1:{port}", timeout=0.3)
        begun = time.monotonic()
        with pytest.raises(SourceError, match=f"127.0.0.1:{port}: (the time for it is over|it fell silent)"):
            await source.query("up", at(0))
        assert time.monotonic() - begun < 2
        await source.close()


async def test_a_redirect_within_the_server_is_followed() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/old"):
            raise web.HTTPFound(f"/new/api/v1/query?{request.query_string}")
        return web.Response(text=vector("1" if request.path == "/new/api/v1/query" else "0"))

    async with answering(answer) as url:
        source = PrometheusSource(f"{url}/old/")
        assert [point.value for point in await source.query("up", at(0))] == [1.0]
        await source.close()


async def test_a_redirect_to_another_host_is_not_followed() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("http://localhost:1/api/v1/query")

    assert await trouble(answer) == ": its host is not among those that this client may talk to"


async def test_a_redirect_in_a_circle_ends() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(request.path)

    assert await trouble(answer) == ": it is redirected more than 5 times"


@pytest.mark.parametrize("address", ["", "prometheus:9090", "ftp://a", "http://", "http://a:b:c", "http://[::1"])
def test_an_address_that_cannot_be_used_is_an_error(address: str) -> None:
    with pytest.raises(SourceError, match="address of Prometheus is no"):
        PrometheusSource(address)


# Logins


REF = SecretRef("login", "shop")


def login(**values: str) -> Login:
    return login_of({name.replace("_", "."): Redacted(value) for name, value in values.items()}, REF)


async def test_a_token_and_a_password_are_sent_and_never_shown() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        error = f"who is {request.headers.get('Authorization')}?"
        return web.json_response({"status": "error", "error": error}, status=401)

    assert await trouble(answer, login=login(token="hunter2\n")) == ": who is Bearer [redacted]?"
    assert await trouble(answer, login=login(username="me", password="hunter2")) == ": who is Basic [redacted]?"


def test_a_secret_without_a_login_is_an_error() -> None:
    with pytest.raises(CredentialError, match="neither token nor"):
        login(other="x")
    with pytest.raises(CredentialError, match="'password'"):
        login(username="x")


async def test_a_token_that_is_no_header_is_an_error_that_does_not_show_it() -> None:
    assert await trouble(said("{}"), login=login(token="a\nhunter2")) == (": its credential cannot be sent in a header")


async def test_a_real_prometheus_behind_tls_is_trusted_by_its_authority_only(tmp_path: Path) -> None:
    needs("prometheus")
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other", name="someone-else")
    pair = authority.server("prometheus")
    tls = {"cert_file": str(pair.certificate), "key_file": str(pair.key)}
    with Prometheus(tmp_path / "data", *free_ports(1), web={"tls_server_config": tls}) as server:
        trusted = PrometheusSource(server.url, login(ca_crt=authority.certificate.read_text()))
        assert [point.value for point in await trusted.query("vector(1)", now())] == [1.0]
        await trusted.close()
        for each in (login(ca_crt=other.certificate.read_text()), Login()):
            source = PrometheusSource(server.url, each)
            with pytest.raises(SourceError, match="its certificate is not trusted"):
                await source.query("vector(1)", now())
            await source.close()


async def test_an_authority_that_is_none_is_an_error(tmp_path: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*Authority(tmp_path).server("server"))
    async with answering(said(vector("1")), context) as url:
        source = PrometheusSource(url, login(ca_crt="-----BEGIN nonsense"))
        with pytest.raises(SourceError, match="no certificate in PEM"):
            await source.query("up", now())
        await source.close()
