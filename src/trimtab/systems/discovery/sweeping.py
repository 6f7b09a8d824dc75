"""Probing and asking: from a rule's addresses to what answers there, in one sweep.

Flow: the thread probes in permuted order; whatever is open is asked by a few workers; every few seconds what was found
becomes Targets (`settled`), and then the ledger is committed with the position that was reached. So whatever the ledger
calls identified is a Target already, and a sweep that was killed goes on from its last position. One that is stopped in
order goes on from where it was. Once `closing` is set nobody new is asked, and whoever is being asked is asked to the end:
a login that is cut off counts against us.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from trimtab.model.clock import Clock
from trimtab.runtime.progress import Progress
from trimtab.runtime.tasks import ended
from trimtab.systems.discovery.asking import Asker, Opened
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.ledger.book import Book
from trimtab.systems.discovery.scope.addresses import Addresses, parse
from trimtab.systems.discovery.scope.probes import Asked
from trimtab.systems.discovery.sweep import Answer, Job, Quality, Sweeper
from trimtab.systems.discovery.sweep.job import SweepFailed
from trimtab.systems.discovery.targets.devices import Finding

CHECKPOINT = 2.0
"""Seconds between two settlings while a sweep goes on."""

T = TypeVar("T")
Settle = Callable[[Sequence[Finding]], Awaitable[None]]


class Closed(Exception):  # noqa: N818 - it reads as what happened
    """The sweep has ended early, as it was asked to."""


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep found. `outcomes` has one byte for each address; `resumed` when others were found before a restart."""

    outcomes: bytes
    findings: tuple[Finding, ...]
    quality: Quality
    resumed: bool


