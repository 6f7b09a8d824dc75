"""Replicas of a hub in one simulated loop: a bus with delays, lost sessions and outages, peers that may not answer, and
processes that stall and die between any two steps. Clients record what they see.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from tests.hub.cache.history import Event
from tests.hub.cache.service import Service, document
from trimtab.hub.bus.contract import Lost
from trimtab.hub.bus.inbox import Inbox
from trimtab.hub.cache.caches import Caches, Question
from trimtab.hub.cache.fleet import Fleet
from trimtab.hub.cache.generations import revision_of
from trimtab.hub.cache.lru import Entry
from trimtab.hub.contract import ApplyOptions, DeleteOptions, GetOptions, Hub, HubError, ListOptions, Missing
from trimtab.hub.proxies.cached import Cached
from trimtab.testing.loop import LoopClock, SimulatedLoop
from trimtab.testing.simulated_process import SimulatedProcess, State

TYPE = "blueprints.infra"
PROJECTS = ("p", "q")
NAMES = ("a", "b")
LEASE = 3.0

DELETED: ContextVar[list[int] | None] = ContextVar("DELETED", default=None)


class Recorded(Service):
    """Tells whoever deletes at which revision it was, and knows all deletions."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.deletions: dict[tuple[str, str], int] = {}
        self._chance = chance
        self.pause = self._dawdle

    async def delete(self, name: str, options: DeleteOptions) -> None:
        await self.pause("before delete")
        key = (options.project, name)
        if self.rows.pop(key, None) is None:
            raise Missing(f"{name} is not there")
        self.revision += 1
        self.deletions[key] = self.revision
        if (told := DELETED.get()) is not None:
            told.append(self.revision)
        await self.pause("delete")

    async def _dawdle(self, where: str) -> None:
        await asyncio.sleep(self._chance.choice((0, 0, 0, 0.001, 0.05)))


