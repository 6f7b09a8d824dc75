"""What 500 releases need besides controllers, played: pods that are ready at once, a data plane that takes every route at
once, and a server with the part of Prometheus' HTTP API that checks use, on real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import msgspec
from delivery_home import DEPLOYMENT, VIRTUAL_SERVICE, Document, Home

from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped

RATE, SCRAPE = 10, 1
"""Requests a second to each workload; seconds from one scrape to the next."""
_LENGTH = re.compile(r"\[(\d+)ms\]$")
_LIVE = {
    "type": "Reconciled",
    "status": "True",
    "reason": "Live",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@contextlib.asynccontextmanager
async def played(home: Home, namespaces: list[str]) -> AsyncIterator[None]:
    """Pods and data plane of these namespaces."""
    tasks = []
    for namespace in namespaces:
        tasks.append(asyncio.create_task(home.follow(DEPLOYMENT, namespace, Player(home).deployed)))
        tasks.append(asyncio.create_task(home.follow(VIRTUAL_SERVICE, namespace, Player(home).routed)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class Player:
    def __init__(self, home: Home) -> None:
        self._client = home.client

    async def deployed(self, found: Document) -> None:
        wanted = found["spec"].get("replicas", 1)
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted)
        await self._say(found, {"observedGeneration": found["metadata"]["generation"], **counts}, DEPLOYMENT)

    async def routed(self, found: Document) -> None:
        status = {"observedGeneration": found["metadata"]["generation"], "conditions": [_LIVE]}
        await self._say(found, status, VIRTUAL_SERVICE)

    async def _say(self, found: Document, status: Document, kind: object) -> None:
        before = found.get("status") or {}
        if {key: before.get(key) for key in status} == status:
            return
        names = {"apiVersion": kind.api_version, "kind": kind.kind}  # type: ignore[attr-defined]
        both = [Untyped({**found, **names}), Untyped({**found, **names, "status": {**before, **status}})]
        with contextlib.suppress(StatusError):  # someone wrote meanwhile: the watch brings it again
            await self._client.patch(both[0], both[1], subresource="status")


class Metrics:
    """Prometheus' API: every workload has answered RATE requests a second, all of them well."""

    def __init__(self) -> None:
        self.queries = 0
        self._began = int(time.time()) - 3600

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Its URL."""
        server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()

    def answer(self, head: bytes) -> bytes:
        form = parse_qs(urlsplit(head.split(b" ", 2)[1].decode()).query)
        body = msgspec.json.encode(self._answer(form["query"][0], float(form["time"][0])))
        line = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return line.encode() + body

    def _answer(self, query: str, at: float) -> Document:
        self.queries += 1
        labels = {"response_code": "200", "reporter": "source"}
        length = _LENGTH.search(query)
        if length is None:
            data = {"resultType": "vector", "result": [{"metric": labels, "value": (at, self._count(at))}]}
        else:
            first = at - int(length[1]) / 1000
            times = range(-int(-first // SCRAPE) * SCRAPE, int(at) + 1, SCRAPE)
            values = [(moment, self._count(moment)) for moment in times if moment >= first]
            data = {"resultType": "matrix", "result": [{"metric": labels, "values": values}] if values else []}
        return {"status": "success", "data": data}

    def _count(self, at: float) -> str:
        return str((int(at) // SCRAPE * SCRAPE - self._began) * RATE)


class _Connection(asyncio.Protocol):
    """Requests have no bodies."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics, self._left = metrics, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *heads, self._left = (self._left + data).split(b"\r\n\r\n")
        self._transport.write(b"".join(map(self._metrics.answer, heads)))  # type: ignore[attr-defined]
