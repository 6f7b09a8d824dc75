"""What surrounds a resource: joins and exports that fail, hide what is secret, and touch nothing of others; references to
what cannot be read; and operations that repeat what they were sent."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from tests.runtime.widgets import PATIENCE
from tests.systems.rest.notes_kit import DOCUMENT, KIND, Notes, definition
from tests.systems.rest.station import Document, Station, condition_of
from tests.systems.rest.test_odd_services import not_ready
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.client.transport import Call, Reply, Transport
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Event, Secret
from trimtab.model.scheme import Untyped

LOCAL = pytest.mark.parametrize("client", ["local"], indirect=True)
HIDDEN = "hunter2-hunter2"
SEALED = {"text": {"secretRef": {"name": "login", "key": "password"}}}
AS_SECRET = {"fields": {"text": {"class": "secret"}}}


@pytest.fixture
async def notes() -> AsyncIterator[Notes]:
    async with Notes() as service:
        yield service


async def serving(station: Station, notes: Notes, **changes: Any) -> None:
    await station.serve(notes.url, DOCUMENT, definitions=[definition(**changes)])


def answering(notes: Notes, path: str, body: Any) -> None:
    async def instead(request: web.Request, _: Any) -> web.StreamResponse | None:
        return web.json_response(body) if request.path == path else None

    notes.instead = instead


class Between(Transport):
    """A way to the API on which something happens before some calls arrive."""

    def __init__(self, inner: Transport, first: Callable[[Call], Awaitable[None]]) -> None:
        self._inner, self._first = inner, first

    async def call(self, call: Call) -> Reply:
        await self._first(call)
        return await self._inner.call(call)

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._inner.stream(call, inactivity)

    async def close(self) -> None:
        """It is the test's."""


def between(client: ApiClient, first: Callable[[Call], Awaitable[None]]) -> ApiClient:
    return ApiClient(Between(client.transport, first), client.scheme, namespace=client.namespace)


def forbidden(what: str) -> StatusError:
    return StatusError(message=f"{what} is forbidden", reason="Forbidden", code=403)


# --- joins -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/users/of/{id}", "parts/{id}/all"])
@LOCAL
async def test_the_path_of_a_join_is_filled(station: Station, notes: Notes, path: str) -> None:
    filled = {"/users/of/{id}": "/users/of/n1", "parts/{id}/all": "/notes/n1/parts/n1/all"}[path]
    answering(notes, filled, {"name": "ann"})
    async with station.working():
        await serving(station, notes, joins=[{"name": "more", "path": path}])
        found = await station.make(KIND, "one", title="one")
    assert found.raw["status"]["joined"]["more"]["value"] == {"name": "ann"}


@LOCAL
async def test_a_join_whose_path_lacks_a_parameter_says_so(station: Station, notes: Notes) -> None:
    async with station.working():
        await serving(station, notes, joins=[{"name": "more", "path": "/users/{nobody}"}])
        found = await station.make(KIND, "one", title="one")
    assert "the parameter nobody" in found.raw["status"]["joined"]["more"]["error"]


@LOCAL
async def test_a_join_shows_no_secret(station: Station, notes: Notes) -> None:
    answer = {"echo": f"it is {HIDDEN}", "client_secret": "made there", "deep": [{"primaryKey": "k"}, {"ok": 1}]}
    answering(notes, "/notes/n1/state", {})
    async with station.working():
        await serving(station, notes, overlay=AS_SECRET, joins=[{"name": "state", "path": "state", "interval": "30s"}])
        await station.secret("login", password=HIDDEN)
        await station.make(KIND, "one", title="one", policy={"refresh": "never"}, **SEALED)
        answering(notes, "/notes/n1/state", answer)
        await station.leap(40)  # only the join is due, and nothing is rendered
        found = await station.until(KIND, "one", lambda d: d["status"]["joined"]["state"].get("value"))
    assert found.raw["status"]["joined"]["state"]["value"] == {"deep": [{}, {"ok": 1}]}
    assert HIDDEN not in str(found.raw)


