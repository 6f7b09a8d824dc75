"""The data plane under load: shares are as declared, changes are quick, and no request is lost."""

from __future__ import annotations

import asyncio
import statistics
import time

import pytest

from tests.systems.local.gateway_kit import Gateway, client, gateway, scheme, server, to, wrk
from trimtab.model.kubernetes import Service
from trimtab.systems.local.gateway.addresses import ENDPOINTS

__all__ = ["client", "gateway", "scheme", "server"]

pytestmark = pytest.mark.dataplane


async def counted(gateway: Gateway, workload: str) -> int:
    """Requests that a workload answered, by the metrics."""
    assert gateway.controller is not None
    text = (await gateway.controller.metrics()).decode()
    start = f'istio_requests_total{{reporter="destination",destination_workload="{workload}",'
    return sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(start))


async def alone(gateway: Gateway, service: str, pod: str) -> None:
    """Until Envoy knows of this pod and of no other."""
    place = gateway.places[pod]
    await gateway.until(Service, service, lambda each: each.metadata.annotations[ENDPOINTS] == place)


async def test_a_tenth_of_the_requests_is_a_tenth(gateway: Gateway) -> None:
    for name in ("web", "web-canary"):
        await gateway.service(name)
        await gateway.quick(name, f"{name}-1")
    await gateway.virtual_service("web", [to(("web", 90), ("web-canary", 10))])
    async with gateway.working():
        url = await gateway.serving("web")
        await gateway.live("web")
        before = [await counted(gateway, name) for name in ("web", "web-canary")]
        load = await (await wrk(url, 6))
        stable, canary = [
            await counted(gateway, name) - was for name, was in zip(("web", "web-canary"), before, strict=True)
        ]
        print(f"{load['requests']} requests, {canary / (stable + canary):.4f} to the canary")
        assert load["errors"] == 0
        assert set(load["answers"]) == {"200"}
        assert stable + canary >= 20_000
        assert abs(canary / (stable + canary) - 0.10) < 0.01
        assert abs(stable + canary - load["requests"]) <= 16  # those on their way when wrk stopped


async def test_a_weight_is_live_within_50_ms_under_load(gateway: Gateway) -> None:
    for name in ("web", "web-canary"):
        await gateway.service(name)
        await gateway.quick(name, f"{name}-1")
    await gateway.virtual_service("web", [to(("web", 100), ("web-canary", 0))])
    async with gateway.working() as controller:
        url = await gateway.serving("web")
        await gateway.live("web")
        running = await wrk(url, 4)
        echoed, told = [], []
        for weight in range(1, 21):
            began = time.perf_counter()
            await gateway.route("web", [to(("web", 100 - weight), ("web-canary", weight))])
            file = "routes/mesh.json"
            while True:
                version = controller._files.version(file)
                if (
                    controller._teller._echoed.get("mesh") == version
                    and f'"weight":{weight}' in (controller._files.folder / file).read_text()
                ):
                    break
                await asyncio.sleep(0)
            echoed.append(time.perf_counter() - began)
            await gateway.live("web")
            told.append(time.perf_counter() - began)
        load = await running
        print(
            f"echoed: median {statistics.median(echoed) * 1000:.1f} ms, worst {max(echoed) * 1000:.1f} ms; "
            f"in the status: median {statistics.median(told) * 1000:.1f} ms, worst {max(told) * 1000:.1f} ms"
        )
        assert load["errors"] == 0
        assert set(load["answers"]) == {"200"}
        assert statistics.median(echoed) < 0.05
        assert statistics.median(told) < 0.5


async def test_no_request_is_lost_while_pods_are_swapped_and_weights_move(gateway: Gateway) -> None:
    for name in ("web", "web-canary"):
        await gateway.service(name)
    processes = {f"{name}-0": await gateway.quick(name, f"{name}-0") for name in ("web", "web-canary")}
    await gateway.virtual_service("web", [to(("web", 50), ("web-canary", 50))])
    async with gateway.working():
        url = await gateway.serving("web")
        await gateway.live("web")
        running = await wrk(url, 8)
        for turn in range(1, 9):
            for name in ("web", "web-canary"):
                processes[f"{name}-{turn}"] = await gateway.quick(name, f"{name}-{turn}")
                old = f"{name}-{turn - 1}"
                await gateway.gone(old)
                await alone(gateway, name, f"{name}-{turn}")
                processes.pop(old).terminate()
            await gateway.route("web", [to(("web", 50 + 5 * turn), ("web-canary", 50 - 5 * turn))])
            await gateway.live("web")
        load = await running
        print(f"{load['requests']} requests over 16 swaps and 8 changes of weight: {load['answers']}")
        assert load["errors"] == 0
        assert set(load["answers"]) == {"200"}
