"""How far a piece of work has come, told in a status at most once a second; command line bars watch it there.

Flow: `report` as often as you like: it only notes the figures and starts a writer when none is under way. The writer
sends the newest figures and drops those in between. `finish`, or the end of `async with`, writes the last ones.

Guarantees: writes are never nearer than `every` seconds, but for the last one; the last figures are always tried. What
goes wrong in writing never fails the work: it is logged, once until a write succeeds again. No write is waited for
longer than `patience` seconds.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import TracebackType
from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from trimtab.model.clock import Clock, format_micro_time, parse_time
from trimtab.model.logs import log
from trimtab.model.resource import Spec
from trimtab.runtime.deadline import within

MAX_NOTE = 256

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class ProgressStatus(Spec):
    """A field of a status. Both times come from one clock that does not jump, so their difference is true."""

    done: Annotated[int, Meta(ge=0, description="How much is done.")]
    total: Annotated[int, Meta(ge=0, description="How much there is to do, as far as known.")] | UnsetType = UNSET
    note: Annotated[str, Meta(max_length=MAX_NOTE, description="What is being done.")] | UnsetType = UNSET
    started: Annotated[Time, Meta(description="When the work began.")]
    updated: Annotated[Time, Meta(description="When it had come this far.")]


def throughput(status: ProgressStatus) -> float | None:
    """How much was done in a second, since the start; None when there is no telling yet."""
    seconds = (parse_time(status.updated) - parse_time(status.started)).total_seconds()
    return status.done / seconds if seconds > 0 and status.done else None


class Progress:
    """Of one piece of work, from its construction to `finish`. Report from the thread of the event loop."""

    def __init__(
        self,
        write: Callable[[ProgressStatus], Awaitable[object]],
        clock: Clock,
        *,
        every: float = 1.0,
        patience: float = 10.0,
    ) -> None:
        self._write = write
        self._clock = clock
        self._every = every
        self._patience = patience
        self._began, self._start = clock.now(), clock.monotonic()
        self._latest: tuple[int, int | None, str, float] | None = None  # done, total, note, at
        self._written: tuple[int, int | None, str, float] | None = None
        self._not_before = -math.inf
        self._writer: asyncio.Task[None] | None = None
        self._writing = False
        self._failing = False
        self._finished = False

    def report(self, done: int, total: int | None = None, note: str = "") -> None:
        """So much is done. What comes after `finish` is not written."""
        self._latest = (done, total, note, self._clock.monotonic())
        if self._writer is None and not self._finished:
            self._writer = asyncio.create_task(self._follow())

    async def finish(self) -> None:
        """Write what was reported last, if it is not written yet."""
        self._finished = True
        writer, self._writer = self._writer, None
        if writer is not None:
            if not self._writing:
                writer.cancel()
            await asyncio.wait({writer})
        if self._latest is not self._written:
            await self._send()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.finish()

    async def _follow(self) -> None:
        tried = None
        while tried is not self._latest and not self._finished:
            await self._clock.sleep(self._not_before - self._clock.monotonic())
            tried = self._latest
            await self._send()
        self._writer = None

    async def _send(self) -> None:
        if self._latest is None:
            return
        sent = self._latest
        self._not_before = self._clock.monotonic() + self._every
        self._writing = True
        try:
            await within(self._clock, self._patience, self._tell(self._status(*sent)))
            self._written = sent
            self._failing = False
        except Exception as error:  # whatever it is, the work matters more
            if not self._failing:
                log.warning("progress cannot be written; the work goes on", error=str(error), kind=type(error).__name__)
            self._failing = True
        finally:
            self._writing = False

    async def _tell(self, status: ProgressStatus) -> None:
        await self._write(status)

    def _status(self, done: int, total: int | None, note: str, at: float) -> ProgressStatus:
        return ProgressStatus(
            done=max(done, 0),
            total=UNSET if total is None else max(total, 0),
            note=note[:MAX_NOTE] or UNSET,
            started=format_micro_time(self._began),
            updated=format_micro_time(self._began + timedelta(seconds=at - self._start)),
        )