@LOCAL
async def test_a_join_that_is_nothing_but_a_secret_says_so(station: Station, notes: Notes) -> None:
    answering(notes, "/notes/n1/state", HIDDEN)
    async with station.working():
        await serving(station, notes, overlay=AS_SECRET, joins=[{"name": "state", "path": "state"}])
        await station.secret("login", password=HIDDEN)
        found = await station.make(KIND, "one", title="one", **SEALED)
    assert "is a secret" in found.raw["status"]["joined"]["state"]["error"]
    assert HIDDEN not in str(found.raw)


@LOCAL
async def test_a_join_that_is_too_large_says_so(station: Station, notes: Notes) -> None:
    answering(notes, "/notes/n1/state", {"words": "x" * 40_000})
    async with station.working():
        await serving(station, notes, joins=[{"name": "state", "path": "state"}])
        found = await station.make(KIND, "one", title="one")
    assert "and a status takes 32768" in found.raw["status"]["joined"]["state"]["error"]


@pytest.mark.parametrize("required", [False, True])
@LOCAL
async def test_an_expression_that_does_not_fit_is_an_error_of_the_join(
    station: Station, notes: Notes, required: bool
) -> None:
    answering(notes, "/notes/n1/state", {"x": 4711_4711})
    join = {"name": "state", "path": "state", "select": "length(x)", "required": required}
    async with station.working():
        await serving(station, notes, joins=[join])
        await station.create(station.document(KIND, "one", {"title": "one"}))
        status, reason = ("False", "JoinFailed") if required else ("True", "")
        found = await station.condition(KIND, "one", "Ready", status, reason)
    said = found.raw["status"]["joined"]["state"]["error"]
    assert said == "the expression 'length(x)' cannot be applied to the answer"
    assert "47114711" not in str(found.raw)


# --- exports -----------------------------------------------------------------------------------------------------------------


def exporting(to: str = "Secret", expression: str = "title") -> Document:
    return {"exports": [{"to": to, "name": "{name}-out", "data": {"it": expression}}]}


async def value(station: Station) -> str:
    found = await station.client.get(Secret, "one-out", station.namespace)
    return base64.b64decode((found.data or {})["it"]).decode()


async def told(station: Station, reason: str) -> str:
    """The text of the first event with this reason."""
    query = Query(namespace=station.namespace)
    listing = await station.client.list(Event, query)
    async with asyncio.timeout(PATIENCE):
        for found in listing.items:
            if found.reason == reason:
                return found.note or ""
        async for change in station.client.watch(Event, query, listing.revision):
            if change.object is not None and change.object.reason == reason:
                return change.object.note or ""
    raise AssertionError("the watch ended")


@LOCAL
async def test_an_export_that_failed_is_tried_again(station: Station, notes: Notes) -> None:
    refusing = False

    async def refuse(call: Call) -> None:
        if refusing and call.method == "PATCH" and call.path.endswith("/secrets/one-out"):
            raise forbidden("it")

    async with station.working(client=between(station.client, refuse)):
        await serving(station, notes, **exporting())
        await station.make(KIND, "one", title="one")
        refusing = True
        await station.change(KIND, "one", lambda spec: spec.update(title="two"))
        found = await station.ready(KIND, "one")
        assert not found.raw["status"]["sync"].get("exported")
        assert "is forbidden" in await told(station, "ExportFailed")
        assert await value(station) == "one"
        refusing = False
        await station.leap(700)
        await station.until(KIND, "one", lambda d: d["status"]["sync"].get("exported"))
        assert await value(station) == "two"


@pytest.mark.parametrize("kind", [Secret, ConfigMap])
async def test_what_is_not_ours_is_never_overwritten(station: Station, notes: Notes, kind: Any) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": kind.__name__,
        "metadata": {"name": "one-out", "namespace": station.namespace},
        "data": {"it": "dGhlaXJz"},
    }
    await station.client.create(Untyped(theirs))
    async with station.working():
        await serving(station, notes, **exporting(kind.__name__))
        await station.make(KIND, "one", title="one")
        assert "is not this object's" in await told(station, "ExportRefused")
    found = await station.client.get(kind, "one-out", station.namespace)
    assert found.data == {"it": "dGhlaXJz"}
    assert not found.metadata.owner_references


