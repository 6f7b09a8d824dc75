"""Cuts at the n-th step of an object: for a test that tries a crash, or a lost answer, between any two steps.

A step is a write to the API or a call of the service, made by the reconcile of that object. `kill`: it and all that would
follow never happen, as when the process ends there. `before`, `after`: this one call is lost, before it arrives or after
its effect, and the process lives on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeVar

from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply, Transport, Unreachable
from trimtab.runtime.echo import current
from trimtab.systems.rest.calling.connecting import Connections
from trimtab.systems.rest.calling.contract import Answer, Caller, CallError, ErrorClass, Request
from trimtab.systems.rest.kinds import RestService

Mode = Literal["kill", "before", "after", "never"]
T = TypeVar("T")


class Cut(NamedTuple):
    mode: Mode
    at: int


class Cuts:
    """By the name of the object."""

    def __init__(self) -> None:
        self._planned: dict[str, Cut] = {}
        self._dead: dict[str, asyncio.Event] = {}
        self._over = asyncio.Event()
        self.steps: dict[str, list[str]] = {}

    def plan(self, name: str, mode: Mode, at: int) -> None:
        """Steps of this object are counted from now on."""
        self._planned[name] = Cut(mode, at)
        self._dead[name] = asyncio.Event()
        self.steps[name] = []

    async def ended(self, name: str, otherwise: Awaitable[Any]) -> None:
        """Until the object is cut off for good, or the other thing comes."""
        tasks = [asyncio.ensure_future(each) for each in (otherwise, self._dead[name].wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def end(self) -> None:
        """Let go of what is cut off: the process may end. Nothing of it arrives all the same."""
        self._over.set()

    def client(self, client: ApiClient) -> ApiClient:
        return ApiClient(_Wire(self, client.transport), client.scheme, namespace=client.namespace)

    def callers(self, connections: Connections) -> Any:
        return _Callers(self, connections)

    async def step(self, what: str, effect: Callable[[], Awaitable[T]], lost: Exception) -> T:
        writer = current()
        name = "" if writer is None else writer.request.name
        cut = self._planned.get(name)
        if cut is None:
            return await effect()
        self.steps[name].append(what)
        at = len(self.steps[name])
        if cut.mode == "kill" and at >= cut.at:
            self._dead[name].set()
            await self._over.wait()
            raise lost
        if at != cut.at or cut.mode == "never":
            return await effect()
        if cut.mode == "after":
            await effect()
        raise lost


def names_of(steps: int, modes: Iterable[Mode] = ("kill", "before", "after")) -> dict[str, Cut]:
    """An object for each cut."""
    return {f"{mode}-{at}": Cut(mode, at) for mode in modes for at in range(1, steps + 1)}


class _Wire:
    """A transport."""

    def __init__(self, cuts: Cuts, inner: Transport) -> None:
        self._cuts, self._inner = cuts, inner

    async def call(self, call: Call) -> Reply:
        if call.method == "GET":
            return await self._inner.call(call)
        what = f"{call.method} {call.path.rpartition('/')[2]}"
        return await self._cuts.step(what, lambda: self._inner.call(call), Unreachable("cut on purpose"))

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._inner.stream(call, inactivity)

    async def close(self) -> None:
        """It is the test's."""


class _Callers:
    """Connections."""

    def __init__(self, cuts: Cuts, inner: Connections) -> None:
        self._cuts, self._inner = cuts, inner

    async def caller(self, service: RestService, namespace: str) -> Caller:
        return _Called(self._cuts, await self._inner.caller(service, namespace))

    async def close(self) -> None:
        await self._inner.close()


class _Called:
    """A caller."""

    def __init__(self, cuts: Cuts, inner: Caller) -> None:
        self._cuts, self._inner = cuts, inner
        self.endpoint, self.connection = inner.endpoint, inner.connection

    async def call(self, request: Request) -> Answer:
        uncertain = request.method != "GET"
        lost = CallError(ErrorClass.TRANSIENT, "cut on purpose", uncertain=uncertain, request=request)
        return await self._cuts.step(f"service: {request.verb}", lambda: self._inner.call(request), lost)
