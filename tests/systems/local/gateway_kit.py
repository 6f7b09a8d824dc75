"""The data plane at work for a test: real Envoy, pods that answer with their version, and the API in this process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.runtime.conftest import scheme
from trimtab.client.api import ApiClient
from trimtab.client.protocol import EventType, Query, Ref
from trimtab.model import istio
from trimtab.model.clock import SystemClock
from trimtab.model.istio import VirtualService
from trimtab.model.kubernetes import ConfigMap, Pod, Service
from trimtab.model.resource import Resource
from trimtab.model.scheme import Scheme, Untyped
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.prepare import prepare
from trimtab.runtime.queue import connect as connect_queue
from trimtab.runtime.rights import account
from trimtab.runtime.system import Context, System
from trimtab.runtime.workers import Workers
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.storage.scratch import Scratch
from trimtab.store.memory import MemoryStore
from trimtab.systems.local.gateway.addresses import ADDRESS
from trimtab.systems.local.gateway.controller import RULES, GatewayController
from trimtab.systems.local.gateway.envoy.process import Process

__all__ = ["Gateway", "client", "gateway", "scheme", "server"]

Document = dict[str, Any]
ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))
SYSTEM = System(name="local", kinds=istio.KINDS, reconciles=(GatewayController,), rules=RULES)
PATIENCE = 20.0
NAMESPACE = "shop"
PORT = 8080
_places = itertools.count(1)

ANSWERING = """
import asyncio, signal, sys
address, port, body, status = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode(), sys.argv[4]
answer = b"HTTP/1.1 %s X\\r\\nContent-Length: %d\\r\\nX-Version: %s\\r\\n\\r\\n%s" % (status.encode(), len(body), body, body)
class Answer(asyncio.Protocol):
    def connection_made(self, transport): self.transport, self.left = transport, b""
    def data_received(self, data):
        data = self.left + data
        *whole, self.left = data.split(b"\\r\\n\\r\\n")
        self.transport.write(answer * len(whole))
async def main():
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    server = await loop.create_server(Answer, address, port, backlog=1024)
    def leave():
        server.close()
        loop.call_later(0.5, over.set)
    loop.add_signal_handler(signal.SIGTERM, leave)
    print("ready", flush=True)
    await over.wait()