@pytest.mark.parametrize("at", ["POST", "PATCH"])
async def test_nor_is_what_appears_at_the_last_moment(station: Station, notes: Notes, at: str) -> None:
    """Before ours is created, or between that and the writing of its values."""
    theirs = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "one-out", "namespace": station.namespace},
        "data": {"it": "dGhlaXJz"},
    }
    appeared = False

    async def appear(call: Call) -> None:
        nonlocal appeared
        if not appeared and call.method == at and "/secrets" in call.path and b"one-out" in call.body:
            appeared = True
            if at == "PATCH":
                await station.client.delete(Ref(Secret, "one-out", station.namespace))
            await station.client.create(Untyped(theirs))

    async with station.working(client=between(station.client, appear)):
        await serving(station, notes, **exporting())
        await station.make(KIND, "one", title="one")
        await told(station, "ExportRefused" if at == "POST" else "ExportFailed")
    assert appeared
    assert await value(station) == "theirs"


@LOCAL
async def test_an_expression_that_does_not_fit_is_told_and_keeps_nothing_else_back(
    station: Station, notes: Notes
) -> None:
    async with station.working():
        await serving(station, notes, **exporting(expression="sum(title)"))
        await station.make(KIND, "one", title="a-title-of-its-own")
        said = await told(station, "ExportFailed")
    assert said == "Secret one-out: the expression 'sum(title)' cannot be applied to the answer"


# --- references --------------------------------------------------------------------------------------------------------------

REFERRING = {"fields": {"text": {"reference": "*"}}}


@LOCAL
async def test_a_reference_to_a_kind_that_is_not_there_says_so(station: Station, notes: Notes) -> None:
    ref = {"ref": {"apiVersion": "nowhere.example/v1", "kind": "Thing", "name": "x"}}
    async with station.working():
        await serving(station, notes, overlay=REFERRING)
        await station.create(station.document(KIND, "one", {"title": "one", "text": ref}))
        said = await not_ready(station, "ReferencesMissing")
    assert "text: Thing of nowhere.example/v1: there is no such kind here" in said
    assert notes.writes() == []


@LOCAL
async def test_a_reference_to_what_may_not_be_read_says_so(station: Station, notes: Notes) -> None:
    async def refuse(call: Call) -> None:
        if call.method == "GET" and call.path.endswith("/pods/x"):
            raise forbidden("pods")

    ref = {"ref": {"apiVersion": "v1", "kind": "Pod", "name": "x"}}
    async with station.working(client=between(station.client, refuse)):
        await serving(station, notes, overlay=REFERRING)
        await station.create(station.document(KIND, "one", {"title": "one", "text": ref}))
        said = await not_ready(station, "ReferencesMissing")
    assert "we have no right to read objects of this kind" in said


# --- operations --------------------------------------------------------------------------------------------------------------


@LOCAL
async def test_a_failed_operation_repeats_no_secret(station: Station, notes: Notes) -> None:
    async def failing(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.path == "/operations/1":
            error = {"code": "Weak", "message": f"the text {HIDDEN} is weak"}
            return web.json_response({"status": "Failed", "error": error})
        if request.method == "POST":
            notes.answered("POST", "/notes", body)
            return web.Response(status=202, headers={"Operation-Location": f"{notes.url}/operations/1"})
        return None

    notes.instead = failing
    async with station.working():
        await serving(station, notes, overlay=AS_SECRET)
        await station.secret("login", password=HIDDEN)
        await station.create(station.document(KIND, "one", {"title": "one", **SEALED}))
        await station.until(KIND, "one", lambda d: d.get("status", {}).get("sync", {}).get("operation"))
        await station.leap(60)
        found = await station.until(KIND, "one", lambda d: "is weak" in condition_of(d, "Ready").get("message", ""))
        events = await station.events("one")
    assert "[redacted]" in condition_of(found.raw, "Ready")["message"]
    assert HIDDEN not in f"{found.raw} {events}"
