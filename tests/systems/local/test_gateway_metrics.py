"""What the data plane counts, in Istio's names: as text, as a real Prometheus reads it, and what counts as a request."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.systems.local.gateway_kit import Gateway, ask, client, gateway, scheme, server, to
from trimtab.systems.local.gateway.metrics import istio_text
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

__all__ = ["client", "gateway", "scheme", "server"]

LABELS = (
    'envoy_cluster_name="shop@a.b@web",destination_workload_namespace="shop",destination_workload="a.b",'
    'destination_service_name="web"'
)
ENVOY = f"""# TYPE envoy_cluster_upstream_rq counter
envoy_cluster_upstream_rq{{envoy_response_code="200",{LABELS}}} 7
envoy_cluster_retry_upstream_rq{{envoy_response_code="503",{LABELS}}} 3
# TYPE envoy_cluster_upstream_rq_time histogram
envoy_cluster_upstream_rq_time_bucket{{{LABELS},le="0.5"}} 1
envoy_cluster_upstream_rq_time_bucket{{{LABELS},le="+Inf"}} 7
envoy_cluster_upstream_rq_time_sum{{{LABELS}}} 12.5
envoy_cluster_upstream_rq_time_count{{{LABELS}}} 7
""".encode()


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    """By name, reporter, workload, and code or bound."""
    return {
        (
            sample.name,
            sample.labels["reporter"],
            sample.labels["destination_workload"],
            sample.labels.get("response_code") or sample.labels.get("le") or "",
        ): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_envoys_text_becomes_istios_for_both_reporters() -> None:
    found = samples(istio_text(ENVOY))
    for reporter in ("destination", "source"):
        assert found["istio_requests_total", reporter, "a.b", "200"] == 7
        assert found["istio_request_duration_milliseconds_bucket", reporter, "a.b", "+Inf"] == 7
        assert found["istio_request_duration_milliseconds_sum", reporter, "a.b", ""] == 12.5
    assert len(found) == 10  # the tries that clients never saw are left out
    (line, *_) = [line for line in istio_text(ENVOY).decode().splitlines() if 'response_code="200"' in line]
    assert 'destination_service="web.shop.svc.cluster.local"' in line
    assert 'destination_workload_namespace="shop"' in line


async def test_a_request_that_was_tried_again_counts_once_as_its_client_saw_it(gateway: Gateway) -> None:
    await gateway.service("web")
    bad, good = await gateway.backend("web", version="bad"), await gateway.backend("web", version="good")
    bad.status = 503
    await gateway.virtual_service("web", [to(("web", 100), retries={"attempts": 3, "retryOn": "503"})])
    async with gateway.working() as controller:
        url = await gateway.serving("web")
        await gateway.live("web")
        before = samples(await controller.metrics())
        while not bad.heads:
            assert await ask(url, 10) == {"200 good": 10}
        after = samples(await controller.metrics())
        grown = {
            key: after[key] - before.get(key, 0)
            for key in after
            if key[:3] == ("istio_requests_total", "source", "web")
        }
        assert grown["istio_requests_total", "source", "web", "200"] == len(good.heads) - 1
        assert grown.get(("istio_requests_total", "source", "web", "503"), 0) == 0


async def test_an_answer_for_want_of_pods_counts_for_the_workload(gateway: Gateway) -> None:
    for name in ("web", "web-canary"):
        await gateway.service(name)
    await gateway.backend("web")
    async with gateway.working() as controller:
        url = await gateway.serving("web")
        await gateway.virtual_service("web", [to(("web", 0), ("web-canary", 1))])
        await gateway.live("web")
        assert await ask(url, 3) == {"503 no healthy upstream": 3}
        found = samples(await controller.metrics())
        assert found["istio_requests_total", "destination", "web-canary", "503"] == 3


async def test_the_metrics_are_served_where_the_config_map_says(gateway: Gateway) -> None:
    await gateway.service("web")
    await gateway.backend("web")
    async with gateway.working(), aiohttp.ClientSession() as session:
        await gateway.serving("web")
        url = (await gateway.published())["metrics"]
        async with session.get(url) as response:
            assert response.content_type == "text/plain"
            assert samples(await response.read())["istio_requests_total", "source", "web", "200"] >= 1
        async with session.get(url.replace("/metrics", "/other")) as response:
            assert response.status == 404


@pytest.mark.dataplane
async def test_a_real_prometheus_scrapes_them_and_answers_flaggers_questions(gateway: Gateway, tmp_path: Path) -> None:
    await gateway.service("web")
    backend = await gateway.backend("web")
    async with gateway.working():
        url = await gateway.serving("web")
        target = (await gateway.published())["metrics"].removeprefix("http://").removesuffix("/metrics")
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "400ms"},
            "scrape_configs": [{"job_name": "data-plane", "static_configs": [{"targets": [target]}]}],
        }
        (tmp_path / "prometheus.yml").write_text(json.dumps(config))
        (port,) = free_ports(1)
        command = ["/usr/bin/prometheus", f"--config.file={tmp_path / 'prometheus.yml'}"]
        command += [f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
        with Process(command, log=tmp_path / "prometheus.log"):
            query = (
                'sum(rate(istio_requests_total{reporter="destination",destination_workload_namespace="shop",'
                'destination_workload=~"web",response_code!~"5.*"}[5s])) / '
                'sum(rate(istio_requests_total{reporter="destination",destination_workload_namespace="shop",'
                'destination_workload=~"web"}[5s])) * 100'
            )
            slow = (
                "histogram_quantile(0.99, sum(rate(istio_request_duration_milliseconds_bucket{"
                'reporter="destination",destination_workload_namespace="shop",destination_workload=~"web"}[5s])) by (le))'
            )
            rates: list[float] = []
            async with asyncio.timeout(30), aiohttp.ClientSession() as session:
                while len(rates) < 2 or not 40 < rates[0] < 60 or rates[1] < 10:
                    backend.delay = 0.02
                    backend.status = 200 if backend.status == 500 else 500
                    await ask(url, 5)
                    rates = []
                    for each in (query, slow):
                        try:
                            async with session.get(
                                f"http://127.0.0.1:{port}/api/v1/query", params={"query": each}
                            ) as got:
                                rates += [float(one["value"][1]) for one in (await got.json())["data"]["result"]]
                        except aiohttp.ClientError:
                            break  # it is still starting
