"""Probes one life of a process: first until it has started, then its readiness and its life side by side.

It only asks and tells: what an answer means for the container is the container's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from trimtab.model.clock import Clock
from trimtab.systems.local.pods.probing import Probe, Tally, counted, eager_pauses, probe_of


class Probed(Protocol):
    """A container, as its probes see it."""

    name: str
    spec: Mapping[str, Any]

    async def ask(self, probe: Probe) -> str:
        """ "" when it is well, else what is wrong."""
        ...

    def set_ready(self, ready: bool) -> None: ...

    def set_started(self) -> None: ...

    async def fail(self, which: str, probe: Probe) -> None:
        """End the process."""
        ...


class Prober:
    """`ran` is how many seconds the process has run already, when it is an adopted one."""

    def __init__(self, container: Probed, clock: Clock, tell: Callable[[str, str], None], ran: float) -> None:
        self._container, self._clock, self._tell, self._ran = container, clock, tell, ran

    async def watch(self, *, started: bool, ready: bool) -> None:
        """Until cancelled, or until a probe fails for good. `started` and `ready` are what is known already."""
        startup, readiness, liveness = (probe_of(self._container.spec.get(f"{each}Probe")) for each in PROBES)
        if not started:
            if startup is not None and not await self._begins(startup):
                return
            self._container.set_started()
        if readiness is None:
            self._container.set_ready(True)
        async with asyncio.TaskGroup() as group:
            if readiness is not None:
                group.create_task(self._readies(readiness, ready))
            if liveness is not None:
                group.create_task(self._lives(liveness))

    async def _begins(self, probe: Probe) -> bool:
        tally = Tally()
        await self._delay(probe)
        while tally.verdict is None:
            problem = await self._eagerly(probe)
            tally = self._counted("startup", tally, probe, problem)
        if tally.verdict is False:
            await self._container.fail("startup", probe)
        return tally.verdict

    async def _readies(self, probe: Probe, ready: bool) -> None:
        tally, fresh = Tally(verdict=ready or None), not ready
        await self._delay(probe)
        while True:
            problem = await (self._eagerly(probe) if fresh else self._container.ask(probe))
            tally = self._counted("readiness", tally, probe, problem)
            if tally.verdict is not None:
                self._container.set_ready(tally.verdict)
            if not (fresh and problem):  # else a period has passed already
                fresh = False
                await self._clock.sleep(probe.period)

    async def _lives(self, probe: Probe) -> None:
        tally = Tally()
        await self._delay(probe)
        while True:
            tally = self._counted("liveness", tally, probe, await self._container.ask(probe))
            if tally.verdict is False:
                await self._container.fail("liveness", probe)
                return
            await self._clock.sleep(probe.period)

    def _counted(self, which: str, tally: Tally, probe: Probe, problem: str) -> Tally:
        if problem:
            self._tell("Unhealthy", f"{which} probe of {self._container.name} failed: {problem}")
        return counted(tally, probe, not problem)

    async def _eagerly(self, probe: Probe) -> str:
        """Ask until it succeeds, for one period; the last problem, or ""."""
        problem = ""
        for moment in eager_pauses(probe.period):
            problem = await self._container.ask(probe)
            if not problem:
                return ""
            await self._clock.sleep(moment)
        return problem

    async def _delay(self, probe: Probe) -> None:
        if probe.delay > self._ran:
            await self._clock.sleep(probe.delay - self._ran)


PROBES = ("startup", "readiness", "liveness")
