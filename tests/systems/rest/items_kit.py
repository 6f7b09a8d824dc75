"""A small service for tests of what may go wrong: items by a name of ours (PUT) or with an ID of the server's (POST), and
boxes with parts. It does as it is told; with `lasting` its writes take their time and have a monitor; and a test may put
an answer of its own in the place of any (`instead`)."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from aiohttp import web

from tests.runtime.widgets import Seen
from tests.systems.rest.station import Document, Station, condition_of
from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply, Transport
from trimtab.model.scheme import Untyped

KIND, BOX, PART = "Item", "Box", "Part"
BY_LOCATION = {"parameter": "id", "assigned": "server", "answer": "header:Location"}
STEP = 5.0
"""Seconds that pass at once: less than anything waits for."""

_SCHEMA: Document = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "provisioningState": {"type": "string", "readOnly": True},
        "title": {"type": "string"},
        "note": {"type": "string"},
        "size": {"type": "integer"},
        "zone": {"type": "string", "x-ms-mutability": ["create", "read"]},
        "password": {"type": "string", "x-ms-secret": True, "writeOnly": True},
        "users": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"login": {"type": "string"}, "pass": {"type": "string", "x-ms-secret": True}},
            },
        },
    },
}


def document(*, conditional: bool = False) -> str:
    """With `conditional` a PUT takes If-Match and If-None-Match."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}}
    listed = {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}}}}
    one: Document = {"responses": {"200": {"description": "it", "content": content}}}
    many: Document = {"responses": {"200": {"description": "all", "content": listed}}}
    write: Document = {**one, "requestBody": {"required": True, "content": content}}
    heads = ("If-Match", "If-None-Match") if conditional else ()
    put = {**write, "parameters": [{"name": name, "in": "header", "schema": {"type": "string"}} for name in heads]}
    single: Document = {"get": one, "put": put, "delete": {"responses": {"204": {"description": "gone"}}}}
    paths: Document = {
        "/items": {"get": many, "post": write},
        "/items/{id}": {"parameters": _parameters("id"), **single},
        "/boxes/{box}": {"parameters": _parameters("box"), **single},
        "/boxes/{box}/parts": {"parameters": _parameters("box"), "post": write},
        "/boxes/{box}/parts/{id}": {"parameters": _parameters("box", "id"), **single},
    }
    made = {"openapi": "3.0.3", "info": {"title": "Items", "version": "1"}, "paths": paths}
    return json.dumps({**made, "components": {"schemas": {"Item": _SCHEMA}}})


def _parameters(*names: str) -> list[Document]:
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def definition(*, server: bool = False, find: bool = False, **changes: Any) -> Document:
    """Items as a kind. `server` chooses IDs; `find` finds an item by its title. `changes` go into the spec."""
    operations = _operations("/items/{id}", "/items" if server else "")
    identity: Document = {"parameter": "id"}
    if server:
        identity.update(assigned="server", answer="id")
    if find:
        operations["list"] = {"method": "GET", "path": "/items"}
        identity["find"] = ["title"]
    spec = {"names": {"kind": KIND, "plural": "items"}, "operations": operations, "identity": identity}
    return {"spec": {**spec, **changes}}


def boxes() -> list[Document]:
    """Boxes by name, and their parts with IDs of the server's."""
    box = {"kind": BOX, "plural": "boxes"}
    part = {"kind": PART, "plural": "parts"}
    operations = _operations("/boxes/{box}/parts/{id}", "/boxes/{box}/parts")
    identity = {"parameter": "id", "assigned": "server", "answer": "id"}
    return [
        {"spec": {"names": box, "operations": _operations("/boxes/{box}"), "identity": {"parameter": "box"}}},
        {"spec": {"names": part, "parent": BOX, "operations": operations, "identity": identity}},
    ]


def _operations(one: str, collection: str = "") -> Document:
    methods = {"read": "GET", "update": "PUT", "delete": "DELETE"}
    create = {"method": "POST", "path": collection} if collection else {"method": "PUT", "path": one}
    return {"create": create, **{verb: {"method": method, "path": one} for verb, method in methods.items()}}


class Asked(NamedTuple):
    method: str
    path: str
    body: Any
    headers: dict[str, str]


Instead = Callable[[web.Request, Any], Awaitable[web.StreamResponse | None]]


