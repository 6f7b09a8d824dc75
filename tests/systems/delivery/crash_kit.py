"""Controllers that are cut off at their n-th step, and a witness of all that the API was told meanwhile.

A step is a write to the API, a blob or a question to webhooks, made for one instance of a scenario. `kill`: it and all that
would follow never happen, as when the process ends there; what comes after it, with nothing in its memory, then takes the
instance over at once. `before`, `after`: this one call is lost, before it arrives or after its effect, and the process
lives on. Instances run side by side, each with a cut of its own: an object belongs to that whose name its own begins with.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, TypeVar

from tests.systems.delivery.stage import Stage, _within
from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply, Transport, Unreachable
from trimtab.model.clock import Clock
from trimtab.runtime.changes import Request
from trimtab.runtime.controller import Controller, Result
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.queue import connect as connect_queue
from trimtab.runtime.system import Context
from trimtab.runtime.workers import Workers
from trimtab.storage.blobs import BlobsUnavailable, Digest
from trimtab.storage.scratch import Scratch
from trimtab.systems.delivery.canary_controller import CanaryController
from trimtab.systems.delivery.group_controller import GroupController
from trimtab.systems.delivery.hooks.answers import Answer
from trimtab.systems.delivery.hooks.messages import webhooks

Mode = Literal["kill", "before", "after", "never"]
T = TypeVar("T")
LAG = 5.0
"""Seconds that what is late comes after the rest. Time stands still while anyone is at work: all of a reconcile's writes
are heard before any of this."""

_instance: ContextVar[str] = ContextVar("instance", default="")


class Cut(NamedTuple):
    mode: Mode
    at: int

    @property
    def name(self) -> str:
        return f"{self.mode}{self.at:03}"


def instance_of(name: str) -> str:
    return name.partition("-")[0]


class Cuts:
    """What is cut where, by instance."""

    def __init__(self) -> None:
        self._planned: dict[str, Cut] = {}
        self._dead: dict[str, asyncio.Event] = {}
        self._over = asyncio.Event()
        self.steps: dict[str, list[str]] = {}

    def plan(self, instance: str, cut: Cut) -> None:
        """Steps are counted from now on."""
        self._planned[instance] = cut
        self.steps[instance] = []

    def dead(self, instance: str) -> asyncio.Event:
        return self._dead.setdefault(instance, asyncio.Event())

    def end(self) -> None:
        """Let go of what is cut off, and of who waits for it: the processes may end. Nothing of it arrives all the same."""
        self._over.set()
        for event in self._dead.values():
            event.set()

    async def turn(self, instance: str) -> None:
        """Until the instance is cut off."""
        await self.dead(instance).wait()
        if self._over.is_set():
            raise Unreachable("it is over")

    async def step(self, what: str, effect: Callable[[], Awaitable[T]], lost: Exception) -> T:
        instance = _instance.get()
        cut = self._planned.get(instance)
        if cut is None:
            return await effect()
        self.steps[instance].append(what)
        at = len(self.steps[instance])
        if cut.mode == "kill" and at >= cut.at:
            self.dead(instance).set()
            await self._over.wait()
            raise lost
        if at != cut.at or cut.mode == "never":
            return await effect()
        if cut.mode == "after":
            await effect()
        raise lost


class Wire:
    """A transport whose writes are steps."""

    def __init__(self, cuts: Cuts, inner: Transport) -> None:
        self._cuts, self._inner = cuts, inner

    async def call(self, call: Call) -> Reply:
        if call.method == "GET":
            return await self._inner.call(call)
        what = f"{call.method} {'/'.join(call.path.split('/')[-3:])}"
        return await self._cuts.step(what, lambda: self._inner.call(call), Unreachable("cut on purpose"))

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._inner.stream(call, inactivity)

    async def close(self) -> None:
        """It is the test's."""


