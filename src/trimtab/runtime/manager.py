"""Runs controllers: shared informers, one queue each, leadership, events, health; and ends them in order.

Life: `run` opens every controller, which warms its caches; when we lead (or always, without an election) they work; when
the lease is lost they stop at once and stay warm; when `stop` is set they finish what they began, the lease is given
back, and `run` returns. Controllers may be added and removed while it runs.

Guarantees: without the lease nothing is written through a controller's client. A mistake of the runtime itself ends
`run` with its exception: whoever supervises starts anew.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Client
from trimtab.model.clock import Clock, SystemClock
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.controller import Controller
from trimtab.runtime.driver import Driver
from trimtab.runtime.election import Election
from trimtab.runtime.events import Recorder
from trimtab.runtime.guarded import Guarded
from trimtab.runtime.informers import Informers
from trimtab.runtime.metrics import Metrics

GRACE = 30.0


class Manager:
    """Controllers of one client. `name` says who we are in events and logs."""

    def __init__(
        self,
        client: ApiClient,
        *,
        name: str = "trimtab",
        clock: Clock | None = None,
        chance: random.Random | None = None,
        election: Election | None = None,
        metrics: Metrics | None = None,
        grace: float = GRACE,
        streams: bool = True,
    ) -> None:
        """`election` makes only the leader act; `grace` is how long a reconcile may go on after `stop`; `streams` is
        whether lists are asked for as streams first."""
        self.client = client
        self.clock = clock or SystemClock()
        self.metrics = metrics or Metrics()
        self._chance = chance or random.Random()  # noqa: S311 - jitter
        self._election = election
        self._grace = grace
        self.informers = Informers(client, clock=self.clock, chance=self._chance, streams=streams)
        self.events = Recorder(client, self.clock, component=name, chance=self._chance)
        writer: Client = client if election is None else Guarded(client, election)
        self.cached = CachedClient(client, self.informers, writer)
        self._drivers: dict[Controller[Any], Driver] = {}
        self._working: dict[Driver, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._running = False
        self._group: asyncio.TaskGroup | None = None  # while we lead
        self._stopping = asyncio.Event()

    def add(self, controller: Controller[Any]) -> None:
        """Run a controller, from now on or from `run` on."""
        name = controller.name or self.informers.named(controller.kind)[0].kind.lower()
        if any(name == other.name for other in self._drivers):
            raise ValueError(f'there is a controller "{name}" already; set another `name`')
        client = self.cached.within(controller.kind, controller.query)
        controller.bind(name, client, self.clock, self.events)
        driver = Driver(controller, self.informers, clock=self.clock, chance=self._chance, metrics=self.metrics)
        if self._running:
            try:
                driver.open()
            except BaseException:
                self._end_later(driver)  # what it already follows
                raise
        self._drivers[controller] = driver
        self._set_to_work(driver)

    async def remove(self, controller: Controller[Any]) -> None:
        """End a controller: what it began is cut off, and kinds that only it followed are followed no more. That goes on
        when the caller is cancelled meanwhile."""
        driver = self._drivers.pop(controller)
        await asyncio.shield(self._end_later(driver))

    def _end_later(self, driver: Driver) -> asyncio.Task[None]:
        ending = asyncio.create_task(_end(driver, self._working.pop(driver, None)))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending

    @property
    def synced(self) -> bool:
        """Whether every cache is filled."""
        return all(driver.synced for driver in self._drivers.values())

    def check_ready(self) -> None:
        """For a readiness probe: raises with what is missing."""
        missing = [waits for driver in self._drivers.values() if (waits := driver.waits_for)]
        if not self._running or missing:
            raise RuntimeError(f"waits for {', '.join(missing)}" if missing else "is not running")

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Until `stop` is set, or for ever."""
        if self._running:
            raise RuntimeError("the manager runs already")
        self._running = True
        self._stopping = stop or asyncio.Event()
        try:
            async with self.events:
                try:
                    for driver in self._drivers.values():
                        driver.open()
                    await self._act()
                finally:
                    self._running = False
                    await self._close()
        finally:
            self._running = False

    async def _act(self) -> None:
        """Lead until we are to stop, or until an informer breaks."""
        election = self._election
        acting = asyncio.create_task(self._lead() if election is None else election.run(self._lead, self._stopping))
        broken = asyncio.create_task(self.informers.supervise())
        try:
            await asyncio.wait({acting, broken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            acting.cancel()
            broken.cancel()
            await asyncio.wait({acting, broken})
        for task in (broken, acting):
            if not task.cancelled():
                task.result()

    async def _lead(self) -> None:
        """Work until we are to stop; cancelled when the lease is lost."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                try:
                    for driver in self._drivers.values():
                        self._set_to_work(driver)
                    await self._stopping.wait()
                    await self._finish()
                finally:
                    self._group = None
                    for task in self._working.values():
                        task.cancel()
                    self._working.clear()
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _finish(self) -> None:
        """Let what runs come to its end, for a while."""
        for driver, task in self._working.items():
            driver.queue.close(drain=False)
            if not driver.started:
                task.cancel()
        if self._working:
            await asyncio.wait(self._working.values(), timeout=self._grace)

    async def _close(self) -> None:
        try:
            for driver in list(self._drivers.values()):
                await driver.close()
            await asyncio.gather(*self._ending)
        finally:
            await self.informers.close()

    def _set_to_work(self, driver: Driver) -> None:
        if self._group is not None:
            name = f"controller {driver.controller.name}"
            self._working[driver] = self._group.create_task(driver.work(), name=name)


async def _end(driver: Driver, task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait({task})
    await driver.close()
