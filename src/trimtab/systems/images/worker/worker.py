"""Takes messages from the queue and has them done, several at once, until it is stopped.

Guarantees: a message is settled as its handler ended: done is `ack`, Later and errors are `nak` with a delay, what cannot be
read is `term`. How often it was delivered is looked at before it is handled, so that one which kills workers ends too: the
last delivery is not handled but given up. A message is extended while its handler works. A worker that is stopped hands
back what it has. A queue that is away is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import msgspec

from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.runtime.queue import Message as Delivery
from trimtab.runtime.queue import Queue, QueueUnavailable
from trimtab.runtime.queue.contract import MAX_DELIVERIES
from trimtab.runtime.tasks import ended
from trimtab.systems.images.messages import (
    CATALOG,
    SBOMS,
    SCANS,
    CreateCatalog,
    GenerateSBOM,
    Message,
    ScanSBOM,
    Unreadable,
    decode,
)
from trimtab.systems.images.worker.handling import Handler, Later, Tools
from trimtab.systems.images.worker.hold import SILENT

DEADLINE = 60.0
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0
GIVING_UP = 4
AWAY = 2.0
KINDS: Mapping[str, type[Message]] = {CATALOG: CreateCatalog, SBOMS: GenerateSBOM, SCANS: ScanSBOM}


def worker(
    tools: Tools,
    queue: Queue,
    *,
    catalogs: int = 2,
    sboms: int = 8,
    scans: int = 2,
    silent: float = SILENT,
) -> Worker:
    """One that does all there is to do. After `silent` seconds without a word it takes the runs of other workers."""
    from trimtab.systems.images.worker.catalog import CatalogHandler
    from trimtab.systems.images.worker.sboms import SbomHandler
    from trimtab.systems.images.worker.scans import ScanHandler

    handlers: dict[str, Handler[Any]] = {
        CATALOG: CatalogHandler(tools, silent=silent),
        SBOMS: SbomHandler(tools),
        SCANS: ScanHandler(tools),
    }
    return Worker(tools, queue, handlers, catalogs=catalogs, sboms=sboms, scans=scans)


class Worker:
    """`handlers` are by subject; a subject without one is left to others."""

    def __init__(
        self,
        tools: Tools,
        queue: Queue,
        handlers: Mapping[str, Handler[Any]],
        *,
        catalogs: int = 2,
        sboms: int = 2,
        scans: int = 2,
        max_deliveries: int = MAX_DELIVERIES,
        deadline: float = DEADLINE,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        """`max_deliveries` is the queue's limit, and everybody who consumes names the same `deadline`."""
        self._clock, self._name, self._queue, self._handlers = tools.clock, tools.name, queue, handlers
        self._at_once = {CATALOG: catalogs, SBOMS: sboms, SCANS: scans}
        self._max_deliveries, self._deadline, self._first_pause = max_deliveries, deadline, first_pause

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set, or the queue is closed."""
        stopping = asyncio.create_task(stop.wait())
        consuming = asyncio.create_task(self._consume_all())
        try:
            await asyncio.wait({stopping, consuming}, return_when=asyncio.FIRST_COMPLETED)
            if consuming.done():
                consuming.result()
        finally:
            await ended(stopping, consuming)

    async def _consume_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for subject in self._handlers:
                group.create_task(self._consume(subject))

    async def _consume(self, subject: str) -> None:
        while True:
            try:
                await self._deliveries(subject)
            except* QueueUnavailable as away:
                log.warning("the queue is away", subject=subject, error=str(away.exceptions[0]))
            else:
                return  # it is closed
            await self._clock.sleep(AWAY)

    async def _deliveries(self, subject: str) -> None:
        consumed = self._queue.consume(subject, concurrency=self._at_once[subject], deadline=self._deadline)
        async with (
            contextlib.aclosing(cast("AsyncGenerator[Delivery, None]", consumed)) as deliveries,
            asyncio.TaskGroup() as handling,
        ):
            async for delivery in deliveries:
                handling.create_task(self._one(delivery))

    async def _one(self, delivery: Delivery) -> None:
        try:
            message = decode(delivery.payload, KINDS[delivery.subject])
        except Unreadable as unreadable:
            log.warning("a message cannot be read", subject=delivery.subject, error=str(unreadable))
            await self._settled(delivery.term(str(unreadable)), delivery)
            return
        extending = asyncio.create_task(self._extend(delivery))
        try:
            delay = await self._done(delivery, message)
        except asyncio.CancelledError:
            await self._settled(delivery.nak(), delivery)
            raise
        finally:
            await ended(extending)
        await self._settled(delivery.ack() if delay is None else delivery.nak(delay), delivery)

    async def _done(self, delivery: Delivery, message: Message) -> float | None:
        """None when it is; else after how many seconds to try again."""
        handler = self._handlers[delivery.subject]
        names = {"subject": delivery.subject, "worker": self._name, **_names(message)}
        pause = min(self._first_pause * 2.0 ** (delivery.deliveries - 1), LONGEST_PAUSE)
        try:
            if delivery.deliveries >= self._max_deliveries:
                await self._give_up(handler, message, delivery.deliveries - 1)
            else:
                await handler.handle(message)
        except Later as later:
            log.info("a message is handed back for later", why=str(later), seconds=later.seconds, **names)
            return later.seconds
        except Exception as error:  # whatever it is, it is for this message alone
            log.warning(
                "a message could not be handled",
                kind=type(error).__name__,
                error=str(error),
                deliveries=delivery.deliveries,
                exc_info=not isinstance(error, OSError | StatusError),  # those say all themselves
                **names,
            )
            return pause
        return None

    async def _give_up(self, handler: Handler[Any], message: Message, tries: int) -> None:
        """This is the last that is heard of the message, so writing it down is tried more than once."""
        why = f"{tries} deliveries did not end well"
        for attempt in range(GIVING_UP):
            try:
                await handler.give_up(message, why)
            except Exception:
                if attempt == GIVING_UP - 1:
                    raise
                await self._clock.sleep(self._first_pause * 2.0**attempt)
            else:
                return

    async def _extend(self, delivery: Delivery) -> None:
        while True:
            await self._clock.sleep(self._deadline / 3)
            with contextlib.suppress(QueueUnavailable):  # it comes back, or others get the message
                await delivery.extend()

    async def _settled(self, settling: Any, delivery: Delivery) -> None:
        """What could not be settled comes again, and its handler finds that it is done."""
        try:
            await settling
        except QueueUnavailable as error:
            log.warning("a message could not be settled", subject=delivery.subject, id=delivery.id, error=str(error))


def _names(message: Message) -> dict[str, str]:
    """What a message is about, without the long part of it."""
    return {name: value for name, value in msgspec.structs.asdict(message).items() if isinstance(value, str) and value}