class Late:
    """A transport that tells what is watched of one kind so many seconds later; all else comes at once."""

    def __init__(self, inner: Transport, clock: Clock, plural: str, seconds: float) -> None:
        self._inner, self._clock, self._plural, self._seconds = inner, clock, plural, seconds

    async def call(self, call: Call) -> Reply:
        return await self._inner.call(call)

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        pieces = self._inner.stream(call, inactivity)
        return self._later(pieces) if call.path.endswith(f"/{self._plural}") else pieces

    async def _later(self, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def hear() -> None:
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    under_way.put_nowait((self._clock.monotonic() + self._seconds, piece))

        hearing = asyncio.create_task(hear())
        try:
            while not (hearing.done() and under_way.empty()):
                due, piece = await under_way.get()
                await self._clock.sleep(max(due - self._clock.monotonic(), 0.0))
                yield piece
        finally:
            hearing.cancel()
            await asyncio.wait({hearing})

    async def close(self) -> None:
        """It is the test's."""


def hearing_late(stage: Stage, plural: str) -> ApiClient:
    """A client of the stage to which changes of one kind come later than those of all others."""
    wire = Late(stage.client.transport, stage.clock, plural, LAG)
    return ApiClient(wire, stage.client.scheme, namespace=stage.client.namespace)


class _Blobs:
    """Blobs whose writes are steps."""

    def __init__(self, cuts: Cuts, inner: Any) -> None:
        self._cuts, self._inner = cuts, inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def put(self, data: bytes) -> Digest:
        return await self._cuts.step("blob put", lambda: self._inner.put(data), BlobsUnavailable("cut"))

    async def pin(self, digest: Digest, owner: str) -> None:
        await self._cuts.step("blob pin", lambda: self._inner.pin(digest, owner), BlobsUnavailable("cut"))

    async def unpin(self, owner: str, digest: Digest | None = None) -> None:
        await self._cuts.step("blob unpin", lambda: self._inner.unpin(owner, digest), BlobsUnavailable("cut"))


class _Hooks:
    """Webhooks, each question to which is a step."""

    def __init__(self, cuts: Cuts, inner: Any, stage: Stage) -> None:
        self._cuts, self._inner, self._stage = cuts, inner, stage

    async def ask(self, point: Any, canary: Any, run: Any, **more: Any) -> Answer:
        if not webhooks(point, canary, run):
            return Answer()

        async def asked() -> Answer:
            with self._stage.busy.at_work():
                return await self._inner.ask(point, canary, run, **more)  # type: ignore[no-any-return]

        try:
            return await self._cuts.step(f"webhook {point}", asked, _LostError())
        except _LostError:
            return Answer() if point == "Rollback" else Answer(failed=("hook: cut on purpose",))

    async def close(self) -> None:
        await self._inner.close()


class _LostError(Exception):
    pass


class Process:
    """The controllers as one process, which works on an instance only from when `turn` lets it."""

    def __init__(
        self,
        stage: Stage,
        client: ApiClient,
        *,
        cuts: Cuts | None = None,
        turn: Callable[[str], Awaitable[Any]] | None = None,
    ) -> None:
        self._stage, self._client, self._cuts, self._turn = stage, client, cuts, turn

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        stage = self._stage
        await stage.gauge.start()
        manager = Manager(self._client, name="delivery", clock=stage.clock, metrics=Metrics())
        workers, queue = Workers(1), connect_queue(None, clock=stage.clock)
        context = Context(
            client=self._client,
            clock=stage.clock,
            blobs=stage.blobs if self._cuts is None else _Blobs(self._cuts, stage.blobs),  # type: ignore[arg-type]
            scratch=Scratch(stage._folder / "scratch", 1 << 20),
            queue=queue,
            workers=workers,
            metrics=manager.metrics,
            manager=manager,
            prometheus=stage.gauge.url,
        )
        for controller in (_Canaries(context), GroupController()):
            manager.add(_within(self._gated(controller), stage.namespace))
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        try:
            yield
        finally:
            stop.set()
            await running
            await workers.close()
            await queue.close()

    def _gated(self, controller: Controller[Any]) -> Controller[Any]:
        inner = controller.reconcile
        if isinstance(controller, _Canaries):
            controller.cuts, controller.stage = self._cuts, self._stage

        async def reconcile(request: Request) -> Result | None:
            instance = instance_of(request.name)
            if self._turn is not None:
                await self._turn(instance)
            _instance.set(instance)
            return await inner(request)

        controller.reconcile = reconcile  # type: ignore[method-assign]
        controller.concurrency = 1000  # one that is cut off keeps its place
        return controller


class _Canaries(CanaryController):
    cuts: Cuts | None = None
    stage: Stage

    async def start(self) -> None:
        await super().start()
        if self.cuts is not None:
            checker = self.releaser._checker
            checker._hooks = _Hooks(self.cuts, checker._hooks, self.stage)  # type: ignore[assignment]


@contextlib.asynccontextmanager
async def mortal(stage: Stage, cuts: Cuts, late: str = "") -> AsyncIterator[None]:
    """A process that is cut off by instance, and the one that takes over what was cut off. Its caches are warm; what
    happens to objects of the kind `late` it hears only later than all else."""
    if stage._playing is None:
        stage._playing = asyncio.create_task(stage.players.play())
    client = ApiClient(Wire(cuts, stage.client.transport), stage.client.scheme, namespace=stage.client.namespace)
    first = Process(stage, client, cuts=cuts)
    second = Process(stage, hearing_late(stage, late) if late else stage.client, turn=cuts.turn)
    async with first.running(), second.running():
        try:
            yield
        finally:
            cuts.end()


def patient(stage: Stage) -> None:
    """Time leaps only when the loop has gone round many times and nobody had anything to do: a busy machine, on which
    nothing happens for a while, is not taken for one that waits."""
    busy = stage.busy

    async def over() -> None:
        still = 0
        while still < 3:
            calls = busy._calls
            for _ in range(40):
                await asyncio.sleep(0)
            await asyncio.sleep(0.004)
            still = still + 1 if not busy._going and busy._calls == calls else 0

    busy.over = over  # type: ignore[method-assign]
