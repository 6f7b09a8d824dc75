"""The replicas of a hub as one cache: who is there, who owns a key, and that nobody believes what was before a write.

Flow: a replica opens a session on the bus, forgets all that it kept, and publishes beats. While it hears them it answers from
memory. `tell` publishes a change and returns when every replica has either heard it or cannot answer from memory any more;
see `membership` for why that is enough. When the session is lost, so is the lease, and what was not told is told again.

Guarantee: after `tell` has returned no replica answers with anything older. Where it cannot be kept, `tell` raises Down.

Assumptions: the bus has one order (`bus.contract`); clocks of machines run alike to within a fifth.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable
from typing import Protocol

from trimtab.hub.bus.contract import Bus, BusError, Lost, Session
from trimtab.hub.cache.caches import Caches, Question
from trimtab.hub.cache.generations import Change, Scope
from trimtab.hub.cache.keys import owner
from trimtab.hub.cache.lru import Entry
from trimtab.hub.cache.membership import BEATS, Membership
from trimtab.hub.cache.messages import Beat, Heard, Leave, Message, Told, decode, encode
from trimtab.hub.cache.positions import Positions
from trimtab.hub.cache.rounds import Rounds
from trimtab.hub.contract import Down
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.logs import log
from trimtab.runtime.tasks import ended

LEASE = 3.0
"""Seconds. A replica that dies holds up writes for as long, once; one that stands still for less keeps its memory."""
PATIENCE = 30.0
"""Seconds that a write waits for the bus before it fails."""
PAUSE = 0.2


class Asking(Protocol):
    """How replicas ask each other: `peers.Peers` does it over HTTP."""

    address: str

    async def start(self, serve: Callable[[Question], Awaitable[Entry | None]]) -> None: ...

    async def stop(self) -> None: ...

    def usable(self, address: str) -> bool: ...

    async def ask(self, address: str, question: Question) -> Entry | None: ...


class Fleet:
    """Fulfils `Others`, for the replica of this process. All replicas must have the same `lease`."""

    def __init__(
        self,
        bus: Bus,
        caches: Caches,
        *,
        replica: str = "",
        peers: Asking | None = None,
        lease: float = LEASE,
        patience: float = PATIENCE,
        clock: Clock | None = None,
    ) -> None:
        self.replica = replica or secrets.token_hex(8)
        self._bus = bus
        self._caches = caches
        self._peers = peers
        self._lease = lease
        self._patience = patience
        self._clock = clock or SystemClock()
        self._now = self._clock.monotonic
        self._membership = Membership(self.replica, "", lease, 0.0)
        self._positions = Positions()
        self._session: Session | None = None
        self._joined = asyncio.Event()
        self._greeted = asyncio.Event()
        self._rounds = Rounds(self._now)
        self._leaving = False
        self._task: asyncio.Task[None] | None = None
        caches.others = self

    async def start(self) -> None:
        """Returns at once: until the bus is reached, reads go past the cache and writes wait."""
        if self._peers is not None:
            await self._peers.start(self._serve)
        self._task = asyncio.create_task(self._run(), name=f"fleet {self.replica}")

    async def stop(self) -> None:
        """Leave: nobody waits for us afterwards."""
        self._leaving = True
        if self._session is not None:
            with contextlib.suppress(BusError, TimeoutError):
                async with asyncio.timeout(self._lease):
                    await self._session.publish(encode(Leave(self.replica)))
        if self._task is not None:
            await ended(self._task)
        if self._peers is not None:
            await self._peers.stop()

    def open(self) -> bool:
        return self._membership.until > self._now() and not self._leaving

    async def joined(self) -> None:
        """Returns when this replica has a lease."""
        await self._joined.wait()

    @property
    def replicas(self) -> tuple[str, ...]:
        """Those that are alive, ourselves included."""
        return (self.replica, *self._membership.alive(self._now()))

    def owner(self, key: bytes) -> str | None:
        if self._peers is None:
            return None
        members, asked = self._membership.members, self._peers.usable
        others = [name for name in self._membership.alive(self._now()) if asked(members[name].address)]
        chosen = owner(key, [self.replica, *others]) if others else self.replica
        return None if chosen == self.replica else chosen

    async def ask(self, owner: str, question: Question, scope: Scope) -> Entry | None:
        member = self._membership.members.get(owner)
        if member is None or self._peers is None:
            return None
        order, position = self._positions.last(scope)
        marker = (member.session, member.number) if member.order > order else ("", -1)
        return await self._peers.ask(
            member.address,
            Question(
                question.type, question.name, question.options, position, *marker, question.floor, question.at_least
            ),
        )

    async def ready(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._joined.wait()
        except TimeoutError:
            raise Down("the hub's replicas cannot be told of a change now, so nothing was changed") from None

    async def tell(self, change: Change) -> None:
        round_ = self._rounds.add(change)
        try:
            async with asyncio.timeout(self._patience + self._lease):
                await asyncio.shield(round_.done)
        except TimeoutError:
            raise Down("the change was made, but other replicas may show what was before it for some minutes") from None

    async def _serve(self, question: Question) -> Entry | None:
        """For another replica. None: ask somebody else."""
        kind = self._caches.kinds.get(question.type)
        come_so_far = (
            question.session == self._membership.session and 0 <= question.beat <= self._membership.echoed
        ) or self._positions.knows(question.position)
        if kind is None or not come_so_far or not self.open():
            return None
        return await kind.read(question)

    async def _run(self) -> None:
        said = ""
        while True:
            try:
                async with asyncio.timeout(self._patience):
                    session = await self._bus.open(self.replica)
            except (BusError, TimeoutError) as error:
                if str(error) != said:  # not once for each attempt
                    said = str(error)
                    log.warning("the hub's bus cannot be reached", replica=self.replica, error=said)
                await self._clock.sleep(PAUSE)
                continue
            said = ""
            try:
                await self._attend(session)
            except (BusError, TimeoutError) as error:
                log.info("the hub's bus was lost", replica=self.replica, error=str(error))
            except (
                Exception
            ) as error:  # a mistake, ours or a driver's: without a lease it harms nobody, and another try may do
                log.error("a session on the hub's bus broke", replica=self.replica, error=repr(error), exc_info=True)
            finally:
                self._session = None
                self._joined.clear()
                self._membership.until = 0.0
                self._rounds.again()
                with contextlib.suppress(BusError):
                    await session.close()
            await self._clock.sleep(PAUSE)

    async def _attend(self, session: Session) -> None:
        """One session, until it is lost."""
        # From here on we hear everything; what was kept may lack what came before.
        self._membership = Membership(self.replica, secrets.token_hex(8), self._lease, self._now())
        self._positions = Positions()
        self._caches.flush()
        self._session = session
        tasks = [
            asyncio.create_task(work, name=f"fleet {self.replica} {name}")
            for name, work in (
                ("hears", self._hear(session)),
                ("beats", self._beat(session)),
                ("tells", self._publish(session)),
                ("settles", self._rounds.settle(self._membership)),
            )
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await ended(*tasks)

    async def _beat(self, session: Session) -> None:
        membership = self._membership
        address = "" if self._peers is None else self._peers.address
        number = 0
        while True:
            now = self._now()
            if membership.silent(now):
                raise Lost("nothing was heard, not even our own beats")
            beat = Beat(self.replica, membership.session, number, now, address)
            async with asyncio.timeout(self._lease):
                await session.publish(encode(beat))
            number += 1
            self._greeted.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._lease / BEATS):
                    await self._greeted.wait()

    async def _publish(self, session: Session) -> None:
        while True:
            round_ = await self._rounds.next()
            async with asyncio.timeout(self._lease):
                await session.publish(encode(Told(round_.id, self.replica, tuple(round_.changes))))

    async def _hear(self, session: Session) -> None:
        while True:
            message = decode(await session.receive())
            if message is None:
                continue
            if isinstance(message, Heard):
                self._rounds.heard(message.id, message.replica)
            else:
                await self._heard(session, message)

    async def _heard(self, session: Session, message: Message) -> None:
        order = self._positions.heard()
        match message:
            case Beat():
                self._membership.beat(message, self._now(), order)
                if self._membership.until > 0:
                    self._joined.set()
                if message.number == 0 and message.replica != self.replica:
                    self._greeted.set()  # so that who has just come knows us at once
            case Leave():
                self._membership.left(message.replica)
            case Told():
                for change in message.changes:
                    self._caches.drop(change)
                self._positions.changed(message.id, message.changes)
                if message.replica == self.replica:
                    self._rounds.echoed(message.id, self._membership)
                else:
                    async with asyncio.timeout(self._lease):
                        await session.send(message.replica, encode(Heard(message.id, self.replica)))
