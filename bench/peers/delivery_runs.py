"""Whole releases on a real local data plane under constant load, beside releases without a canary.

Ours: one that is promoted, one whose version is bad, one whose routes are changed by hand meanwhile, and one whose
controllers are killed again and again. Beside it the same service as a plain Deployment behind the same Envoy, whose
template is changed at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from delivery_home import CANARY, DEPLOYMENT, VIRTUAL_SERVICE, Document, Home, ended, home, phase
from delivery_load import Load, load
from delivery_service import NAMESPACE, PORTS, deployment, plain, reached, rolled_out, template

APP = "shop"
ERRORS = 0.2
"""Of the bad version."""


class Scale(NamedTuple):
    interval: int
    weights: tuple[int, ...]
    edits: int
    """Changes of routes by hand."""
    kills: tuple[str, ...]
    """Phases at whose beginning the controllers are killed, and again at each step."""


FULL = Scale(5, (10, 30, 50), 3, ("Starting", "Progressing", "Promoting"))
QUICK = Scale(1, (10, 50), 1, ("Promoting",))


class Release(NamedTuple):
    """One release under load. `failed` are requests that failed, those of a bad version left out."""

    outcome: str
    seconds: float
    requests: int
    failed: int
    met: int
    """Answers of the new version."""
    hurt: int
    """Requests that failed in a bad version."""
    notes: tuple[float, ...] = ()
    """Seconds until routes were put back, or how often controllers were killed."""


class Figures(NamedTuple):
    promoted: Release
    back: Release
    drift: Release
    killed: Release
    recreated: Release
    rolled: Release
    straight: Release


def measure(scale: Scale, say: Callable[[str], None]) -> Figures:
    return asyncio.run(_measured(scale, say))


async def _measured(scale: Scale, say: Callable[[str], None]) -> Figures:
    async with home("--systems", "delivery", "--local-workloads") as at:
        await at.create(CANARY, NAMESPACE, APP, _spec(scale))
        await at.until(CANARY, NAMESPACE, APP, lambda found: phase(found) == "Stable")
        runs = Runs(at, await reached(at, APP))
        say("a healthy version is released")
        promoted = await runs.release("2")
        say("a bad one")
        back = await runs.release("3", ERRORS)
        say("a healthy one, while its routes are changed by hand")
        drift = await runs.release("4", meanwhile=lambda: edited(at, scale))
        say("a healthy one, while the controllers are killed")
        killed = await runs.release("5", meanwhile=lambda: killing(at, scale))
        say("the same without a canary")
        recreated = await straight(at, "recreated", "2", strategy={"type": "Recreate"})
        rolled = await straight(at, "rolled", "2")
        bad = await straight(at, "straight", "3", ERRORS, least=back.seconds, strategy={"type": "Recreate"})
        return Figures(promoted, back, drift, killed, recreated, rolled, bad)


def _spec(scale: Scale) -> Document:
    few = {"minSamples": 20}
    return {
        "deployment": deployment(APP, "1", 2),
        "service": {"ports": PORTS},
        "analysis": {
            "interval": f"{scale.interval}s",
            "stepWeights": list(scale.weights),
            "threshold": 2,
            "scaleDownDelay": "1s",
            "metrics": [
                {"name": "request-success-rate", "thresholdRange": {"min": 99}, **few},
                {"name": "request-duration", "thresholdRange": {"max": 1000}, **few},
            ],
        },
    }


class Runs:
    """One CanaryDeployment, of which one version after another is released."""

    def __init__(self, at: Home, url: str) -> None:
        self._home, self._url, self._before = at, url, 0

    async def release(
        self, version: str, errors: float = 0.0, meanwhile: Callable[[], Awaitable[tuple[float, ...]]] | None = None
    ) -> Release:
        def changed(document: Document) -> None:
            document["spec"]["deployment"]["template"] = template(APP, version, errors)

        async with load(self._url) as loaded:
            began = time.monotonic()
            await self._home.change(CANARY, NAMESPACE, APP, changed)
            noting = asyncio.ensure_future(meanwhile()) if meanwhile is not None else None
            found = await self._home.until(CANARY, NAMESPACE, APP, lambda each: len(ended(each)) > self._before)
            took = time.monotonic() - began
            notes = await noting if noting is not None else ()
        self._before += 1
        return _release(str(ended(found)[0]["outcome"]), took, loaded, version, errors, notes)


def _release(
    outcome: str, took: float, loaded: Load, version: str, errors: float, notes: tuple[float, ...] = ()
) -> Release:
    hurt = loaded.failed(version) if errors else 0
    return Release(outcome, took, loaded.requests, loaded.failed() - hurt, loaded.of(version), hurt, notes)


async def edited(at: Home, scale: Scale) -> tuple[float, ...]:
    """Give all to the canary by hand, at each step; how long it took until it was put back."""
    took = []
    for number in range(scale.edits):
        step = min(number, len(scale.weights) - 1)
        await at.until(CANARY, NAMESPACE, APP, lambda found, step=step: _verified(found, step))
        began = time.monotonic()
        await at.change(VIRTUAL_SERVICE, NAMESPACE, APP, lambda document: _weigh(document, 100))
        await at.until(VIRTUAL_SERVICE, NAMESPACE, APP, lambda found: _weight(found) != 100)
        took.append(time.monotonic() - began)
    return tuple(took)


async def killing(at: Home, scale: Scale) -> tuple[float, ...]:
    """Kill the controllers when the run enters a phase, and again at each further step; how long they were away."""
    took: list[float] = []
    seen: set[Any] = set()

    async def look(found: Document) -> bool:
        now = phase(found)
        step = now, ((found.get("status") or {}).get("run") or {}).get("step", 0)
        if now in scale.kills and step not in seen:
            seen.add(step)
            began = time.monotonic()
            await at.kill_controllers()
            took.append(time.monotonic() - began)
        return bool(seen) and now == "Stable"

    await at.follow(CANARY, NAMESPACE, look)
    return tuple(took)


async def straight(at: Home, app: str, version: str, errors: float = 0.0, least: float = 2.0, **more: Any) -> Release:
    """The template is changed at once. It is watched for as long as the canary of the same version took."""

    def changed(document: Document) -> None:
        document["spec"]["template"] = template(app, version, errors)

    await plain(at, app, "1", 2, **more)
    await rolled_out(at, app)
    async with load(await reached(at, app)) as loaded:
        began = time.monotonic()
        await at.change(DEPLOYMENT, NAMESPACE, app, changed)
        await rolled_out(at, app)
        took = time.monotonic() - began
        await asyncio.sleep(max(0.5, least - took))
    return _release("Out", took, loaded, version, errors)


def _verified(canary: Document, step: int) -> bool:
    run = (canary.get("status") or {}).get("run") or {}
    return phase(canary) == "Progressing" and run.get("step", 0) >= step and "verified" in run


def _shares(virtual_service: Document) -> list[Document]:
    return list(virtual_service["spec"]["http"][-1]["route"])


def _weigh(virtual_service: Document, weight: int) -> None:
    for share in _shares(virtual_service):
        share["weight"] = weight if share["destination"]["host"].endswith("-canary") else 100 - weight


def _weight(virtual_service: Document) -> int:
    """What the canary gets."""
    return sum(
        share.get("weight", 0) for share in _shares(virtual_service) if share["destination"]["host"].endswith("-canary")
    )


if __name__ == "__main__":
    for name, found in measure(QUICK, lambda text: print(text, flush=True))._asdict().items():
        print(name, found)
