"""What the thread of the sweeps does: one epoll loop for all jobs of the process.

A turn: sleep until something is readable or due; read everything that is; expire what was due before that reading
began; send what the budget allows, in fair shares; tell what is new.

Guarantees: nothing counts as silent unless all that had arrived by its deadline was read; time in which the thread got
no processor counts for no deadline; a job that fails takes no other with it.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from trimtab.systems.discovery.sweep.attention import Attention
from trimtab.systems.discovery.sweep.budget import Bucket, share
from trimtab.systems.discovery.sweep.job import Batch, Job, Quality, SweepFailed
from trimtab.systems.discovery.sweep.sockets import Sockets
from trimtab.systems.discovery.sweep.task import Task

EVERY = 0.02
"""Seconds between two batches of a job."""
MOST_EVENTS = 4096
MOST_SENDS = 512
"""In one turn, so that answers are read between them."""


class Listener(Protocol):
    """Who asked for a job. All is called in the thread, and must not block."""

    @property
    def full(self) -> bool:
        """Whether batches lie there that nobody has taken."""
        ...

    def tell(self, batch: Batch) -> None: ...

    def finish(self, quality: Quality) -> None: ...

    def fail(self, error: Exception) -> None: ...


class Loop:
    """All that the thread has. Only `commands` may be touched by others: append, then write to `wake`."""

    def __init__(self, rate: float, limit: int, wake: int, commands: deque[Callable[[Loop], None]]) -> None:
        now = monotonic()
        self._sockets = Sockets(limit)
        self._tasks: dict[Listener, Task] = {}
        self._commands = commands
        self._wake = wake
        self._bucket = Bucket(rate, now)
        self._attention = Attention(now)
        self._told = now
        self._turn = 0
        self._stopping = False
        self._sockets.epoll.register(wake, select.EPOLLIN)

    def begin(self, job: Job, listener: Listener) -> None:
        try:
            self._tasks[listener] = Task(job, self._sockets, monotonic())
        except Exception as error:  # of the job's own addresses
            listener.fail(_broken(error))

    def drop(self, listener: Listener) -> None:
        task = self._tasks.pop(listener, None)
        if task is not None:
            task.close()

    def stop(self) -> None:
        self._stopping = True

    def run(self) -> None:
        while not self._stopping:
            slept = monotonic()
            asked = self._rest(slept)
            events = self._sockets.epoll.poll(asked, MOST_EVENTS)
            now = monotonic()
            lag = self._attention.heard(slept, asked, now)
            for task in self._tasks.values():
                task.worst_lag = max(task.worst_lag, lag)
            if self._read(events):
                self._expire(self._attention.time(slept))
            self._send(now)
            self._tell(now)

    def close(self, error: Exception) -> None:
        for listener, task in self._tasks.items():
            task.close()
            listener.fail(error)
        self._tasks.clear()
        self._sockets.epoll.close()

    def _rest(self, now: float) -> float | None:
        """Seconds that nothing needs to be done; None when only an event can change that."""
        time = self._attention.time(now)
        rests: list[float] = []
        for task in self._tasks.values():
            rest = task.rest(time, self._bucket)
            if rest is not None:
                rests.append(rest)
            deadline = task.deadline
            if deadline is not None:
                rests.append(deadline - time)
            rests.append(EVERY)
        return max(0.0, min(rests)) if rests else None

    def _read(self, events: list[tuple[int, int]]) -> bool:
        """Whether that was all there was."""
        everything = len(events) < MOST_EVENTS
        for fd, mask in events:
            lane = self._sockets.watched.get(fd)
            if lane is not None:
                try:
                    everything &= lane.ready(fd, mask)
                except Exception as error:  # of the job's own functions
                    self._fail(lane.owner, error)
            elif fd == self._wake:
                os.eventfd_read(fd)
                while self._commands:
                    self._commands.popleft()(self)
        return everything

    def _expire(self, time: float) -> None:
        for task in self._tasks.values():
            task.expire(time)

    def _send(self, now: float) -> None:
        time = self._attention.time(now)
        left = MOST_SENDS
        while left > 0:
            tasks = list(self._tasks.values())
            available = min(left, self._bucket.available(now))
            grants = share(available, [task.wants(time, now) for task in tasks], self._turn)
            self._turn += 1
            if not any(grants):
                return
            for task, grant in zip(tasks, grants, strict=True):
                if grant:
                    try:
                        sent = task.send(grant, time)
                    except Exception as error:  # of the job's own addresses
                        self._fail(task, error)
                        continue
                    self._bucket.spend(sent)
                    left -= max(1, sent)

    def _tell(self, now: float) -> None:
        due = now - self._told >= EVERY
        if due:
            self._told = now
        for listener, task in list(self._tasks.items()):
            if (due or task.finished) and not listener.full:
                news = task.news()
                if news is not None:
                    listener.tell(news)
                if task.finished:
                    self.drop(listener)
                    listener.finish(task.quality(now))

    def _fail(self, owner: object, error: Exception) -> None:
        """One job; the others go on."""
        for listener, task in list(self._tasks.items()):
            if task is owner:
                self.drop(listener)
                listener.fail(_broken(error))


def _broken(error: Exception) -> SweepFailed:
    failure = SweepFailed(f"the sweep broke off: {error}")
    failure.__cause__ = error
    return failure
