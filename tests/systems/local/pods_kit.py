"""The pods of the local system at work for a test, and small programs to run in them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trimtab.client.api import ApiClient
from trimtab.client.protocol import EventType, Query, Ref
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Deployment, Event, Pod
from trimtab.model.resource import Resource
from trimtab.model.scheme import Untyped
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import Metrics
from trimtab.runtime.system import Context
from trimtab.systems.local.deployment_controller import DeploymentController
from trimtab.systems.local.pods.controller import PodController, truth_of
from trimtab.systems.local.pods.launch import AsProcess
from trimtab.systems.local.pods.leftovers import end_strays

Document = dict[str, Any]
PATIENCE = 20.0
DRAIN = "local.trimtab.dev/drain"
PORT = 8080

SERVER = """
import http.server, os, signal, sys
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = -1
    def do_GET(self):
        text = (os.environ.get('VERSION', '') + ' ' + os.environ['POD_NAME']).encode()
        bad = self.path == '/health' and os.path.exists('sick')
        self.send_response(500 if bad else 200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *a): pass
signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))
http.server.ThreadingHTTPServer((os.environ['POD_IP'], 8080), Answer).serve_forever()
"""
"""Answers with its version and its pod. It is sick while there is a file of that name where it works."""


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", code]


def container(code: str = SERVER, **fields: Any) -> Document:
    return {"name": "app", "image": "none", "command": python(code), **fields}


def ready_probe(**fields: Any) -> Document:
    return {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1, **fields}


def deployment(
    name: str = "web",
    *containers: Document,
    replicas: int = 1,
    annotations: Mapping[str, str] | None = None,
    pod: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Document:
    """A Deployment of these containers; of a server with a readiness probe when none are given."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {DRAIN: "0.1", **(annotations or {})}},
                "spec": {
                    "containers": list(containers) or [container(readinessProbe=ready_probe())],
                    "terminationGracePeriodSeconds": 2,
                    **(pod or {}),
                },
            },
            **spec,
        },
    }


@contextlib.asynccontextmanager
async def running(
    client: ApiClient, folder: Path, *, home_ends: bool = True, **limits: Any
) -> AsyncIterator[tuple[DeploymentController, PodController]]:
    """The controllers. With `home_ends` the processes are ended at the end, else they go on."""
    manager = Manager(client, name="local", metrics=Metrics())
    stop, stopping = asyncio.Event(), asyncio.Event()
    unused: Any = None
    given = Context(
        client=client,
        clock=SystemClock(),
        blobs=None,
        scratch=unused,
        queue=unused,
        workers=unused,
        metrics=manager.metrics,
        manager=manager,
        data_dir=folder,
        stopping=stopping,
    )
    truth = truth_of(given)
    controllers = (DeploymentController(given, truth, **limits), PodController(given, truth))
    for controller in controllers:
        manager.add(controller)
    task = asyncio.create_task(manager.run(stop))
    try:
        yield controllers
    finally:
        if home_ends:
            stopping.set()
        stop.set()
        await task


class Bench:
    """A namespace, `shop`, and what tests do and see there."""

    def __init__(self, client: ApiClient, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.pods_folder = folder / "local" / "pods"

    def running(self, *, home_ends: bool = True, **limits: Any) -> Any:
        return running(self.client, self.folder, home_ends=home_ends, **limits)

    async def close(self) -> None:
        await end_strays(self.pods_folder, (), AsProcess(), 1.0)

    async def create(self, document: Document) -> None:
        await self.client.create(Untyped(document))

    async def change(self, name: str, mutate: Callable[[Document], Any]) -> None:
        """`mutate` changes the Deployment's spec in place."""
        while True:
            found = await self.client.get(Deployment, name, "shop")
            spec = json.loads(json.dumps(found.spec))
            mutate(spec)
            try:
                await self.client.patch(found, found.replace(spec=spec))
                return
            except StatusError as error:
                if error.code != 409:
                    raise

    async def delete(self, kind: type[Resource], name: str) -> None:
        await self.client.delete(Ref(kind, name, "shop"))

    async def pods(self) -> list[Document]:
        return [pod.raw for pod in (await self.client.list(Pod, Query(namespace="shop"))).items]  # type: ignore[misc]

    async def until(self, met: Callable[[list[Document]], Any]) -> list[Document]:
        """The pods, once `met` is true of them."""
        return await self._until(Pod, met)

    async def until_deployment(self, name: str, met: Callable[[Document], Any]) -> Document:
        found = await self._until(Deployment, lambda all_: any(met(each) for each in all_ if _name(each) == name))
        return next(each for each in found if _name(each) == name)

    async def _until(self, kind: type[Resource], met: Callable[[list[Document]], Any]) -> list[Document]:
        query = Query(namespace="shop")
        listing = await self.client.list(kind, query)
        there: dict[str, Any] = {each.name: each.raw for each in listing.items}
        if met(list(there.values())):
            return list(there.values())
        try:
            async with asyncio.timeout(PATIENCE):
                async for event in self.client.watch(kind, query, listing.revision):
                    if event.object is None:
                        continue
                    there[event.object.name] = event.object.raw
                    if event.type is EventType.DELETED:
                        del there[event.object.name]
                    if met(list(there.values())):
                        return list(there.values())
        except TimeoutError:
            shown = json.dumps([each.get("status") for each in there.values()], indent=1)[:6000]
            raise AssertionError(f"it never came to what was waited for: {shown}") from None
        raise AssertionError("the watch ended")

    async def complete(self, name: str = "web") -> Document:
        """The Deployment, once its rollout is done."""
        return await self.until_deployment(name, is_complete)

    async def events(self) -> list[tuple[str, str]]:
        found = (await self.client.list(Event, Query(namespace="shop"))).items
        return [(str(event.reason), str(event.note)) for event in found]


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def is_complete(document: Document) -> bool:
    status, replicas = document.get("status") or {}, document["spec"]["replicas"]
    return status.get("observedGeneration") == document["metadata"]["generation"] and all(
        status.get(field, 0) == replicas for field in ("replicas", "updatedReplicas", "availableReplicas")
    )


def condition(document: Document, kind: str) -> Document:
    return next((c for c in (document.get("status") or {}).get("conditions") or () if c["type"] == kind), {})


def is_ready(pod: Document) -> bool:
    return condition(pod, "Ready").get("status") == "True"


def app(pod: Document) -> Document:
    """The status of a pod's first container."""
    statuses: Sequence[Document] = (pod.get("status") or {}).get("containerStatuses") or ({},)
    return statuses[0]


def pid_of(pod: Document) -> int:
    return int(app(pod).get("containerID", "process://0").removeprefix("process://"))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def get(address: str, path: str = "/", port: int = PORT) -> str:
    """One request on a connection of its own. OSError."""
    reader, writer = await asyncio.open_connection(address, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    if b"\r\n\r\n" not in answer:
        raise ConnectionResetError("no answer")
    return answer.partition(b"\r\n\r\n")[2].decode()


def sicken(bench: Bench, pod: Document, sick: bool = True) -> None:
    file = bench.pods_folder / pod["metadata"]["uid"] / "work" / "sick"
    if sick:
        file.touch()
    else:
        os.unlink(file)
