"""The sweep as asyncio sees it: give a job, take batches.

    async with sweeper.sweep(job) as sweep:
        async for batch in sweep:
            ...
    sweep.quality

Guarantees: one thread with one epoll for all jobs, whatever the event loop does meanwhile; one packet budget for all;
a consumer that is cancelled, leaves the block or forgets the sweep stops the job and closes its sockets; a consumer
that does not take its batches slows its own job down and loses nothing.
Assumptions: Linux. A `Sweep` is used in the event loop in which it was made.
"""

from __future__ import annotations

import asyncio
import resource
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

from trimtab.systems.discovery.sweep.job import (
    Answer,
    Batch,
    Job,
    Positions,
    Probe,
    Quality,
    SweepFailed,
)
from trimtab.systems.discovery.sweep.thread import SweepThread

__all__ = ["Answer", "Batch", "Job", "Limits", "Positions", "Probe", "Quality", "Sweep", "SweepFailed", "Sweeper"]

MOST_BATCHES = 8
"""Untaken, after which the thread keeps what comes."""


class Limits(msgspec.Struct, frozen=True):
    """What all jobs of the process have together."""

    packets_per_second: float = 20_000
    sockets: int = 16_000
    """Connections at a time; fewer when the process may not open as many files."""


class Sweeper:
    """From `start` until `close`. One is enough for a process, and the budget holds only within one."""

    def __init__(self, limits: Limits | None = None, *, enter: Callable[[], None] | None = None) -> None:
        """`enter` is called first in the thread: to go to another network namespace, for one."""
        self.limits = limits or Limits()
        self._enter = enter
        self._thread: SweepThread | None = None

    def start(self) -> None:
        """Raises the soft limit of open files as far as it is needed and allowed."""
        if self._thread is None:
            self._thread = SweepThread(
                self.limits.packets_per_second, allowed_sockets(self.limits.sockets), self._enter
            )

    async def close(self) -> None:
        """Sweeps that still run end with SweepFailed."""
        if self._thread is not None:
            self._thread.stop()
            await asyncio.to_thread(self._thread.join)

    def sweep(self, job: Job) -> Sweep:
        """Begins at once."""
        if self._thread is None:
            raise SweepFailed("the sweeper was not started")
        return Sweep(job, self._thread, asyncio.get_running_loop())

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Sweep:
    """One job under way: an iterator over its batches. `quality` is there when they are over."""

    def __init__(self, job: Job, thread: SweepThread, loop: asyncio.AbstractEventLoop) -> None:
        self.quality: Quality | None = None
        self._thread = thread
        self._post = _Post(loop)
        thread.add(job, self._post)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        post = self._post
        while True:
            error, quality = post.error, post.quality  # before the batches: the thread leaves these after the last one
            if post.batches:
                return post.batches.popleft()
            if error is not None:
                raise error
            if quality is not None or post.closed:
                self.quality = quality
                raise StopAsyncIteration
            post.arrived.clear()
            try:
                await post.arrived.wait()
            except asyncio.CancelledError:
                self._stop()
                raise

    async def aclose(self) -> None:
        """Ends the job, if it still runs. When this returns its sockets are closed."""
        self._stop()
        await self._post.gone.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._stop()

    def _stop(self) -> None:
        if not self._post.closed:
            self._post.closed = True
            self._thread.remove(self._post, self._post.went)


class _Post:
    """Where the thread leaves what the event loop takes. It knows nothing of the Sweep, so that one can be forgotten."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.batches: deque[Batch] = deque()
        self.quality: Quality | None = None
        self.error: Exception | None = None
        self.closed = False
        self.arrived = asyncio.Event()
        self.gone = asyncio.Event()
        self._loop = loop

    @property
    def full(self) -> bool:
        return len(self.batches) >= MOST_BATCHES

    def tell(self, batch: Batch) -> None:
        self.batches.append(batch)
        self._call(self.arrived.set)

    def finish(self, quality: Quality) -> None:
        self.quality = quality
        self._call(self.arrived.set)

    def fail(self, error: Exception) -> None:
        self.error = error
        self._call(self.arrived.set)

    def went(self) -> None:
        self._call(self.gone.set)

    def _call(self, function: Callable[[], None]) -> None:
        if not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(function)
            except RuntimeError:  # closed just now: nobody listens any more
                self.closed = True


def allowed_sockets(wanted: int) -> int:
    """How many connections this process may hold at a time, with a reserve for everything else that it does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _RESERVE
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    return max(1, soft - min(_RESERVE, soft // 2))


_RESERVE = 1024
"""Files that the rest of the process may need."""
