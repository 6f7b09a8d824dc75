"""The work queue against a model that is simple enough to be believed: any order of calls does the same to both."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from random import Random
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trimtab.runtime.limits import Backoff
from trimtab.runtime.workqueue import FAIR_TURN, LOW, WorkQueue
from trimtab.testing.clock import FakeClock


class Model:
    """The same queue, written to be seen through: plain lists, searched from end to end."""

    def __init__(self) -> None:
        self.now = 0.0
        self.numbers = itertools.count()
        self.due: list[Due] = []
        self.delayed: dict[str, Delayed] = {}
        self.held: dict[str, Due | None] = {}  # in work, and what waits for its end
        self.turns = 0

    def add(self, key: str, priority: int) -> None:
        delayed = self.delayed.pop(key, None)
        if delayed is not None:
            priority = max(priority, delayed.priority)
        waiting = self.held[key] if key in self.held else next((due for due in self.due if due.key == key), None)
        if waiting is not None:
            if priority > waiting.priority:
                self._place(Due(key, priority, waiting.since, next(self.numbers)))
        else:
            self._place(Due(key, priority, self.now, next(self.numbers)))

    def add_after(self, key: str, seconds: float, priority: int) -> None:
        if self.held.get(key) or any(due.key == key for due in self.due):
            self.add(key, priority)
            return
        new = Delayed(key, priority, self.now + seconds, next(self.numbers))
        old = self.delayed.get(key, new)
        first = old if old.at <= new.at else new
        self.delayed[key] = Delayed(key, max(old.priority, new.priority), first.at, first.number)

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        for delayed in sorted(self.delayed.values(), key=lambda delayed: (delayed.at, delayed.number)):
            if delayed.at <= end:
                self.now = delayed.at
                self.add(delayed.key, delayed.priority)
        self.now = end

    def get(self) -> str:
        chosen = min(self.due, key=lambda due: (-due.priority, due.number))
        priorities = {due.priority for due in self.due}
        if len(priorities) > 1:
            self.turns += 1
            if self.turns % FAIR_TURN == 0:
                heads = [min((d for d in self.due if d.priority == p), key=lambda d: d.number) for p in priorities]
                chosen = min(heads, key=lambda due: (due.since, due.priority))
        self.due.remove(chosen)
        self.held[chosen.key] = None
        return chosen.key

    def done(self, key: str) -> None:
        waiting = self.held.pop(key)
        if waiting is not None:
            self._place(Due(key, waiting.priority, waiting.since, next(self.numbers)))

    def depth(self) -> dict[int, int]:
        return dict(Counter(due.priority for due in [*self.due, *self.held.values()] if due is not None))

    def _place(self, new: Due) -> None:
        if new.key in self.held:
            self.held[new.key] = new
        else:
            self.due = [*(due for due in self.due if due.key != new.key), new]


class Due(NamedTuple):
    key: str
    priority: int
    since: float
    number: int


class Delayed(NamedTuple):
    key: str
    priority: int
    at: float
    number: int


KEYS = st.sampled_from([f"key-{number}" for number in range(6)])
PRIORITIES = st.sampled_from([LOW, 0, 0, 7])
SECONDS = st.integers(1, 6)


class QueueAgainstModel(RuleBasedStateMachine):
    """Any order of calls: the queue does what the model does."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.queue: WorkQueue[str] = WorkQueue(self.clock, name="model", backoff=Backoff(random=Random(1)))
        self.model = Model()

    @rule(keys=st.lists(KEYS, min_size=1, max_size=8), priority=PRIORITIES)
    def add(self, keys: list[str], priority: int) -> None:
        for key in keys:
            self.queue.add(key, priority)
            self.model.add(key, priority)

    @rule(key=KEYS, seconds=SECONDS, priority=PRIORITIES)
    def add_after(self, key: str, seconds: int, priority: int) -> None:
        async def on_the_loop() -> None:
            self.queue.add_after(key, seconds, priority)

        self.loop.run_until_complete(on_the_loop())
        self.model.add_after(key, seconds, priority)

    @rule(seconds=SECONDS)
    def advance(self, seconds: int) -> None:
        self.loop.run_until_complete(self.clock.advance(seconds))
        self.model.advance(seconds)

    @precondition(lambda self: self.model.due)
    @rule(keys=st.integers(1, 8))
    def get(self, keys: int) -> None:
        for _ in range(min(keys, len(self.model.due))):
            holders = set(self.model.held)
            key = self.loop.run_until_complete(self.queue.get())
            assert key not in holders, "two workers have one key"
            assert key == self.model.get()

    @precondition(lambda self: self.model.held)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.held)))
        self.queue.done(key)
        self.model.done(key)

    @precondition(lambda self: not self.model.due)
    @rule()
    def a_worker_finds_nothing(self) -> None:
        async def look() -> bool:
            worker = asyncio.create_task(self.queue.get())
            await self.clock.settle()
            found = worker.done()
            worker.cancel()
            return found

        assert not self.loop.run_until_complete(look())

    @invariant()
    def depths_agree(self) -> None:
        assert len(self.queue) == len(self.model.due)
        assert self.queue._observe().depth == self.model.depth()

    def teardown(self) -> None:
        """Nothing is lost: after enough time and work, all is quiet, and on both sides alike."""
        try:
            self.advance(6)
            for key in sorted(self.model.held):
                self.queue.done(key)
                self.model.done(key)
            while self.model.due:
                key = self.loop.run_until_complete(self.queue.get())
                assert key == self.model.get()
                self.queue.done(key)
                self.model.done(key)
            assert not self.queue._items
            self.queue.close()
            self.loop.run_until_complete(self.queue.drained())
        finally:
            self.loop.close()


TestQueueAgainstModel = QueueAgainstModel.TestCase
TestQueueAgainstModel.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
