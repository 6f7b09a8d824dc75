"""The world that a simulated test is given: an API server, processes that come and go, and bad weather.

    await world.install(Widget)
    world.start("operator", operator)        # async def operator(host: Host): runs a Manager on host.client
    await world.client.create(widget)        # a user's client, which always works
    await world.some_time()
    await world.calm()                       # the weather ends, and nothing changes any more

Until `calm`, processes crash between any two awaits and start again from nothing, stall, have their wall clocks moved; calls
and watches fail as `faults` says; the server restarts, and forgets its past. After it, every process lives and every call
works: whatever was declared must now become true, and then nobody may write any more.
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply
from trimtab.model import kubernetes
from trimtab.model.crd import crd
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme, Untyped
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import LocalTransport
from trimtab.store.contract import Entry, Op, Write
from trimtab.store.memory import MemoryStore
from trimtab.testing.faults import USUAL, Chance, Fault, FaultyTransport
from trimtab.testing.loop import LoopClock, SimulatedLoop
from trimtab.testing.network import Network, Wire
from trimtab.testing.simulated_process import SimulatedProcess, State

ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))
QUIET = 90.0
RECOVERY = 60.0  # in which a process may still end because of what went wrong before
PATIENCE = 4 * 3600.0
BUSY = 5000  # changes; two that undo each other's work make as many in a minute
BREATHING = frozenset({"leases.coordination.k8s.io", "events", "events.events.k8s.io"})
"""What may change in a world at rest: leases are renewed, events expire."""
SHOWN = 8


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """How bad it is. Each is the mean time between two of its kind, in seconds; 0 is never."""

    faults: Mapping[Fault, float] = msgspec.field(default_factory=lambda: USUAL)
    crashes: float = 15.0
    stalls: float = 40.0
    jumps: float = 120.0
    outages: float = 120.0
    compactions: float = 30.0
    longest_stall: float = 40.0
    longest_outage: float = 20.0
    longest_jump: float = 3600.0
    longest_delay: float = 0.02


STORM = Weather()
CALM = Weather(faults={}, crashes=0, stalls=0, jumps=0, outages=0, compactions=0)


class Restless(AssertionError):  # noqa: N818 - it reads as what happened
    """The world does not come to rest: somebody keeps writing."""


class Committed(msgspec.Struct, frozen=True):
    """A change as the store took it."""

    time: float
    op: Op
    entry: Entry


class Exit(msgspec.Struct, frozen=True):
    """A process ended by itself."""

    time: float
    process: str
    error: BaseException | None


class Host:
    """What a process is given: its own client, clock, and randomness. One Host lives until the process dies."""

    def __init__(self, world: World, name: str, incarnation: int, clock: LoopClock) -> None:
        self.world = world
        self.name = name
        self.incarnation = incarnation
        self.clock = clock
        self.random = random.Random(f"{name} {incarnation} {world.seed}")  # noqa: S311
        self.process = SimulatedProcess(f"{name}/{incarnation}")
        plan = Chance(random.Random(f"faults {name} {incarnation} {world.seed}"), world.weather.faults)  # noqa: S311
        self.transport = FaultyTransport(Wire(world.network, self.process), plan, clock)
        self.client = ApiClient(self.transport, world.scheme)


Main = Callable[[Host], Awaitable[Any]]


class World:
    """See the module. `random` is for the test's own choices."""

    def __init__(self, seed: int | str, weather: Weather = STORM, scheme: Scheme | None = None) -> None:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, SimulatedLoop):
            raise RuntimeError("a world needs a simulated loop: use `@simulate`")
        self.seed = seed
        self.weather = weather
        self.loop = loop
        self.clock = LoopClock(loop)
        self.random = random.Random(f"test {seed}")  # noqa: S311
        self.scheme = scheme or kubernetes.register(Scheme())
        self.story: list[str] = []
        self.history: list[Committed] = []
        self.exits: list[Exit] = []
        self.store = _Store(self)
        self.network = Network(random.Random(f"network {seed}"), weather.longest_delay)  # noqa: S311
        self.client = ApiClient(_Sure(self), self.scheme)
        self.serving = asyncio.Lock()
        """Held while the server is down."""
        self._chance = random.Random(f"weather {seed}")  # noqa: S311
        self._hosts: dict[str, Host] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.stormy = True
        self._servers = 0
        self._changed = 0.0

    async def open(self) -> None:
        """Start the server and the weather."""
        await self._serve()
        self.story.clear()
        chances = {
            self._crash: self.weather.crashes,
            self._stall: self.weather.stalls,
            self._jump: self.weather.jumps,
            self._outage: self.weather.outages,
            self._compact: self.weather.compactions,
        }
        for misfortune, mean in chances.items():
            if mean:
                self._spawn(self._happens(misfortune, mean), misfortune.__name__)

    async def install(self, *kinds: type[Resource]) -> None:
        """Make kinds known to the scheme and served."""
        for kind in kinds:
            self.scheme.register(kind)
            definition = crd(kind, scheme=self.scheme)
            await self.client.create(Untyped(definition))
            served = self.scheme.kind_of(kind)
            while not self.server.registry.find(served.group, served.version, served.plural):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    def start(self, name: str, main: Main) -> None:
        """Run a process, again and again: whenever it dies or ends, it starts from nothing after a while."""
        if name in self._hosts:
            raise ValueError(f"there is a process {name} already")
        clock = LoopClock(self.loop)
        self._hosts[name] = Host(self, name, 1, clock)
        self._spawn(self._keep(name, main, clock), f"keeper of {name}")

    def host(self, name: str) -> Host:
        """The process that now has this name."""
        return self._hosts[name]

    def crash(self, name: str, steps: int = 0) -> None:
        """Let a process die after so many steps more."""
        process = self._hosts[name].process
        process.fuse = steps if process.fuse is None else min(steps, process.fuse)
        self.note(f"{process.name} will die after {process.fuse} steps")

    async def stall(self, name: str, seconds: float) -> None:
        """Let a process stand still for a while."""
        process = self._hosts[name].process
        self.note(f"{process.name} stalls for {seconds:.1f} s")
        process.stall()
        await asyncio.sleep(seconds)
        process.resume()
        self.loop.wake_stalled()

    async def outage(self, seconds: float) -> None:
        """Let the server die, and start again on what it has stored."""
        async with self.serving:
            self.note(f"the server is down for {seconds:.1f} s")
            self.network.server.kill()
            self.network.down()
            await asyncio.sleep(seconds)
            await self._serve()

    async def some_time(self, longest: float = 10.0) -> None:
        """Mostly little, sometimes much: users come in bursts."""
        await asyncio.sleep(longest * self.random.random() ** 3)

    async def happens(self, times: int, *acts: Callable[[], Awaitable[object]]) -> None:
        """Users do something at random, so many times, with some time between."""
        for _ in range(times):
            await self.random.choice(acts)()
            await self.some_time()

    async def calm(self, quiet: float = QUIET, *, patience: float = PATIENCE) -> None:
        """End the weather; return when for `quiet` seconds nobody has changed, or tried to change, anything."""
        self.note("calm")
        self.stormy = False
        for host in self._hosts.values():
            host.process.fuse = None
            host.transport.calm()
        began, known = self.loop.time(), len(self.history)
        while True:
            await asyncio.sleep(quiet / 8)
            now = self.loop.time()
            if now - max(began, self._changed, self._tried()) >= quiet:
                self.note("quiet")
                return
            for end in self.exits:
                if end.error is not None and end.time > began + RECOVERY:
                    raise Restless(f"{end.process} ends by itself although all is well: {end.error!r}") from end.error
            if now - began > patience or len(self.history) - known > BUSY:
                raise Restless(f"after {now - began:g} s of calm there are still writes:{self._last_writes()}")

    def writes(self, since: float = 0.0) -> list[str]:
        """Who wrote what, successfully or not: `time sender METHOD path code`. Leases and events do not count."""
        return [
            f"{sent.time:.3f} {sent.sender} {sent.call.method} {sent.call.path} {sent.code}"
            for sent in self.network.calls
            if sent.time >= since and not sent.call.safe and not _breathes(sent.call.path)
        ]

    def note(self, what: str) -> None:
        """A line of the story that is told when the test fails."""
        self.story.append(f"{self.loop.time():10.3f}  {what}")

    def committed(self, change: Committed) -> None:
        self.history.append(change)
        if change.entry.key.resource not in BREATHING:
            self._changed = change.time
            key = change.entry.key
            self.note(f"{change.op.name} {key.resource} {key.namespace}/{key.name} @{change.entry.revision}")

    async def _serve(self) -> None:
        self._servers += 1
        process = SimulatedProcess(f"server/{self._servers}")
        self.server = Server(self.store, clock=self.clock)
        await process.run(asyncio.create_task, self.server.start())
        self.network.up(process, LocalTransport(self.server, ADMIN))

    async def _keep(self, name: str, main: Main, clock: LoopClock) -> None:
        for incarnation in range(1, 1_000_000):
            host = self._hosts[name]
            if not self.stormy:
                host.transport.calm()
            dead = asyncio.Event()
            host.process.died = dead.set
            task = host.process.run(asyncio.create_task, _life(host, main))
            task.add_done_callback(functools.partial(self._exited, host))
            self.note(f"{host.process.name} starts")
            await dead.wait()
            self.note(f"{host.process.name} is dead")
            self.network.hang_up(host.process)
            await asyncio.sleep(self._chance.uniform(0.01, 5.0))
            self._hosts[name] = Host(self, name, incarnation + 1, clock)

    def _exited(self, host: Host, task: asyncio.Task[Any]) -> None:
        if host.process.state is State.DEAD:
            return
        error = None if task.cancelled() else task.exception()
        self.note(f"{host.process.name} ended: {error!r}")
        self.exits.append(Exit(self.loop.time(), host.process.name, error))
        host.process.kill()

    async def _happens(self, misfortune: Callable[[], Awaitable[None]], mean: float) -> None:
        while self.stormy:
            await asyncio.sleep(self._chance.expovariate(1 / mean))
            if self.stormy:
                await misfortune()

    async def _crash(self) -> None:
        if self._hosts:
            steps = int(10 ** self._chance.uniform(0, 2.3)) - 1
            self.crash(self._chance.choice(list(self._hosts)), steps)

    async def _stall(self) -> None:
        if self._hosts:
            name, seconds = (
                self._chance.choice(list(self._hosts)),
                self._chance.uniform(0.1, self.weather.longest_stall),
            )
            if self._hosts[name].process.state is State.RUNNING:
                await self.stall(name, seconds)

    async def _jump(self) -> None:
        if self._hosts:
            name, longest = self._chance.choice(list(self._hosts)), self.weather.longest_jump
            seconds = self._chance.uniform(-longest, longest)
            self.note(f"the clock of {name} jumps by {seconds:.1f} s")
            self._hosts[name].clock.jump(seconds)

    async def _outage(self) -> None:
        await self.outage(self._chance.uniform(0, self.weather.longest_outage))

    async def _compact(self) -> None:
        """The store forgets its past, so watches and long lists that need it get 410."""
        await self.store.compact(self.store.revision)

    def _spawn(self, work: Any, name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    def _tried(self) -> float:
        """When somebody last tried to write."""
        for sent in reversed(self.network.calls):
            if not sent.call.safe and not _breathes(sent.call.path):
                return sent.time
        return 0.0

    def _last_writes(self) -> str:
        return "".join(f"\n  {line}" for line in self.writes()[-SHOWN:])


class _Store(MemoryStore):
    """Remembers every change, with its time."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    async def commit(self, write: Write) -> Entry:
        entry = await super().commit(write)
        self._world.committed(Committed(self._world.loop.time(), write.op, entry))
        return entry


class _Sure:
    """The user's transport: it waits for a server that is down, and nothing is lost. Watches break as others do."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._wire = Wire(world.network, SimulatedProcess("user"))

    async def call(self, call: Call) -> Reply:
        async with self._world.serving:
            return await LocalTransport(self._world.server, ADMIN).call(call)

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._wire.stream(call, inactivity)

    async def close(self) -> None:
        pass


async def _life(host: Host, main: Main) -> None:
    await main(host)


def _breathes(path: str) -> bool:
    return "/leases" in path or "/events" in path