asyncio.run(main())
"""
"""A pod under load: as quick as it can be, without bodies of requests. Asked to end, it takes no new connection and serves
those it has for a moment."""


class Backend:
    """A pod that remembers what it was asked. `status` is what it answers."""

    def __init__(self, version: str, address: str, port: int) -> None:
        self.version, self.address, self.port, self.status = version, address, port, 200
        self.delay = 0.0
        self.heads: list[str] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.address, self.port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head.decode())
                await asyncio.sleep(self.delay)
                body = self.version.encode()
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (self.status, len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


class Gateway:
    """One namespace, one folder. Leaving `working` is a clean stop; `killed` is not."""

    def __init__(self, client: ApiClient, folder: Path, own: ApiClient) -> None:
        """`own` is the controllers' client, with their rights."""
        self.client, self.folder, self._own = client, folder, own
        self.controller: GatewayController | None = None
        self.backends: list[Backend] = []
        self.places: dict[str, str] = {}  # of pods under load
        self._processes: list[subprocess.Popen[bytes]] = []

    @contextlib.asynccontextmanager
    async def working(
        self, *, killed: bool = False, stopping: asyncio.Event | None = None
    ) -> AsyncIterator[GatewayController]:
        clock = SystemClock()
        manager = Manager(self._own, name="local", clock=clock, metrics=Metrics())
        workers, queue = Workers(1), connect_queue(None, clock=clock)
        context = Context(
            client=self._own,
            clock=clock,
            blobs=None,
            scratch=Scratch(self.folder / "scratch", 1 << 20),
            queue=queue,
            workers=workers,
            metrics=manager.metrics,
            manager=manager,
            data_dir=self.folder,
            stopping=stopping,
        )
        controller = self.controller = GatewayController(context)
        manager.add(controller)
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        try:
            yield controller
        finally:
            if killed:
                controller.stop = controller.abandon  # type: ignore[method-assign]
            stop.set()
            await running
            await workers.close()
            await queue.close()

    async def close(self) -> None:
        """Leave nothing behind, whatever a test did: nobody else would find it."""
        left = Process(self.folder / "gateway")
        if left.folder.is_dir():
            await left.adopt()
            await left.stop()
        for backend in self.backends:
            await backend.stop()
        for process in self._processes:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    # --- what is declared --------------------------------------------------------------------------------------------

    async def create(self, kind: str, name: str, spec: Document, api: str = "v1", **metadata: Any) -> Any:
        meta = {"name": name, "namespace": NAMESPACE, **metadata}
        return await self.client.create(Untyped({"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec}))

    async def service(self, name: str, **spec: Any) -> None:
        ports = [{"name": "http", "port": 80, "targetPort": PORT}]
        await self.create("Service", name, {"selector": {"app": name}, "ports": ports, **spec})

    async def virtual_service(self, name: str, http: list[Document], **spec: Any) -> Any:
        whole = {"hosts": [name], "http": http, **spec}
        return await self.create("VirtualService", name, whole, "networking.istio.io/v1")

    async def route(self, name: str, http: list[Document], **spec: Any) -> Any:
        """Change the routes of one that is there."""
        found = await self.client.get(VirtualService, name, NAMESPACE)
        return await self.client.patch(found, found.replace(spec={**found.spec, "http": http, **spec}))  # type: ignore[dict-item]

    async def pod(self, app: str, name: str, address: str, *, ready: bool = True) -> None:
        spec = {"containers": [{"name": "app", "image": "none", "ports": [{"name": "web", "containerPort": PORT}]}]}
        made = await self.create("Pod", name, spec, labels={"app": app})
        await self.state(made, address, ready)

    async def state(self, pod: Any, address: str, ready: bool) -> None:
        found = await self.client.get(Pod, pod if isinstance(pod, str) else pod.name, NAMESPACE)
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        status = {"podIP": address, "phase": "Running", "conditions": conditions}
        await self.client.patch(found, found.replace(status=status), subresource="status")

    async def backend(self, app: str, name: str = "", *, version: str = "", ready: bool = True) -> Backend:
        """A pod of an app that answers."""
        made = Backend(version or app, place(), PORT)
        await made.start()
        self.backends.append(made)
        await self.pod(app, name or f"{app}-{len(self.backends)}", made.address, ready=ready)
        return made

    async def quick(self, app: str, name: str, *, status: int = 200) -> subprocess.Popen[bytes]:
        """A pod under load, as a process of its own."""
        address = place()
        command = [sys.executable, "-S", "-E", "-c", ANSWERING, address, str(PORT), app, str(status)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: ASYNC220 - a test
        assert process.stdout is not None
        await asyncio.to_thread(process.stdout.readline)
        self._processes.append(process)
        self.places[name] = f"{address}:{PORT}"
        await self.pod(app, name, address)
        return process

    async def gone(self, pod: str) -> None:
        await self.client.delete(Ref(Pod, pod, NAMESPACE))

    # --- what becomes of it ------------------------------------------------------------------------------------------

    async def until(self, kind: type[Resource], name: str, holds: Any, namespace: str = NAMESPACE) -> Any:
        """The object, or any of its kind, once this holds for it."""
        async with asyncio.timeout(PATIENCE):
            query = Query(namespace=namespace, fields=f"metadata.name={name}" if name else "")
            listing = await self.client.list(kind, query)
            for found in listing.items:
                if holds(found):
                    return found
            async for event in self.client.watch(kind, query, listing.revision):
                if event.type is not EventType.DELETED and event.object is not None and holds(event.object):
                    return event.object
        raise AssertionError

    async def live(self, name: str) -> Document:
        """The condition of a VirtualService, once its last generation was judged."""

        def judged(found: Any) -> bool:
            status = found.status or {}
            return bool(status) and status.get("observedGeneration") == found.metadata.generation

        return condition(await self.until(VirtualService, name, judged))

    async def address(self, service: str) -> str:
        """Where a Service is reached."""
        found = await self.until(Service, service, lambda each: ADDRESS in (each.metadata.annotations or {}))
        return str(found.metadata.annotations[ADDRESS])

    async def published(self) -> dict[str, str]:
        found = await self.until(ConfigMap, "data-plane", lambda each: bool(each.data), "trimtab-system")
        return dict(found.data)

    async def serving(self, service: str) -> str:
        """The URL of a Service that at least one pod answers for."""
        url = f"http://{await self.address(service)}"
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
            while (await _status(session, url)) != 200:  # noqa: ASYNC110 - asks a real server
                await asyncio.sleep(0.01)
        return url


async def _status(session: aiohttp.ClientSession, url: str) -> int:
    try:
        async with session.get(url) as response:
            return response.status
    except aiohttp.ClientError:
        return 0


def condition(virtual_service: Any) -> Document:
    (found,) = [each for each in virtual_service.status["conditions"] if each["type"] == "Reconciled"]
    return dict(found)


def place() -> str:
    """An address of the loopback interface that no other test of this run has."""
    number = next(_places)
    return f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}.{1 + number % 250}"


def to(*shares: tuple[str, int], **more: Any) -> Document:
    """A route to Services by weight."""
    return {"route": [{"destination": {"host": host}, "weight": weight} for host, weight in shares], **more}


async def ask(url: str, times: int = 1, headers: Mapping[str, str] | None = None) -> Counter[str]:
    """How often each answer came."""
    found: Counter[str] = Counter()
    async with aiohttp.ClientSession() as session:
        for _ in range(times):
            async with session.get(url, headers=headers) as response:
                found[f"{response.status} {await response.text()}"] += 1
    return found


async def wrk(url: str, seconds: float, *, connections: int = 16) -> asyncio.Task[Document]:
    """Load, begun now. The task's result has `requests`, `errors`, and the answers by status."""
    script = Path(__file__).with_name("gateway_load.lua")
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script), url]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )

    async def result() -> Document:
        output, _ = await process.communicate()
        line = next(each for each in output.decode().splitlines() if each.startswith("{"))
        return dict(json.loads(line))

    return asyncio.create_task(result())


@pytest.fixture
async def server(scheme: Scheme) -> AsyncIterator[Server]:
    """Ours, with Istio's kinds and with the rights of the local system as it declares them."""
    store = MemoryStore()
    made = Server(store)
    await made.start()
    try:
        for kind in istio.KINDS:
            scheme.register(kind)
        admin = local_client(made, ADMIN, scheme)
        for name in (NAMESPACE, "trimtab-system"):
            document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await admin.apply(Untyped(document), manager="tests")
        await prepare(admin, (SYSTEM,), rights=True)
        yield made
    finally:
        await made.stop()
        await store.close()


@pytest.fixture
async def client(server: Server, scheme: Scheme) -> ApiClient:
    return local_client(server, ADMIN, scheme)


@pytest.fixture
async def gateway(server: Server, client: ApiClient, scheme: Scheme, tmp_path: Path) -> AsyncIterator[Gateway]:
    user = User(account(SYSTEM), groups=("system:serviceaccounts", "system:authenticated"))
    made = Gateway(client, tmp_path, local_client(server, user, scheme))
    yield made
    await made.close()
