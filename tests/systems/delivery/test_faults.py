"""An API that fails now and then, a Prometheus that is away for a while, and a clock that jumps: a release comes to its end
all the same, and breaks none of its laws."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.systems.delivery.crash_kit import patient
from tests.systems.delivery.hours import IdleClock
from tests.systems.delivery.stage import Stage, condition
from tests.systems.delivery.witness import Laws, Witness
from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply, Transport, Unreachable
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Deployment

pytestmark = pytest.mark.slow

STEPS, INTERVAL = (10, 50), 10.0
ANALYSIS = {"errorLimit": 100}
"""A source that is away ends no run."""


class Flaky:
    """A transport on which one of so many calls fails: refused in one of many ways, or lost, before its effect or after
    it. Watches break, too."""

    def __init__(self, inner: Transport, seed: int, one_of: int = 3) -> None:
        self._inner, self._chance, self._one_of = inner, random.Random(seed), one_of
        self.failed = 0

    async def call(self, call: Call) -> Reply:
        if self._chance.randrange(self._one_of):
            return await self._inner.call(call)
        self.failed += 1
        how = self._chance.choice(["409", "500", "503", "429", "before", "after"])
        if how == "after":
            await self._inner.call(call)
        if how in ("before", "after") or (how == "409" and call.method == "GET"):
            raise Unreachable("lost on purpose")
        raise StatusError(int(how), "", "failed on purpose")

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        left = self._chance.randrange(5, 40)
        async for piece in self._inner.stream(call, inactivity):
            yield piece
            left -= 1
            if not left:
                raise Unreachable("broken on purpose")

    async def close(self) -> None:
        """It is the test's."""


class Jumping(IdleClock):
    """A clock that someone sets: what time it is jumps, and how much time passes does not."""

    jumped = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.jumped)


@pytest.fixture
async def watched(here: Stage) -> AsyncGenerator[Witness, None]:
    patient(here)
    witness = Witness(here.client, here.namespace)
    async with witness.watching():
        yield witness


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bad", [False, True], ids=["good", "bad"])
async def test_a_release_ends_well_on_an_api_that_fails_now_and_then(
    here: Stage, watched: Witness, seed: int, bad: bool
) -> None:
    here.gauge.rates = lambda workload: (10.0, 0.2 if bad and workload.endswith("-canary") else 0.0)
    wire = Flaky(here.client.transport, seed)
    flaky = ApiClient(wire, here.client.scheme, namespace=here.client.namespace)
    async with here.working(client=flaky):
        await here.stable()
        await here.image("web:2")
        canary = await here.ended("Failed" if bad else "Succeeded")
        await here.until_gone(Deployment, "web-canary")
    assert wire.failed > 5
    assert len(canary.status.history) == 1
    assert not Laws("web", STEPS, INTERVAL).judge(watched.told())
    document = await here.document(Deployment)
    assert document["spec"]["template"]["spec"]["containers"][0]["image"] == ("web:1" if bad else "web:2")


async def test_a_prometheus_that_is_away_for_a_while_only_makes_a_release_wait(here: Stage, watched: Witness) -> None:
    async with here.working():
        await here.stable(analysis=ANALYSIS)
        await here.image("web:2")
        await here.until(lambda status: status.run and status.run.verified_weight == 10)
        here.gauge.down = True
        away = await here.until(lambda status: status.run and status.run.counters.errors >= 3)
        assert condition(away, "MetricsAvailable").status == "False"  # type: ignore[union-attr]
        assert away.status.run.weight == 10
        here.gauge.down = False
        canary = await here.ended("Succeeded")
    assert condition(canary, "MetricsAvailable").status == "True"  # type: ignore[union-attr]
    assert [weight for _, weight in here.players.weights] == [0, 10, 50, 0]
    assert not Laws("web", STEPS, INTERVAL, retry=0.1).judge(watched.told())


async def test_a_prometheus_that_stays_away_rolls_a_release_back(here: Stage, watched: Witness) -> None:
    async with here.working():
        await here.stable(analysis={"errorLimit": 3})
        await here.image("web:2")
        await here.until(lambda status: status.run and status.run.verified_weight == 10)
        here.gauge.down = True
        canary = await here.ended("Failed")
    assert canary.status.history[0].reason in ("AnalysisError", "MetricsUnavailable"), canary.status.history[0]


@pytest.mark.parametrize("hours", [-1, 1])
@pytest.mark.parametrize("moment", ["Starting", "Progressing", "Finalising"])
async def test_a_clock_that_jumps_neither_hurries_a_release_nor_stops_it(
    here: Stage, watched: Witness, hours: int, moment: str
) -> None:
    clock: Any = Jumping(here.busy)
    here.clock = here.gauge._clock = clock
    here.gauge._began -= 7200.0  # it has counted for long
    if moment == "Starting":
        here.players.broken.add("web:2")
    async with here.working():
        await here.stable(progressDeadline="2h")
        await here.image("web:2")
        await here.until(lambda status: status.phase == moment)
        began = clock.monotonic()
        clock.jumped = hours * 3600.0
        if moment == "Starting":
            here.players.broken.clear()
            await here.players.nudge()
        canary = await here.ended("Succeeded")
    took = clock.monotonic() - began
    assert took < 1200, f"it took {took} s"
    least = {"Starting": 2 * INTERVAL, "Progressing": 2 * INTERVAL if hours < 0 else INTERVAL, "Finalising": 0.0}
    assert took >= least[moment] - 1, f"it took {took} s"
    assert [weight for _, weight in here.players.weights] == [0, 10, 50, 0]
    assert canary.status.history[0].outcome == "Succeeded"


async def test_a_restart_checks_no_earlier(here: Stage, watched: Witness) -> None:
    async with here.working():
        await here.stable()
        await here.image("web:2")
        await here.until(lambda status: status.run and status.run.next_check_time)
    for _ in range(5):
        async with here.working():
            await here.quiet()
            found = await here.get()
            assert not found.status.run.checks
    async with here.working():
        await here.ended("Succeeded")
    assert not Laws("web", STEPS, INTERVAL).judge(watched.told())
