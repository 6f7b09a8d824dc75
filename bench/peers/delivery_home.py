"""`trimtab up` as people run it, with canary delivery, for as long as a part of the benchmark takes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import EventType, Named, Query
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.usage import family

Document = dict[str, Any]

CANARY = Named("delivery.trimtab.dev/v1alpha1", "CanaryDeployment")
DEPLOYMENT = Named("apps/v1", "Deployment")
SERVICE = Named("v1", "Service")
VIRTUAL_SERVICE = Named("networking.istio.io/v1", "VirtualService")
PATIENCE = 300.0
_COUNT = re.compile(rb'^apiserver_request_total\{verb="(\w+)",code="\d+"\} (\d+)$', re.MULTILINE)


class Home:
    """The server, its controllers, and a client of both."""

    def __init__(self, server: TrimtabServer, client: ApiClient, data: Path) -> None:
        self.server, self.client, self.data = server, client, data

    @property
    def server_pid(self) -> int:
        return self.server.pids["server"]

    def controllers(self) -> int:
        """The process; 0 while there is none."""
        for pid in family(self.server_pid)[1:]:
            with contextlib.suppress(OSError):
                if b"controllers" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    return pid
        return 0

    async def kill_controllers(self) -> None:
        """As a power cut would; `trimtab up` starts them again."""
        old = self.controllers()
        os.kill(old, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            while self.controllers() in (0, old):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.05)

    async def requests(self) -> dict[str, int]:
        """How many the server has answered so far, by method."""
        answer = await self.client.transport.call(Call(method="GET", path="/metrics"))
        found: dict[str, int] = {}
        for verb, count in _COUNT.findall(answer.body):
            found[verb.decode()] = found.get(verb.decode(), 0) + int(count)
        return found

    async def known(self, kind: Named) -> None:
        """The controllers define the system's kinds when they start."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.client.list(kind)
                    return
                except StatusError as error:
                    if error.code != 404:
                        raise
                await asyncio.sleep(0.1)

    async def create(self, kind: Named, namespace: str, name: str, spec: Document, **metadata: Any) -> None:
        named = {"name": name, "namespace": namespace, **metadata}
        document = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": named, "spec": spec}
        await self.client.create(Untyped(document))

    async def namespace(self, name: str) -> None:
        await self.client.create(Untyped({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))

    async def get(self, kind: Named, namespace: str, name: str) -> Document:
        return dict((await self.client.get(kind, name, namespace)).raw)

    async def change(self, kind: Named, namespace: str, name: str, mutate: Callable[[Document], Any]) -> None:
        """`mutate` changes the document in place."""
        while True:
            found = await self.client.get(kind, name, namespace)
            document = {
                **msgspec.json.decode(msgspec.json.encode(found.raw)),
                "apiVersion": kind.api_version,
                "kind": kind.kind,
            }
            mutate(document)
            try:
                await self.client.patch(found, Untyped(document))
                return
            except StatusError as error:
                if error.code != 409:
                    raise

    async def follow(self, kind: Named, namespace: str, act: Callable[[Document], Awaitable[bool | None]]) -> None:
        """Each object as it is, and as it becomes, until `act` says that it is enough."""
        query = Query(namespace=namespace)
        while True:
            listing = await self.client.list(kind, query)
            for found in listing.items:
                if await act(found.raw):
                    return
            with contextlib.suppress(StatusError, OSError):
                async with contextlib.aclosing(self.client.watch(kind, query, listing.revision)) as events:
                    async for event in events:
                        there = event.object is not None and event.type is not EventType.DELETED
                        if there and await act(event.object.raw):
                            return

    async def until(self, kind: Named, namespace: str, name: str, holds: Callable[[Document], Any]) -> Document:
        """The object, as soon as this is true of it."""
        met: list[Document] = []

        async def look(found: Document) -> bool:
            if found["metadata"]["name"] == name and holds(found):
                met.append(found)
            return bool(met)

        try:
            async with asyncio.timeout(PATIENCE):
                await self.follow(kind, namespace, look)
        except TimeoutError:
            raise RuntimeError(f"{kind.kind} {name} is not as waited for\n{self.server.logs()}") from None
        return met[0]


@contextlib.asynccontextmanager
async def home(*flags: str) -> AsyncIterator[Home]:
    """All of it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as place:
        folder = Path(place)
        with TrimtabServer(folder, flags=flags) as server:
            client = connect(server.kubeconfig)
            try:
                made = Home(server, client, folder / "data")
                if "delivery" in flags:
                    await made.known(CANARY)
                yield made
            finally:
                await client.close()


def phase(canary: Document) -> str:
    return str((canary.get("status") or {}).get("phase") or "")


def ended(canary: Document) -> list[Document]:
    """Runs that have ended, newest first; none while one goes on."""
    status = canary.get("status") or {}
    if status.get("phase") != "Stable" or status.get("run"):
        return []
    return [run for run in status.get("history") or () if run.get("outcome") != "Running"]
