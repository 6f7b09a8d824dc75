"""Many runs at once on one process of controllers, and many CanaryDeployments at rest.

    python bench/peers/delivery_many.py OBJECTS NAMESPACES INTERVAL STEPS   (to profile: it prints the pid of the controllers)

Flow: all are created and become stable; nothing happens for a while; all get another image, one after another within some
seconds, and each goes through its steps; and once more, all in the same moment. How late a check was is read from the
statuses: its time, less what nextCheckTime had said before.
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
    spread: float
    """Seconds from the first release to the last, of those one after another."""


FULL, QUICK = Scale(500, 1, 10, 4, 30.0, 20.0), Scale(50, 1, 2, 2, 2.0, 2.0)


class Wave(NamedTuple):
    """All are released once. CPU is a share of one processor; memory is in bytes."""

    late: list[float]
    """Seconds of each check, sorted."""
    seconds: float
    """From the first change to the end of the last run."""
    succeeded: int
    controllers: float
    server: float
    memory: int


class Idle(NamedTuple):
    """At rest."""

    requests: float
    """A minute."""
    controllers: float
    server: float
    memory: int


class Figures(NamedTuple):
    created: float
    """Seconds until all are stable."""
    idle: Idle
    spread: Wave
    at_once: Wave


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
            say(f"all of them are released within {scale.spread:g} s")
            spread = await _released(at, scale, spaces, 1, scale.spread)
            say("all of them are released at once")
            return Figures(created, idle, spread, await _released(at, scale, spaces, 2))


async def _idle(at: Home, seconds: float) -> Idle:
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
    return Idle(count * 60 / took, shares[0], shares[1], resident_bytes(pids[0]))


async def _released(at: Home, scale: Scale, spaces: list[str], runs: int, spread: float = 0.0) -> Wave:
    """`runs` is how many each will have had then."""
    watcher = Lateness(runs)
    watching = [asyncio.create_task(at.follow(CANARY, space, watcher.seen)) for space in spaces]
    pids = (at.controllers(),), (at.server_pid,)
    used, began = [*map(cpu_seconds, pids)], time.monotonic()

    async def release(number: int) -> None:
        await asyncio.sleep(began + number * spread / scale.objects - time.monotonic())
        await _release(at, spaces, number, f"web:{runs + 1}")

    await _many(range(scale.objects), release)
    await _until_all(at, scale, lambda canary: len(ended(canary)) >= runs)
    took = time.monotonic() - began
    if (at.controllers(),) != pids[0]:
        raise RuntimeError(f"the controllers ended\n{at.server.logs()}")
    shares = [(now - then) / took for now, then in zip(map(cpu_seconds, pids), used, strict=True)]
    for task in watching:
        task.cancel()
    await asyncio.wait(watching)
    return Wave(sorted(watcher.late), took, watcher.succeeded, shares[0], shares[1], resident_bytes(pids[0]))


class Lateness:
    """Reads from each status how late its last check was."""

    def __init__(self, runs: int = 1) -> None:
        """`runs` is how many each will have had."""
        self.late: list[float] = []
        self._runs = runs
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
        if sum(one["outcome"] == "Succeeded" for one in ended(canary)) >= self._runs:
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


async def _release(at: Home, spaces: list[str], number: int, image: str) -> None:
    def another(document: Document) -> None:
        document["spec"]["deployment"]["template"]["spec"]["containers"][0]["image"] = image

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
    given = Scale(*map(int, sys.argv[1:5]), 5.0, 2.0 * int(sys.argv[3]))
    found = measure(given, lambda text: print(text, flush=True))
    for wave in (found.spread, found.at_once):
        print(wave._replace(late=[quantile(wave.late, share) for share in (0.5, 0.9, 0.99, 1)]))
    print(found.created, found.idle)