class Items:
    """By path. `serving` runs one."""

    def __init__(self) -> None:
        self.url = ""
        self.there: dict[str, Document] = {}
        self.asked: Seen[Asked] = Seen()
        self.instead: Instead | None = None
        self.lasting: frozenset[str] = frozenset()
        """Methods that take their time: what they do is done by `finish`."""
        self.located = False  # whether what lasts says at once where it will be
        self.etags = False
        self.monitors: dict[str, Document] = {}
        self._unfinished: list[Callable[[], Any]] = []
        self._numbers = itertools.count(1)

    def writes(self) -> list[str]:
        return [asked.method for asked in self.asked if asked.method != "GET"]

    def reads(self) -> list[str]:
        return [asked.path for asked in self.asked if asked.method == "GET"]

    def finish(self, status: str = "Succeeded", **said: Any) -> None:
        """All that takes its time comes to its end."""
        if status == "Succeeded":
            for effect in self._unfinished:
                effect()
        self._unfinished.clear()
        for monitor in self.monitors.values():
            monitor.update(status=status, **said)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.body_exists else None
        self.asked.append(Asked(request.method, request.path, body, dict(request.headers)))
        if self.instead is not None and (answer := await self.instead(request, body)) is not None:
            return answer
        if request.path in self.monitors:
            return web.json_response(self.monitors[request.path])
        if request.method not in self.lasting:
            return self.answered(request.method, request.path, body, request.headers.get("If-None-Match", ""))
        path = request.path if request.method != "POST" else f"{request.path}/{next(self._numbers)}"
        method = "PUT" if request.method == "POST" else request.method
        self._unfinished.append(lambda: self.answered(method, path, body))
        monitor = f"/ops/{next(self._numbers)}"
        self.monitors[monitor] = {"status": "Running"}
        headers = {"Operation-Location": f"{self.url}{monitor}", **({"Location": path} if self.located else {})}
        return web.Response(status=202, headers=headers)

    def answered(self, method: str, path: str, body: Any = None, known: str = "") -> web.Response:
        """`known` is the ETag that the asker has."""
        if method == "POST":
            path, method = f"{path}/{next(self._numbers)}", "PUT"
        if method == "PUT":
            is_new = path not in self.there
            self.there[path] = {**body, "id": path.rpartition("/")[2]}
            return web.json_response(_shown(self.there[path]), status=201 if is_new else 200)
        if path == "/items":
            return web.json_response([_shown(body) for at, body in self.there.items() if at.startswith("/items/")])
        if path not in self.there:
            return web.json_response({"error": {"code": "NotFound", "message": f"no {path}"}}, status=404)
        if method == "DELETE":
            del self.there[path]
            return web.Response(status=204)
        shown = _shown(self.there[path])
        etag = f'"{hash(str(shown))}"' if self.etags else ""
        if etag and etag == known:
            return web.Response(status=304)
        return web.json_response(shown, headers={"ETag": etag} if etag else {})


def _shown(body: Document) -> Document:
    return {name: value for name, value in copy.deepcopy(body).items() if name != "password"}


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Items]:
    items = Items()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", items.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        items.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield items
    finally:
        await runner.cleanup()


def refused(status: int, code: str, message: str = "no") -> web.Response:
    return web.json_response({"error": {"code": code, "message": message}}, status=status)


def lost(request: web.Request) -> web.Response:
    """The connection ends where the answer would be."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


# --- what tests do ------------------------------------------------------------------------------------------------------


async def passing(station: Station, awaited: Coroutine[Any, Any, Any]) -> Any:
    """What is awaited, while time passes."""
    task = asyncio.ensure_future(awaited)
    try:
        while not task.done():
            station.clock.leap(STEP)
            await asyncio.wait({task}, timeout=0.02)
        return task.result()
    finally:
        task.cancel()


async def begun(station: Station, name: str = "a") -> Untyped:
    """An item whose operation is followed."""
    return await station.until(KIND, name, lambda d: sync_of(d).get("operation"))


async def says(station: Station, reason: str, kind: str = KIND, name: str = "a") -> Document:
    """The condition Ready, once it has this reason."""
    found = await station.until(kind, name, lambda d: condition_of(d, "Ready").get("reason") == reason)
    return condition_of(found.raw, "Ready")


async def forget(station: Station, name: str = "a", *, keep: Callable[[Document], Any] = dict.clear) -> None:
    """Someone writes the status of an item; they wipe it, unless `keep` changes it otherwise."""
    found = await station.get(KIND, name)
    changed = copy.deepcopy(found.raw)
    keep(changed["status"])
    await station.client.patch(found, Untyped(changed), subresource="status")


def sync_of(document: Document) -> Document:
    return (document.get("status") or {}).get("sync") or {}


def finalizers_of(document: Document) -> list[str]:
    return document["metadata"].get("finalizers") or []


def between(client: ApiClient, before: Callable[[Call], Any]) -> ApiClient:
    """A client whose every write is announced to `before`."""
    return ApiClient(_Announced(client.transport, before), client.scheme, namespace=client.namespace)


class _Announced:
    """A transport."""

    def __init__(self, inner: Transport, before: Callable[[Call], Any]) -> None:
        self._inner, self._before = inner, before

    async def call(self, call: Call) -> Reply:
        if call.method != "GET":
            self._before(call)
        return await self._inner.call(call)

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._inner.stream(call, inactivity)

    async def close(self) -> None:
        """It is the test's."""
