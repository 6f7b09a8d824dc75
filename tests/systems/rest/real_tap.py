"""Listens in on the way to a real server: each request is passed on as it is, and written down."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from tests.runtime.widgets import PATIENCE
from trimtab.testing.ports import free_ports

_HOP = {"host", "content-length", "transfer-encoding", "connection"}


class Heard(msgspec.Struct, frozen=True):
    """One request."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]
    status: int

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Tap:
    """`url` is the endpoint to give to a RestService."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.heard: list[Heard] = []
        self.lose_answers = 0
        """So many of the next writes arrive, and their answers do not."""
        self._more = asyncio.Event()

    @property
    def writes(self) -> list[str]:
        """What was asked for that changes something, in order: `PATCH /1.0/profiles/web`."""
        return [str(each) for each in self.heard if each.method != "GET"]

    def hear(self, request: Heard) -> None:
        self.heard.append(request)
        self._more.set()

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait for requests until this is true."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._more.clear()
                await self._more.wait()

    def last(self, method: str) -> Heard:
        return [each for each in self.heard if each.method == method][-1]


@asynccontextmanager
async def tapped(target: str) -> AsyncIterator[Tap]:
    """In front of this endpoint, by the same means: a unix socket for a unix socket."""
    socket = target.removeprefix("unix://") if target.startswith("unix://") else ""
    origin = "http://lab" if socket else "/".join(target.split("/")[:3])
    connector = aiohttp.UnixConnector(path=socket) if socket else aiohttp.TCPConnector()
    with tempfile.TemporaryDirectory() as folder:
        file, (port,) = Path(folder) / "tap", free_ports(1)
        tap = Tap(f"unix://{file}" if socket else f"http://127.0.0.1:{port}{target.removeprefix(origin)}")
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

            async def passed(request: web.Request) -> web.Response:
                content = await request.read()
                headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
                async with session.request(
                    request.method, origin + request.raw_path, data=content or None, headers=headers
                ) as answer:
                    said = await answer.read()
                    body = json.loads(content) if content else None
                    heard = Heard(request.method, request.raw_path, body, dict(request.headers), answer.status)
                    tap.hear(heard)
                    if request.method != "GET" and tap.lose_answers:
                        tap.lose_answers -= 1
                        assert request.transport is not None
                        request.transport.abort()
                    given = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
                    return web.Response(status=answer.status, body=said, headers=given)

            application = web.Application()
            application.router.add_route("*", "/{path:.*}", passed)
            runner = web.AppRunner(application, access_log=None)
            await runner.setup()
            site = web.UnixSite(runner, str(file)) if socket else web.TCPSite(runner, "127.0.0.1", port)
            await site.start()
            try:
                yield tap
            finally:
                await runner.cleanup()
