"""A proxy in front of a registry that does what a bad network or a bad registry would.

    async with FaultProxy(port, registry.url) as proxy:
        proxy.fault("GET", r"/blobs/", Truncated(after=100), times=1)

Faults are tried in the order in which they were added, each as often as it says. `requests` is what was asked, in order.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
from aiohttp import web


class Asked(msgspec.Struct, frozen=True):
    """One request. Its headers are with small letters."""

    method: str
    path: str  # with its query
    headers: Mapping[str, str]


class Answered(msgspec.Struct, frozen=True):
    """This, and nothing of the registry."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


class Truncated(msgspec.Struct, frozen=True):
    """The registry's answer breaks off after some bytes."""

    after: int


class Corrupted(msgspec.Struct, frozen=True):
    """One bit of the registry's answer is another; or another content comes, with the same headers."""

    content: bytes | None = None


class Stalled(msgspec.Struct, frozen=True):
    """After some bytes nothing comes any more, and the connection stays."""

    after: int


class Dropped(msgspec.Struct, frozen=True):
    """The connection is closed without an answer."""


class Crowded(msgspec.Struct, frozen=True):
    """429 while there are more than `most` requests at once."""

    most: int


Fault = Crowded | Answered | Truncated | Corrupted | Stalled | Dropped


class FaultProxy:
    """Serves between `async with` and its end, over plain HTTP on loopback. Without an upstream all else is 404."""

    def __init__(self, port: int, upstream: str = "", *, address: str = "127.0.0.1") -> None:
        self.host = f"{address}:{port}"
        self.url = f"http://{self.host}"
        self.requests: list[Asked] = []
        self._address, self._port, self._upstream = address, port, upstream
        self._faults: list[_Rule] = []
        self._inside = 0
        self._over = asyncio.Event()

    def fault(self, method: str, path: str, fault: Fault, *, times: int = 1_000_000) -> None:
        """`path` is a regular expression that is searched for in the path with its query."""
        self._faults.append(_Rule(method, re.compile(path), fault, times))

    def clear(self) -> None:
        """No faults any more, and nothing asked yet."""
        self._faults.clear()
        self.requests.clear()

    def count(self, method: str, path: str = "") -> int:
        """How many such requests there were."""
        return sum(1 for each in self.requests if each.method == method and re.search(path, each.path))

    def _chosen(self, asked: Asked) -> Fault | None:
        for rule in self._faults:
            if rule.times and rule.method == asked.method and rule.path.search(asked.path):
                rule.times -= 1
                return rule.fault
        return None

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(request.method, request.raw_path, headers)
        self.requests.append(asked)
        fault = self._chosen(asked)
        if isinstance(fault, Dropped):
            return self._cut(request)
        if isinstance(fault, Answered):
            return web.Response(status=fault.status, headers=fault.headers, body=fault.body)
        if not self._upstream:
            return web.Response(status=404)
        if isinstance(fault, Crowded) and self._inside >= fault.most:
            return web.Response(status=429, headers={"Retry-After": "0"})
        self._inside += 1
        try:
            status, answered, body = await self._forwarded(request, asked)
        finally:
            self._inside -= 1
        if isinstance(fault, Corrupted):
            body = fault.content if fault.content is not None else bytes([body[0] ^ 1]) + body[1:]
        if isinstance(fault, Truncated | Stalled):
            return await self._partly(request, status, answered, body, fault)
        if request.method == "HEAD":  # with the length of a body that does not come
            response = web.StreamResponse(status=status, headers=answered)
            await response.prepare(request)
            return response
        return web.Response(status=status, headers=answered, body=body)

    async def _forwarded(self, request: web.Request, asked: Asked) -> tuple[int, dict[str, str], bytes]:
        kept = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        async with self._session.request(
            request.method, self._upstream + asked.path, headers=kept, data=await request.read(), allow_redirects=False
        ) as response:
            body = await response.read()
            answered = {name: value for name, value in response.headers.items() if name.lower() not in _HOP}
            if request.method == "HEAD" and response.content_length is not None:
                answered["Content-Length"] = str(response.content_length)
            return response.status, answered, body

    async def _partly(
        self, request: web.Request, status: int, headers: dict[str, str], body: bytes, fault: Truncated | Stalled
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers=headers)
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(body[: fault.after])
        if isinstance(fault, Stalled):
            await self._over.wait()
        return self._cut(request)

    def _cut(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.close()
        return web.Response()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(auto_decompress=False)
        application = web.Application(client_max_size=1 << 30)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._address, self._port).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        await self._runner.cleanup()
        await self._session.close()


class _Rule(msgspec.Struct):
    method: str
    path: re.Pattern[str]
    fault: Fault
    times: int  # that are left


_HOP = frozenset({"host", "connection", "content-length", "transfer-encoding", "keep-alive"})
"""What belongs to one connection."""