class Sweeping:
    """One sweep of one rule."""

    def __init__(
        self,
        *,
        addresses: Addresses,
        questions: Sequence[Asked],
        sweeper: Sweeper,
        asker: Asker,
        book: Book,
        clock: Clock,
        progress: Progress,
        settle: Settle,
        at_a_time: int,
        packets_per_second: float | None,
        closing: asyncio.Event,
    ) -> None:
        self._addresses, self._questions, self._sweeper, self._asker = addresses, questions, sweeper, asker
        self._book, self._clock, self._progress, self._settle = book, clock, progress, settle
        self._at_a_time, self._cap, self._closing = at_a_time, packets_per_second, closing
        self._outcomes = bytearray(len(addresses))
        self._opened: dict[int, list[Opened]] = {}
        self._waiting: asyncio.Queue[int] = asyncio.Queue()
        self._found: list[Finding] = []
        self._settled = 0
        self._done = 0

    async def sweep(self) -> Swept:
        """Until every address has been probed and whatever answered has been asked. Closed when it should end before."""
        ledger = self._book.ledger
        resumed, self._done = ledger.position > 0, ledger.position
        if resumed and len(ledger.outcomes) == len(self._addresses):
            self._outcomes[:] = ledger.outcomes
        workers = [asyncio.create_task(self._work()) for _ in range(self._at_a_time)]
        keeper = asyncio.create_task(self._keep())
        try:
            quality = await _with_all(self._unless_closed(resumed=resumed), keeper, *workers)
        except (asyncio.CancelledError, Closed):
            self._keep_place()
            raise
        finally:
            await ended(keeper, *workers)
        outcomes = bytes(self._outcomes).translate(_SILENT)
        return Swept(outcomes=outcomes, findings=tuple(self._found), quality=quality, resumed=resumed)

    async def _unless_closed(self, *, resumed: bool) -> Quality:
        ledger = self._book.ledger
        probed = asyncio.create_task(self._probed(ledger.position, ledger.seed, resumed=resumed))
        closing = asyncio.create_task(self._closing.wait())
        try:
            await asyncio.wait((probed, closing), return_when=asyncio.FIRST_COMPLETED)
            if probed.done():
                return probed.result()
        finally:
            await ended(probed, closing)
        while not self._waiting.empty():
            self._waiting.get_nowait()
            self._waiting.task_done()
        await self._waiting.join()
        raise Closed

    async def _probed(self, start: int, seed: int, *, resumed: bool) -> Quality:
        """Returns when whatever answered has been asked, too."""
        if resumed:
            await self._again()
        quality = await self._probe(start, seed)
        for position in list(self._opened):
            self._waiting.put_nowait(position)
        await self._waiting.join()
        return quality

    async def _probe(self, start: int, seed: int) -> Quality:
        probes = [question.probe for question in self._questions]
        job = Job(addresses=self._addresses, probes=probes, seed=seed, start=start, packets_per_second=self._cap)
        async with self._sweeper.sweep(job) as sweep:
            async for batch in sweep:
                for answer in batch.answers:
                    self._take(answer.position, answer)
                self._done = batch.done
                self._tell(batch.done, batch.total)
        if sweep.quality is None:
            raise SweepFailed("the sweep ended before its time")
        return sweep.quality

    async def _again(self) -> None:
        """What was open and had not been asked when the sweep was killed is probed once more."""
        open_ones = [p for p, byte in enumerate(self._outcomes) if byte == Outcome.OPEN]
        if not open_ones:
            return
        some = Addresses(interval for p in open_ones for interval in parse(self._addresses.at(p)))
        job = Job(
            addresses=some,
            probes=[question.probe for question in self._questions],
            seed=self._book.ledger.seed,
            packets_per_second=self._cap,
        )
        async with self._sweeper.sweep(job) as sweep:
            async for batch in sweep:
                for answer in batch.answers:
                    position = self._addresses.position(some.at(answer.position))
                    if position is not None:
                        self._take(position, answer)

    def _take(self, position: int, answer: Answer) -> None:
        """What is open by the first profile, or by the only one, is asked at once; the rest when all probes are out."""
        if answer.outcome is not Outcome.OPEN:
            if self._outcomes[position] < Outcome.OPEN:
                self._outcomes[position] = answer.outcome
            return
        self._outcomes[position] = max(self._outcomes[position], Outcome.OPEN)
        opens = [Opened(place, login, answer.data) for place, login in self._questions[answer.probe].opens]
        self._opened.setdefault(position, []).extend(opens)
        if len(self._questions) == 1 or any(opened.connection == 0 for opened in opens):
            self._waiting.put_nowait(position)

    async def _work(self) -> None:
        while True:
            position = await self._waiting.get()
            try:
                opened = self._opened.pop(position, None)
                if opened and self._outcomes[position] != Outcome.IDENTIFIED:  # two communities may both be right
                    await self._ask(position, opened)
            finally:
                self._waiting.task_done()

    async def _ask(self, position: int, opened: Sequence[Opened]) -> None:
        address = self._addresses.at(position)
        finding = await self._asker.ask(address, opened)
        record = self._book.ledger.records.get(address)
        self._outcomes[position] = max(record.outcome, Outcome.OPEN) if record is not None else Outcome.OPEN
        if finding is not None:
            self._found.append(finding)

    async def _keep(self) -> None:
        while True:
            await self._clock.sleep(CHECKPOINT)
            await self._checkpoint()

    async def _checkpoint(self) -> None:
        """First the Targets, then the ledger that says so."""
        done, outcomes, until = self._done, bytes(self._to_ask()), len(self._found)
        if until > self._settled:
            await self._settle(self._found[self._settled : until])
            self._settled = until
        self._book.ledger = msgspec.structs.replace(self._book.ledger, position=done, outcomes=outcomes)
        await self._book.commit()

    def _keep_place(self) -> None:
        """Where to go on, for whoever commits the ledger next. What is not a Target yet is to be asked again."""
        outcomes = self._to_ask()
        for finding in self._found[self._settled :]:
            position = self._addresses.position(finding.address)
            if position is not None:
                outcomes[position] = Outcome.OPEN
        self._book.ledger = msgspec.structs.replace(self._book.ledger, position=self._done, outcomes=bytes(outcomes))

    def _to_ask(self) -> bytearray:
        """The outcomes, where whatever waits to be asked by another profile is open still."""
        outcomes = bytearray(self._outcomes)
        for position in self._opened:
            if outcomes[position] != Outcome.IDENTIFIED:
                outcomes[position] = Outcome.OPEN
        return outcomes

    def _tell(self, done: int, total: int) -> None:
        found = len(self._found)
        self._progress.report(done, total, f"{found} devices" if found != 1 else "1 device")


async def _with_all(work: Coroutine[Any, Any, T], *helpers: asyncio.Task[None]) -> T:
    """What the work comes to. An error of a helper, which else has no end, ends it at once."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait((task, *helpers), return_when=asyncio.FIRST_COMPLETED)
        for helper in helpers:
            if helper.done():
                helper.result()
        return task.result()
    finally:
        await ended(task)


_SILENT = bytes([Outcome.SILENT, *range(1, 256)])
"""Who has been probed and gave no sign was silent."""


def signature(addresses: Addresses, questions: Sequence[Asked]) -> str:
    """Tells whether a sweep that was interrupted can go on: the same addresses, the same questions."""
    asked = [(q.probe.transport, q.probe.port, q.probe.timeout, q.probe.tries, q.opens) for q in questions]
    return hashlib.sha256(f"{addresses.digest}\n{asked}".encode()).hexdigest()[:32]
