"""The network of a simulation: between the processes of clients and the process of the server.

Flow: a request travels, the server answers it in a task of its own process, the answer travels back. So a client may die
while its request is on the way, and the server still does what it was asked; or the server dies, and nobody knows.

Guarantees: what one watch sends arrives in order; nothing is lost or invented while both ends live (that is the work of
`faults`). All delays come from the generator that is passed in.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextvars import Context

import msgspec

from trimtab.client.transport import Call, Reply, Silent, Transport, Unreachable
from trimtab.model.errors import StatusError
from trimtab.testing.simulated_process import SimulatedProcess

PATIENCE = 30.0  # what a client waits for an answer
FOREVER = 1e9
NEXT = 1e-6  # between two events of a watch, so that they keep their order
Answer = Reply | Exception


class Sent(msgspec.Struct, frozen=True):
    """A call that the server has answered."""

    time: float
    sender: str
    call: Call
    code: int


class Network:
    """Carries calls to `transport`, which runs inside of `server`. Both are replaced when the server restarts."""

    def __init__(self, chance: random.Random, longest_delay: float) -> None:
        self.calls: list[Sent] = []
        self.transport: Transport | None = None
        self.server = SimulatedProcess("no server")
        self._chance = chance
        self._delay = longest_delay
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[asyncio.Future[Answer], None] = {}
        self._pipes: dict[_Pipe, None] = {}

    def up(self, server: SimulatedProcess, transport: Transport) -> None:
        self.server, self.transport = server, transport

    def down(self) -> None:
        """The server is gone. Who waits for it learns that the connection broke."""
        self.transport = None
        broken = Unreachable("the server is gone")
        for waiting in list(self._waiting):
            self.after_a_while(_set, waiting, broken)
        for pipe in list(self._pipes):
            pipe.put(broken)
        self._waiting.clear()
        self._pipes.clear()

    def hang_up(self, process: SimulatedProcess) -> None:
        """A client died: the server notices that its connections broke."""
        for pipe in [pipe for pipe in self._pipes if pipe.client is process]:
            self.close(pipe)

    def call(self, client: SimulatedProcess, call: Call) -> asyncio.Future[Answer]:
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting[answer] = None
        self.after_a_while(self._arrive, client, call, answer)
        return answer

    def open(self, client: SimulatedProcess, call: Call) -> _Pipe:
        pipe = _Pipe(self, client)
        self._pipes[pipe] = None
        self.after_a_while(self._connect, call, pipe)
        return pipe

    def close(self, pipe: _Pipe) -> None:
        self._pipes.pop(pipe, None)
        if pipe.served is not None:
            self.after_a_while(pipe.served.cancel)

    def after_a_while(self, function: Callable[..., object], *args: object) -> None:
        """What the network does is no process's own: it goes on whoever dies."""
        self._loop.call_later(self._chance.uniform(0, self._delay), function, *args, context=Context())

    def delay(self) -> float:
        return self._chance.uniform(0, self._delay)

    def _arrive(self, client: SimulatedProcess, call: Call, answer: asyncio.Future[Answer]) -> None:
        if self.transport is None:
            self.after_a_while(_set, answer, Unreachable("the server does not answer"))
            return
        self.server.run(asyncio.create_task, self._serve(self.transport, client, call, answer))

    async def _serve(
        self, transport: Transport, client: SimulatedProcess, call: Call, waiting: asyncio.Future[Answer]
    ) -> None:
        answer: Answer
        try:
            answer = await transport.call(call)
        except StatusError as error:
            answer = error
        self.calls.append(Sent(self._loop.time(), client.name, call, answer.code))
        self._waiting.pop(waiting, None)
        self.after_a_while(_set, waiting, answer)

    def _connect(self, call: Call, pipe: _Pipe) -> None:
        if pipe not in self._pipes:
            return  # closed, or its client died, on the way
        if self.transport is None:
            pipe.put(Unreachable("the server does not answer"))
            return
        pipe.served = self.server.run(asyncio.create_task, self._follow(self.transport, call, pipe))

    async def _follow(self, transport: Transport, call: Call, pipe: _Pipe) -> None:
        lines = transport.stream(call, FOREVER)
        try:
            async for line in lines:
                pipe.put(line)
        except StatusError as error:
            pipe.put(error)
        else:
            pipe.put(None)
        finally:
            await lines.aclose()


class Wire:
    """One process's way to the server: a `Transport`."""

    def __init__(self, network: Network, process: SimulatedProcess) -> None:
        self._network = network
        self._process = process

    async def call(self, call: Call) -> Reply:
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await self._network.call(self._process, call)
        except TimeoutError:
            raise Silent(f"the server did not answer within {PATIENCE:g} s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        pipe = self._network.open(self._process, call)
        try:
            while True:
                try:
                    async with asyncio.timeout(inactivity):
                        line = await pipe.lines.get()
                except TimeoutError:
                    raise Silent(f"the server was silent for {inactivity:g} s") from None
                if line is None:
                    return
                if isinstance(line, Exception):
                    raise line
                yield line
        finally:
            self._network.close(pipe)

    async def close(self) -> None:
        pass


class _Pipe:
    """A watch on the way."""

    def __init__(self, network: Network, client: SimulatedProcess) -> None:
        self.client = client
        self.lines: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.served: asyncio.Task[None] | None = None
        self._network = network
        self._loop = asyncio.get_running_loop()
        self._last = 0.0

    def put(self, line: bytes | Exception | None) -> None:
        self._last = max(self._last + NEXT, self._loop.time() + self._network.delay())
        self._loop.call_at(self._last, self.lines.put_nowait, line, context=Context())


def _set(answer: asyncio.Future[Answer], value: Answer) -> None:
    if not answer.done():
        answer.set_result(value)
