"""What tests of `calling` share: a model with nothing in it, a server whose answers a test gives, a caller with cookies."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from trimtab.systems.rest.calling.contract import Answer, Caller, CallError, Request
from trimtab.systems.rest.calling.operations import Done, Failed, begin, due, poll
from trimtab.systems.rest.calling.service import Service
from trimtab.systems.rest.calling.throttling import Throttle
from trimtab.systems.rest.model import Call, Calls, Identity, Model, Node, Overlay, Polling
from trimtab.systems.rest.state import Operation
from trimtab.testing.clock import FakeClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
VERBS = {"PUT": "update", "POST": "create", "PATCH": "patch", "DELETE": "delete"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SkippingClock(FakeClock):
    """Nobody waits: whoever sleeps finds that the time has passed."""

    async def sleep(self, seconds: float) -> None:
        self._elapsed += seconds


def model(path: str = "/things/{name}", *, polling: Polling | None = None, **overlay: Any) -> Model:
    return Model(
        group="lab.rest.trimtab.dev",
        version="v1",
        kind="Thing",
        plural="things",
        service="lab",
        spec=Node(type="object"),
        calls=Calls(create=Call(method="PUT", path=path), read=Call(method="GET", path=path)),
        identity=Identity(),
        polling=polling or Polling(),
        overlay=Overlay(**overlay),
    )


class World:
    """A server; it keeps the requests. What is not in `answers` is answered by `otherwise`."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.answers: list[web.StreamResponse | Handler] = []
        self.otherwise: Handler = _ok

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        self.bodies.append(await request.read())
        answer = self.answers.pop(0) if self.answers else self.otherwise
        return answer if isinstance(answer, web.StreamResponse) else await answer(request)

    @property
    def asked(self) -> list[str]:
        return [f"{request.method} {request.path_qs}" for request in self.seen]


async def _ok(request: web.Request) -> web.StreamResponse:
    return web.json_response({"path": request.path_qs})


async def break_off(request: web.Request) -> web.StreamResponse:
    """Half a body, then a reset."""
    response = web.StreamResponse(headers={"Content-Length": "100", "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"half": ')
    assert request.transport is not None
    request.transport.abort()
    return response


async def hang(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


@contextlib.asynccontextmanager
async def serving(*, unix: Path | None = None, ssl_context: Any = None) -> AsyncIterator[World]:
    world = World()
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", world.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01, access_log=None)
    await runner.setup()
    if unix is not None:
        await web.UnixSite(runner, unix).start()
        world.url = f"unix://{unix}"
    else:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl_context).start()
        world.url = f"{'https' if ssl_context else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield world
    finally:
        await runner.cleanup()


def freely(clock: Any = None) -> Throttle:
    """A throttle that does not slow a test down."""
    clock = clock or FakeClock()
    return Throttle(reads_per_second=10_000, writes_per_second=10_000, clock=clock, chance=random.Random(1))


class Cookies:
    """A caller that sends back the cookies it was given."""

    def __init__(self, service: Service) -> None:
        self._service, self._cookie = service, ""
        self.endpoint, self.connection = service.endpoint, service.connection

    async def call(self, request: Request) -> Answer:
        if self._cookie:
            request = msgspec.structs.replace(request, headers={**request.headers, "Cookie": self._cookie})
        try:
            answer = await self._service.call(request)
        except CallError as error:
            self._keep(error.headers.get("set-cookie"))
            raise
        self._keep(answer.headers.get("set-cookie"))
        return answer

    def _keep(self, given: str | None) -> None:
        if given is not None:
            self._cookie = "" if "1970" in given else given.partition(";")[0]


async def followed(
    caller: Caller, of: Model, answer: Answer, *, method: str, resource: str
) -> tuple[Done | Failed | None, list[str]]:
    """The end of what an answer began, and the styles of the polls on the way. Time passes as the operation asks."""
    now, styles = NOW, []
    try:
        at: Operation | Done | Failed | None = begin(
            of, Call(method=method, path=resource), answer, now=now, verb=VERBS[method]
        )
    except CallError as error:
        return Failed(error), styles
    while isinstance(at, Operation):
        styles.append(at.style)
        now += timedelta(seconds=due(at, now))
        at = await poll(caller, of, at, resource=resource, now=now, chance=random.Random(1))
    return at, styles