class Wire:
    """A bus with one order; every session hears it at its own pace."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.log: list[bytes] = []
        self.down = False
        self.sessions: list[WireSession] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, replica: str) -> WireSession:
        await asyncio.sleep(self.delay())
        if self.down:
            raise Lost("the bus is down")
        session = WireSession(self, replica)
        self.sessions.append(session)
        await asyncio.sleep(self.delay())
        return session

    async def close(self) -> None: ...

    def delay(self) -> float:
        return self.chance.choice((0, 0, 0, 0.001, 0.01, 0.2))

    def outage(self) -> None:
        self.down = True
        for session in list(self.sessions):
            session.cut()


class WireSession:
    def __init__(self, wire: Wire, replica: str) -> None:
        self.wire = wire
        self.replica = replica
        self.inbox = Inbox()
        self._at = len(wire.log)
        self._pace = wire.chance.choice((0, 1, 4))  # some are always behind
        self._moved = asyncio.Event()
        # The network is nobody's process: it delivers to one that stalls.
        self._pump = SimulatedProcess("network").run(asyncio.create_task, self._deliver())

    def cut(self) -> None:
        self.inbox.end("cut")
        self._pump.cancel()
        if self in self.wire.sessions:
            self.wire.sessions.remove(self)

    async def publish(self, message: bytes) -> None:
        self.inbox.check()
        await asyncio.sleep(self.wire.delay())
        if self.wire.down:
            raise Lost("the bus is down")
        self.wire.log.append(message)  # also of a session that was cut meanwhile: its last word may still arrive
        for session in self.wire.sessions:
            session._moved.set()
        await asyncio.sleep(self.wire.delay())
        self.inbox.check()

    async def send(self, replica: str, message: bytes) -> None:
        self.inbox.check()
        for session in self.wire.sessions:
            if session.replica == replica and self.wire.chance.random() < 0.98:
                asyncio.get_running_loop().call_later(self.wire.delay(), session.inbox.put, message)

    async def receive(self) -> bytes:
        return await self.inbox.get()

    async def close(self) -> None:
        self.cut()

    async def _deliver(self) -> None:
        while True:
            while self._at < len(self.wire.log):
                await asyncio.sleep(self._pace * self.wire.delay())
                self.inbox.put(self.wire.log[self._at])
                self._at += 1
            self._moved.clear()
            await self._moved.wait()


class Calls:
    """Peers without a network: a question becomes a task of the process that is asked."""

    def __init__(self, lab: Lab, process: SimulatedProcess) -> None:
        self.address = process.name
        self._lab = lab
        self._process = process
        self._serve: Callable[[Question], Awaitable[Entry | None]] | None = None

    async def start(self, serve: Callable[[Question], Awaitable[Entry | None]]) -> None:
        self._serve = serve
        self._lab.calls[self.address] = self

    async def stop(self) -> None:
        self._lab.calls.pop(self.address, None)

    def usable(self, address: str) -> bool:
        return bool(address)

    async def ask(self, address: str, question: Question) -> Entry | None:
        peer = self._lab.calls.get(address)
        await asyncio.sleep(self._lab.wire.delay())
        if peer is None or peer._serve is None:
            return None
        answer = peer._process.run(asyncio.create_task, _quiet(peer._serve, question))
        try:
            async with asyncio.timeout(2.0):
                entry = await asyncio.shield(answer)
        except TimeoutError:
            return None
        await asyncio.sleep(self._lab.wire.delay())
        return entry


async def _quiet(serve: Callable[[Question], Awaitable[Entry | None]], question: Question) -> Entry | None:
    with contextlib.suppress(HubError):
        return await serve(question)
    return None


class Lab:
    """`history` is in the order of a counter, which tells moments apart that virtual time does not."""

    def __init__(self, seed: int, *, peers: bool = True) -> None:
        self.chance = random.Random(f"lab {seed}")
        self.service = Recorded(self.chance)
        self.wire = Wire(self.chance)
        self.calls: dict[str, Calls] = {}
        self.history: list[Event] = []
        self.calm = True
        """Clients go on at least until it is."""
        self.served = 0
        self.answered = 0
        self.processes: dict[str, SimulatedProcess] = {}
        self._peers = peers
        self._ticks = itertools.count(1)
        self._clients: list[asyncio.Task[None]] = []

    def replica(self, name: str, steps: int) -> None:
        process = self.processes[name] = SimulatedProcess(name)
        self._clients.append(process.run(asyncio.create_task, self._live(name, process, steps)))

    async def done(self) -> None:
        """Every client that lives has finished."""
        while True:
            left = [
                client
                for client, process in zip(self._clients, self.processes.values(), strict=True)
                if process.state is not State.DEAD and not client.done()
            ]
            if not left:
                break
            await asyncio.wait(left, timeout=1)
        for client, process in zip(self._clients, self.processes.values(), strict=True):
            if process.state is not State.DEAD:
                client.result()

    async def _live(self, name: str, process: SimulatedProcess, steps: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        caches = Caches()
        cached = Cached(self.service, TYPE, caches)
        peers = Calls(self, process) if self._peers else None
        fleet = Fleet(self.wire, caches, replica=name, lease=LEASE, clock=LoopClock(loop), peers=peers)
        await fleet.start()
        await asyncio.gather(*(self._client(f"{name}/{number}", cached, steps) for number in range(2)))
        self.served += sum(kind.get.metrics.hits + kind.list.metrics.hits for kind in caches.kinds.values())
        self.answered += sum(kind.get.metrics.peer_loads for kind in caches.kinds.values())
        await fleet.stop()

    async def _client(self, client: str, cached: Cached, steps: int) -> None:
        for step in range(10 * steps):
            if step >= steps and self.calm:
                break
            await asyncio.sleep(self.chance.choice((0, 0, 0.01, 0.1, 0.5)))
            project, name = self.chance.choice(PROJECTS), self.chance.choice(NAMES)
            match self.chance.choice(("get",) * 8 + ("list",) * 3 + ("all",) * 2 + ("apply",) * 3 + ("delete",)):
                case "get":
                    await self._get(client, cached, project, name)
                case "list":
                    await self._list(client, cached, project)
                case "all":
                    await self._list(client, cached, None)
                case "apply":
                    await self._apply(client, cached, project, name)
                case "delete":
                    await self._delete(client, cached, project, name)

    async def _get(self, client: str, cached: Cached, project: str, name: str) -> None:
        began = next(self._ticks)
        try:
            revision = revision_of(await cached.get(name, GetOptions(project=project)))
        except Missing:
            revision = self.service.deletions.get((project, name), 0)
        self._record("read", project, name, began, revision, client, "get")

    async def _list(self, client: str, cached: Cached, project: str | None) -> None:
        began = next(self._ticks)
        options = ListOptions(all_projects=True) if project is None else ListOptions(project=project)
        page = await cached.list(options)
        seen: dict[tuple[str, str], Hub] = {
            (hub["metadata"]["project"], hub["metadata"]["name"]): hub for hub in page.items
        }
        for key in itertools.product(PROJECTS if project is None else (project,), NAMES):
            found = seen.get(key)
            revision = self.service.deletions.get(key, 0) if found is None else revision_of(found)
            self._record("read", *key, began, revision, client, "all" if project is None else "list")

    async def _apply(self, client: str, cached: Cached, project: str, name: str) -> None:
        began = next(self._ticks)
        with contextlib.suppress(HubError):
            applied = await cached.apply(document(name), ApplyOptions(project=project))
            self._record("write", project, name, began, revision_of(applied), client, "apply")

    async def _delete(self, client: str, cached: Cached, project: str, name: str) -> None:
        began = next(self._ticks)
        told: list[int] = []
        DELETED.set(told)
        with contextlib.suppress(HubError):
            await cached.delete(name, DeleteOptions(project=project))
            self._record("write", project, name, began, told[0], client, "delete")

    def _record(self, op: str, project: str, name: str, began: int, revision: int, client: str, kind: str) -> None:
        self.history.append(Event(op, f"{project}/{name}", began, next(self._ticks), revision, client, kind))
