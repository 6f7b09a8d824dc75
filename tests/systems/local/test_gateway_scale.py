"""Many releases in one data plane: a change of one is as quick as if it were alone, nearly."""

from __future__ import annotations

import asyncio
import statistics
import time

import pytest

from tests.systems.local.gateway_kit import Gateway, client, gateway, scheme, server, to

__all__ = ["client", "gateway", "scheme", "server"]

RELEASES = 200


@pytest.mark.dataplane
async def test_a_weight_is_live_soon_among_many_releases(gateway: Gateway) -> None:
    for number in range(RELEASES):
        for name in (f"web{number}", f"web{number}-canary"):
            await gateway.service(name)
            await gateway.pod(name, name, f"127.99.{number}.{1 + ('canary' in name)}")
        await gateway.virtual_service(f"web{number}", [to((f"web{number}", 100), (f"web{number}-canary", 0))])
    async with gateway.working():
        began = time.perf_counter()
        for number in range(RELEASES):
            await gateway.live(f"web{number}")
        await gateway.address(f"web{RELEASES - 1}")
        first = time.perf_counter() - began
        for number in range(RELEASES):
            await gateway.address(f"web{number}-canary")
        took = []
        for weight in range(1, 21):
            began = time.perf_counter()
            await gateway.route("web7", [to(("web7", 100 - weight), ("web7-canary", weight))])
            assert (await gateway.live("web7"))["status"] == "True"
            took.append(time.perf_counter() - began)
        print(f"{RELEASES} releases: all live after {first:.1f} s; a weight in the status after", end=" ")
        print(f"{statistics.median(took) * 1000:.1f} ms (median), {max(took) * 1000:.1f} ms (worst)")
        await asyncio.sleep(0)
        assert statistics.median(took) < 0.25
