"""A small service of the tests' own: notes, whose IDs it chooses itself. It does what it is told, or what a test puts in
its place (`instead`)."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

from aiohttp import web

from tests.systems.rest.station import GROUP, LABEL, Document, Station

KIND = "Note"
DOCUMENT = """
openapi: 3.0.3
info: { title: Notes, version: "1" }
paths:
  /notes:
    get:
      responses:
        "200":
          description: all
          content: { application/json: { schema: { type: array, items: { $ref: "#/components/schemas/Note" } } } }
    post:
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Note" } } } }
      responses:
        "201":
          description: made
          content: { application/json: { schema: { $ref: "#/components/schemas/Note" } } }
  /notes/{id}:
    parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
    get:
      responses: { "200": { description: one, content: { application/json: { schema: { $ref: "#/components/schemas/Note" } } } } }
    put:
      requestBody: { content: { application/json: { schema: { $ref: "#/components/schemas/Note" } } } }
      responses: { "200": { description: now, content: { application/json: { schema: { $ref: "#/components/schemas/Note" } } } } }
    delete:
      responses: { "204": { description: gone } }
components:
  schemas:
    Note:
      type: object
      required: [title]
      properties:
        id: { type: string, readOnly: true }
        title: { type: string }
        text: { type: string }
        labels: { type: object, additionalProperties: { type: string } }
"""


def definition(**changes: Any) -> Document:
    """Notes as a kind. `changes` go into the spec."""
    one = "/notes/{id}"
    spec = {
        "names": {"kind": KIND, "plural": "notes"},
        "operations": {
            "create": {"method": "POST", "path": "/notes"},
            "read": {"method": "GET", "path": one},
            "update": {"method": "PUT", "path": one},
            "delete": {"method": "DELETE", "path": one},
            "list": {"method": "GET", "path": "/notes"},
        },
        "identity": {"parameter": "id", "assigned": "server", "answer": "id", "find": ["title"]},
    }
    return {"spec": {**spec, **changes}}


async def serve(station: Station, endpoint: str, document: Document, *definitions: Document) -> None:
    """Without waiting for anything."""
    await station.create(
        {
            "apiVersion": GROUP,
            "kind": "RestService",
            "metadata": {"name": station.service, "labels": {LABEL: station.service}},
            "spec": {"endpoint": endpoint, "document": document},
        }
    )
    for each in definitions or (definition(),):
        await define(station, each)


async def define(station: Station, given: Document, name: str = "notes") -> None:
    await station.create(
        {
            "apiVersion": GROUP,
            "kind": "RestDefinition",
            "metadata": {"name": f"{name}.{station.service}", "labels": {LABEL: station.service}},
            "spec": {**given["spec"], "serviceRef": station.service},
        }
    )


class Asked(NamedTuple):
    method: str
    path: str
    body: Any
    headers: dict[str, str]


Instead = Callable[[web.Request, Any], Awaitable[web.StreamResponse | None]]


class Notes:
    """Serves between `async with` and its end. `instead` is asked first, and may answer."""

    def __init__(self) -> None:
        self.url = ""
        self.notes: dict[str, Document] = {}
        self.asked: list[Asked] = []
        self.instead: Instead | None = None
        self._numbers = itertools.count(1)
        self._runner: web.AppRunner | None = None

    def titled(self, title: str) -> list[Document]:
        return [note for note in self.notes.values() if note.get("title") == title]

    def writes(self) -> list[str]:
        return [asked.method for asked in self.asked if asked.method != "GET"]

    def posts(self, title: str) -> int:
        return sum(1 for a in self.asked if a.method == "POST" and a.body.get("title") == title)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.body_exists else None
        self.asked.append(Asked(request.method, request.path, body, dict(request.headers)))
        if self.instead is not None and (answer := await self.instead(request, body)) is not None:
            return answer
        return self.answered(request.method, request.path, body)

    def answered(self, method: str, path: str, body: Any) -> web.Response:
        own = path.removeprefix("/notes").strip("/")
        if not own:
            if method == "GET":
                return web.json_response(list(self.notes.values()))
            made = {**body, "id": f"n{next(self._numbers)}"}
            self.notes[made["id"]] = made
            return web.json_response(made, status=201)
        if own not in self.notes:
            return web.json_response({"message": f"no note {own}"}, status=404)
        if method == "PUT":
            self.notes[own] = {**body, "id": own}
        if method == "DELETE":
            del self.notes[own]
            return web.Response(status=204)
        return web.json_response(self.notes[own])
