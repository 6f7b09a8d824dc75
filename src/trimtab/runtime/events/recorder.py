"""Telling users what happened to an object: events of events.k8s.io/v1, as `kubectl describe` shows them.

    recorder.normal(widget, "Created", "made ConfigMap echo")
    recorder.warning(widget, "DeviceSilent", f"no answer from {address}", action="Connect")

Guarantees: to record never fails, never blocks, and never slows a reconcile down. What is recorded is written by a task
of its own (`async with recorder:`), in order. Repetitions are counted in one event, whose count is written at once the
first time and then every half minute at most; what else is thinned out, and how, is in `series`.

Caveats: events are for people, and may be lost: when the queue is full, when the API fails a few times in a row, and at
once when the namespace is going away or may not be written. Losses are logged once a minute. Record from the event loop
only. What is recorded before the task runs waits for it. Never put a secret in a note.
"""

from __future__ import annotations

import asyncio
import platform
import random
import re
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET

from trimtab.client.protocol import Client, Object
from trimtab.model.clock import Clock, format_micro_time
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Event, EventSeries, ObjectReference
from trimtab.model.logs import log
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.deadline import within
from trimtab.runtime.events.series import Correlator, Said, Series, cut, reference_to
from trimtab.runtime.objects import typed
from trimtab.runtime.tasks import ended

NOTE_MAX, WORD_MAX = 1024, 128  # bytes; of events.k8s.io/v1
NAME_MAX = 253
QUEUE = 1000
REFRESH = 30.0
PAUSES = (0.5, 2.0, 8.0)
FAREWELL = 5.0
PASSING = (429, 500, 502, 503, 504)


