"""One process, and every order of steps that hypothesis can think of: reads and writes stop inside the service until they are
let go on, one at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Awaitable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.hub.cache.history import Event, violations
from tests.hub.cache.service import document
from tests.hub.cache.simulated import DELETED, NAMES, PROJECTS, TYPE, Recorded
from trimtab.hub.cache.caches import Caches
from trimtab.hub.cache.generations import Change, revision_of
from trimtab.hub.contract import ApplyOptions, DeleteOptions, GetOptions, HubError, ListOptions, Missing
from trimtab.hub.proxies.cached import Cached

projects, names = st.sampled_from(PROJECTS), st.sampled_from(NAMES)


class Interleaved(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self._begin())
        self.ticks = itertools.count(1)
        self.history: list[Event] = []
        self.held: list[asyncio.Future[None]] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def _begin(self) -> None:
        self.service = Recorded(random.Random(0))
        self.service.pause = self._hold
        self.caches = Caches()
        self.cached = Cached(self.service, TYPE, self.caches)

    async def _hold(self, where: str) -> None:
        gate: asyncio.Future[None] = self.loop.create_future()
        self.held.append(gate)
        try:
            await gate
        finally:  # also when who waits has given up
            if gate in self.held:
                self.held.remove(gate)

    @rule(project=projects, name=names)
    def get(self, project: str, name: str) -> None:
        async def act(began: int) -> None:
            try:
                revision = revision_of(await self.cached.get(name, GetOptions(project=project)))
            except Missing:
                revision = self.service.deletions.get((project, name), 0)
            self.record("read", (project, name), began, revision)

        self.start(act(next(self.ticks)))

    @rule(project=st.none() | projects)
    def list(self, project: str | None) -> None:
        async def act(began: int) -> None:
            options = ListOptions(all_projects=True) if project is None else ListOptions(project=project)
            page = await self.cached.list(options)
            seen = {(hub["metadata"]["project"], hub["metadata"]["name"]): revision_of(hub) for hub in page.items}
            for key in itertools.product(PROJECTS if project is None else (project,), NAMES):
                self.record("read", key, began, seen.get(key, self.service.deletions.get(key, 0)))

        self.start(act(next(self.ticks)))

    @rule(project=projects, name=names)
    def apply(self, project: str, name: str) -> None:
        async def act(began: int) -> None:
            applied = await self.cached.apply(document(name), ApplyOptions(project=project))
            self.record("write", (project, name), began, revision_of(applied))

        self.start(act(next(self.ticks)))

    @rule(project=projects, name=names)
    def delete(self, project: str, name: str) -> None:
        async def act(began: int) -> None:
            told: list[int] = []
            DELETED.set(told)
            with contextlib.suppress(HubError):
                await self.cached.delete(name, DeleteOptions(project=project))
                self.record("write", (project, name), began, told[0])

        self.start(act(next(self.ticks)))

    @rule(project=projects, name=names)
    def told_by_the_log(self, project: str, name: str) -> None:
        if (found := self.service.rows.get((project, name))) is not None:
            self.caches.news(Change.of(TYPE, "default", found))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        self.held.pop(data.draw(st.integers(0, len(self.held) - 1))).set_result(None)
        self.settle()

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        self.tasks[data.draw(st.integers(0, len(self.tasks) - 1))].cancel()
        self.settle()

    @invariant()
    def nothing_is_older_than_an_acknowledged_write(self) -> None:
        assert list(violations(self.history)) == []

    def start(self, work: Awaitable[None]) -> None:
        task = self.loop.create_task(work)  # type: ignore[arg-type]
        self.tasks.append(task)
        task.add_done_callback(self.tasks.remove)
        self.settle()

    def settle(self) -> None:
        async def rounds() -> None:
            for _ in range(12):
                await asyncio.sleep(0)

        self.loop.run_until_complete(rounds())

    def record(self, op: str, key: tuple[str, str], began: int, revision: int) -> None:
        self.history.append(Event(op, "/".join(key), began, next(self.ticks), revision))

    def teardown(self) -> None:
        while self.held:
            self.held.pop().set_result(None)
            self.settle()
        assert not self.tasks
        assert list(violations(self.history)) == []
        self.loop.close()


TestInterleaved = pytest.mark.row(36)(pytest.mark.row(38)(Interleaved.TestCase))
TestInterleaved.settings = settings(max_examples=50, stateful_step_count=40)
