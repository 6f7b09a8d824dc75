"""Many runs at once on one process of controllers, and many CanaryDeployments at rest.

    python bench/peers/delivery_many.py OBJECTS NAMESPACES INTERVAL STEPS   (to profile: it prints the pid of the controllers)

Flow: all are created and become stable; nothing happens for a while; all get another image in the same moment, and each
goes through its steps. How late a check was is read from the statuses: its time, less what nextCheckTime had said before.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from delivery_home import CANARY, Document, Home, ended, home, phase
from delivery_played import Metrics, played

from trimtab.testing.usage import cpu_seconds, resident_bytes

WRITERS = 16
WINDOW, QUIET = 1.0, 0.03  # at rest is who used at most so many seconds of a processor within the window


class Scale(NamedTuple):
    """How much of everything."""

    objects: int
    namespaces: int
    interval: int
    """Seconds between two checks of a run."""
    steps: int
    idle: float
    """Seconds at rest."""


FULL, QUICK = Scale(500, 1, 10, 5, 60.0), Scale(50, 1, 2, 3, 3.0)


class Figures(NamedTuple):
    """CPU is a share of one processor; memory is in bytes."""

    late: list[float]
    """Seconds of each check, sorted."""
    checks: int
    seconds: float
    """From the first change to the end of the last run."""
    succeeded: int
    controllers: float
    server: float
    memory: int
    created: float
    """Seconds until all are stable."""
    idle_requests: float
    """A minute."""
    idle_controllers: float
    idle_server: float
    idle_memory: int
    queries: int


def measure(scale: Scale, say: Callable[[str], None]) -> Figures:
    return asyncio.run(_measured(scale, say))


async def _measured(scale: Scale, say: Callable[[str], None]) -> Figures:
    metrics = Metrics()
    spaces = [f"team-{number}" for number in range(scale.namespaces)]
    async with metrics.served() as url, home("--systems", "delivery", "--prometheus", url) as at:
        for space in spaces:
            await at.namespace(space)
        async with played(at, spaces):
            say(f"{scale.objects} CanaryDeployments become stable (controllers: {at.controllers()})")
            began = time.monotonic()
            await _many(range(scale.objects), lambda number: _create(at, scale, spaces, number))
            await _until_all(at, scale, lambda canary: phase(canary) == "Stable")
            created = time.monotonic() - began
            say("nothing happens")
            idle = await _idle(at, scale.idle)
            say("all of them are released")
            return Figures(*(await _released(at, scale, spaces)), created, *idle, metrics.queries)


async def _idle(at: Home, seconds: float) -> tuple[float, float, float, int]:
    pids = (at.controllers(),), (at.server_pid,)
    asked = await at.requests()
    while True:  # events are sent when there is time
        before, then = cpu_seconds(pids[0]), sum(asked.values())
        await asyncio.sleep(WINDOW)
        asked = await at.requests()
        if cpu_seconds(pids[0]) - before <= QUIET and sum(asked.values()) - then <= 1:
            break
    asked, used, began = await at.requests(), [*map(cpu_seconds, pids)], time.monotonic()
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    shares = [(now - then) / took for now, then in zip(map(cpu_seconds, pids), used, strict=True)]
    count = sum((await at.requests()).values()) - sum(asked.values()) - 1  # the question itself
    return count * 60 / took, shares[0], shares[1], resident_bytes(pids[0])


async def _released(
    at: Home, scale: Scale, spaces: list[str]
) -> tuple[list[float], int, float, int, float, float, int]:
    watcher = Lateness()
    watching = [asyncio.create_task(at.follow(CANARY, space, watcher.seen)) for space in spaces]
    pids = (at.controllers(),), (at.server_pid,)
    used, began = [*map(cpu_seconds, pids)], time.monotonic()
    await _many(range(scale.objects), lambda number: _release(at, spaces, number))
    await _until_all(at, scale, lambda canary: bool(ended(canary)))
    took = time.monotonic() - began
    if (at.controllers(),) != pids[0]:
        raise RuntimeError(f"the controllers ended\n{at.server.logs()}")
    shares = [(now - then) / took for now, then in zip(map(cpu_seconds, pids), used, strict=True)]
    for task in watching:
        task.cancel()
    await asyncio.wait(watching)
    return (
        sorted(watcher.late),
        len(watcher.late),
        took,
        watcher.succeeded,
        shares[0],
        shares[1],
        resident_bytes(pids[0]),
    )


class Lateness:
    """Reads from each status how late its last check was."""

    def __init__(self) -> None:
        self.late: list[float] = []
        self._next: dict[tuple[str, str], datetime] = {}
        self._last: dict[tuple[str, str], str] = {}
        self._succeeded: set[tuple[str, str]] = set()

    @property
    def succeeded(self) -> int:
        return len(self._succeeded)

    async def seen(self, canary: Document) -> None:
        key = canary["metadata"]["namespace"], canary["metadata"]["name"]
        run = (canary.get("status") or {}).get("run") or {}
        checks = run.get("checks") or ()
        if checks and checks[0]["time"] != self._last.get(key) and key in self._next:
            self._last[key] = checks[0]["time"]
            self.late.append((datetime.fromisoformat(checks[0]["time"]) - self._next[key]).total_seconds())
        if "nextCheckTime" in run:
            self._next[key] = datetime.fromisoformat(run["nextCheckTime"])
        if any(one["outcome"] == "Succeeded" for one in ended(canary)):
            self._succeeded.add(key)


async def _until_all(at: Home, scale: Scale, holds: Callable[[Document], bool]) -> None:
    """Asked seldom: whoever is asked has work to do."""
    while sum(holds(found.raw) for found in (await at.client.list(CANARY)).items) < scale.objects:
        if not at.controllers():
            raise RuntimeError(f"the controllers ended\n{at.server.logs()}")
        await asyncio.sleep(2 if scale.objects > 100 else 0.3)


async def _create(at: Home, scale: Scale, spaces: list[str], number: int) -> None:
    name = f"web-{number}"
    weights = [round(50 * (step + 1) / scale.steps) for step in range(scale.steps)]
    spec = {
        "deployment": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 8080}]}]},
            },
        },
        "service": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        "analysis": {
            "interval": f"{scale.interval}s",
            "stepWeights": weights,
            "scaleDownDelay": "1s",
            "metrics": [{"name": "request-success-rate", "thresholdRange": {"min": 99}}],
        },
    }
    await at.create(CANARY, spaces[number % len(spaces)], name, spec)


async def _release(at: Home, spaces: list[str], number: int) -> None:
    def another(document: Document) -> None:
        document["spec"]["deployment"]["template"]["spec"]["containers"][0]["image"] = "web:2"

    await at.change(CANARY, spaces[number % len(spaces)], f"web-{number}", another)


async def _many(numbers: Iterable[int], work: Callable[[int], Awaitable[None]]) -> None:
    shared = iter(numbers)

    async def worker() -> None:
        for number in shared:
            await work(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WRITERS):
            tasks.create_task(worker())


def quantile(values: list[float], share: float) -> float:
    """Of sorted values."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


if __name__ == "__main__":
    given = Scale(*map(int, sys.argv[1:5]), 10.0)
    found = measure(given, lambda text: print(text, flush=True))
    print(found._replace(late=[quantile(found.late, share) for share in (0.5, 0.9, 0.99, 1)]))