class Recorder:
    """Records for one component of one process."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        component: str,
        instance: str = "",
        correlator: Correlator | None = None,
        queue: int = QUEUE,
        chance: random.Random | None = None,
    ) -> None:
        """`component` is a qualified name such as `trimtab.dev/discovery`, `instance` tells its
        processes apart: the host's name when not given."""
        self.component = component
        self.instance = cut(instance or platform.node() or component, WORD_MAX)
        self.lost = 0  # events that nobody will see
        self._client, self._clock = client, clock
        self._chance = chance or random.Random()  # noqa: S311 - jitter
        self._correlator = correlator or Correlator()
        self._room = queue
        self._new: deque[Series] = deque()
        self._repeated: dict[int, Series] = {}
        self._writing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._told: tuple[float, int] | None = None
        self._stamp = 0

    def normal(
        self,
        obj: Object | ObjectReference,
        reason: str,
        note: str,
        *,
        action: str = "",
        related: Object | ObjectReference | None = None,
    ) -> None:
        """Something that should happen did. `reason` is a CamelCase word, `action` what was being done."""
        self._record("Normal", obj, reason, note, action, related)

    def warning(
        self,
        obj: Object | ObjectReference,
        reason: str,
        note: str,
        *,
        action: str = "",
        related: Object | ObjectReference | None = None,
    ) -> None:
        """Something happened that someone should look at."""
        self._record("Warning", obj, reason, note, action, related)

    async def flush(self) -> None:
        """Return when all that was recorded so far is written, counts included, or lost."""
        async with self._writing:
            await self._write(everything=True)

    async def __aenter__(self) -> Recorder:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write what is left, for a few seconds at most."""
        assert self._task is not None  # noqa: S101 - entered before
        try:
            await within(self._clock, FAREWELL, self.flush())
        except TimeoutError:
            log.warning("events may be lost: the API did not take them before the end", component=self.component)
        finally:
            await ended(self._task)
        self._task = None

    def _record(
        self, type_: str, obj: Object | ObjectReference, reason: str, note: str, action: str, related: Any
    ) -> None:
        moment = self._clock.monotonic()
        try:
            said = Said(
                regarding=reference_to(obj),
                type=type_,
                reason=cut(reason, WORD_MAX),
                action=cut(action or reason, WORD_MAX),
                note=cut(note, NOTE_MAX),
                related=None if related is None else reference_to(related),
            )
        except (msgspec.ValidationError, AttributeError, TypeError) as error:
            self._lose("an event about something that is no object", error)
            return
        series, begun = self._correlator.heard(said, self._clock.now(), moment)
        if series is None:
            return  # too much about one object; it was told enough
        if not begun:
            self._repeated[id(series)] = series
        elif len(self._new) >= self._room:
            series.end()
            self._lose("the queue of events is full")
            return
        else:
            self._new.append(series)
        self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            async with self._writing:
                await self._write()
            await self._until_something_is_due()

    async def _until_something_is_due(self) -> None:
        waiting: list[asyncio.Task[Any]] = [asyncio.create_task(self._wake.wait())]
        if self._repeated:
            due = min(series.due for series in self._repeated.values())
            waiting.append(asyncio.create_task(self._clock.sleep(max(due - self._clock.monotonic(), 0))))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await ended(*waiting)

    async def _write(self, everything: bool = False) -> None:
        while self._new:
            await self._create(self._new.popleft())
        now = self._clock.monotonic()
        for series in [series for series in self._repeated.values() if everything or series.due <= now]:
            del self._repeated[id(series)]
            if series.event is not None:
                series.due = self._clock.monotonic() + REFRESH
                await self._count(series, series.event)

    async def _create(self, series: Series) -> None:
        event = self._event(series)

        async def create() -> Event:
            try:
                return await self._client.create(event)
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    raise
                # An earlier attempt got through, and its answer did not.
                return await self._client.get(Event, event.name, event.namespace)

        series.event = await self._send(create)
        if series.event is None:
            series.end()

    async def _count(self, series: Series, event: Event) -> None:
        counted = EventSeries(count=series.count, last_observed_time=format_micro_time(series.last))

        async def patch() -> Event:
            try:
                return await self._client.patch(event, event.replace(series=counted))
            except StatusError as error:
                if error.code == 404:  # it was kept for an hour or so, and is still happening
                    return await self._client.create(self._event(series))
                if error.code != 409:
                    raise
            fresh = typed(await self._client.get(Event, event.name, event.namespace), Event)
            return await self._client.patch(fresh, fresh.replace(series=counted))

        series.event = await self._send(patch) or event

    async def _send(self, act: Callable[[], Awaitable[Event]]) -> Event | None:
        """None when it is given up."""
        problem: Exception
        for pause in (*PAUSES, None):
            try:
                return typed(await act(), Event)
            except StatusError as error:
                problem, passing = error, error.code in PASSING
            except (OSError, TimeoutError) as error:
                problem, passing = error, True
            except Exception as error:
                # A mistake of ours in one event must not silence the others: it is logged with its place.
                log.exception("an event could not be made", component=self.component)
                problem, passing = error, False
            if pause is None or not passing:
                break
            await self._clock.sleep(pause * self._chance.uniform(0.5, 1.0))
        self._lose("an event could not be written", problem)
        return None

    def _event(self, series: Series) -> Event:
        said = series.said
        self._stamp = max(self._stamp + 1, int(series.first.timestamp() * 1_000_000_000))
        ending = f".{self._stamp:x}"
        about = _UNFIT.sub("-", str(said.regarding.name or "").lower())[: NAME_MAX - len(ending)].strip("-.")
        counted = EventSeries(count=series.count, last_observed_time=format_micro_time(series.last))
        return Event(
            metadata=ObjectMeta(name=(about or "event") + ending, namespace=said.regarding.namespace or "default"),
            event_time=format_micro_time(series.first),
            series=counted if series.event is not None else UNSET,
            reporting_controller=self.component,
            reporting_instance=self.instance,
            action=said.action,
            reason=said.reason,
            regarding=said.regarding,
            related=said.related or UNSET,
            note=said.note,
            type=said.type,
        )

    def _lose(self, why: str, problem: Exception | None = None) -> None:
        """Count it, and say so once a minute."""
        self.lost += 1
        now = self._clock.monotonic()
        if self._told is not None and now - self._told[0] < 60:
            return
        before = self._told[1] if self._told else 0
        self._told = (now, self.lost)
        said = str(problem) if isinstance(problem, StatusError) else type(problem).__name__ if problem else ""
        log.warning("events are lost", component=self.component, why=why, error=said[:300], lost=self.lost - before)


_UNFIT = re.compile(r"[^a-z0-9.-]|\.(?=[^a-z0-9])|(?<=\.)[.-]")
