"""The controllers of generated kinds: which reasons bring a turn, that none is lost, and what is said of what goes wrong."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import yaml
from aiohttp import web

from tests.runtime.widgets import PATIENCE
from tests.systems.rest.notes_kit import DOCUMENT, KIND, Notes, definition
from tests.systems.rest.station import GROUP, Document, Station, condition_of
from trimtab.client.protocol import Named, Ref
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.changes import Request
from trimtab.systems.rest.reconciling.board import Board, Wanted
from trimtab.systems.rest.reconciling.subject import WAKE

DEFINITION = Named(GROUP, "RestDefinition")
LOCAL = pytest.mark.parametrize("client", ["local"], indirect=True)
"""Where the API server makes no difference."""
FIRST, SECOND = "hunter2hunter2", "correct-horse-battery"
PASSWORD = {"secretRef": {"name": "pw", "key": "password"}}


class Watched(Notes):
    """One that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.instead = tagged(self)
        self._answered = asyncio.Event()

    def answered(self, method: str, path: str, body: Any) -> web.Response:
        self._answered.set()
        return super().answered(method, path, body)

    async def until(self, met: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not met():
                self._answered.clear()
                await self._answered.wait()

    async def until_password(self, title: str, wanted: str) -> None:
        await self.until(lambda: self.titled(title)[0].get("password") == wanted)


@pytest.fixture
async def notes() -> AsyncIterator[Watched]:
    async with Watched() as service:
        yield service


def tagged(notes: Notes) -> Callable[[web.Request, Any], Any]:
    """Reads with an ETag, and without the password: nothing at the service tells that a Secret has changed."""

    async def answer(request: web.Request, body: Any) -> web.StreamResponse | None:
        own = request.path.removeprefix("/notes/")
        if request.method != "GET" or own not in notes.notes:
            return None
        tag = json.dumps(json.dumps(notes.notes[own], sort_keys=True))
        shown = {name: value for name, value in notes.notes[own].items() if name != "password"}
        tag = f'"{abs(hash(tag))}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304)
        return web.json_response(shown, headers={"ETag": tag})

    return answer


def document(**properties: Document) -> str:
    """With a password, and other properties."""
    made = yaml.safe_load(DOCUMENT)
    own = made["components"]["schemas"]["Note"]["properties"]
    own["password"] = {"type": "string", "format": "password", "writeOnly": True}
    own.update(properties)
    parameters = made["paths"]["/notes/{id}"]["parameters"]
    keys = {"type": "object", "properties": {"key": {"type": "string"}}}
    answer = {"200": {"description": "keys", "content": {"application/json": {"schema": keys}}}}
    made["paths"]["/notes/{id}/listKeys"] = {"parameters": parameters, "post": {"responses": answer}}
    return json.dumps(made)


async def served(station: Station, notes: Watched, **changes: Any) -> None:
    secret = {"fields": {"password": {"class": "secret"}, "text": {"reference": "*"}}}
    await station.serve(notes.url, document(), definitions=[definition(**{"overlay": secret, **changes})])


# --- no reason is lost ---------------------------------------------------------------------------------------------------


async def test_a_secret_that_changed_while_no_controller_ran_is_applied_after_the_start(
    station: Station, notes: Watched
) -> None:
    await station.secret("pw", password=FIRST)
    async with station.working():
        await served(station, notes, refresh={"interval": "never"})
        await station.make(KIND, "one", title="one", password=PASSWORD)
    assert notes.titled("one")[0]["password"] == FIRST
    await station.secret("pw", password=SECOND)
    async with station.working():
        await notes.until_password("one", SECOND)
        found = await station.ready(KIND, "one")
    assert FIRST not in str(found.raw)
    assert SECOND not in str(found.raw)


@LOCAL
async def test_a_secret_that_changed_is_applied_although_the_turn_for_it_failed(
    station: Station, notes: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch, failures = CachedClient.patch, [2]

    async def broken(self: CachedClient, old: Any, new: Any, **options: Any) -> Any:
        if options.get("subresource") == "status" and old.kind == KIND and failures[0]:
            failures[0] -= 1
            raise TimeoutError("the API server is away")
        return await patch(self, old, new, **options)

    await station.secret("pw", password=FIRST)
    async with station.working():
        await served(station, notes, refresh={"interval": "never"})
        await station.make(KIND, "one", title="one", password=PASSWORD)
        monkeypatch.setattr(CachedClient, "patch", broken)
        await station.secret("pw", password=SECOND)
        await notes.until_password("one", SECOND)
    assert failures == [0]


@LOCAL
async def test_a_change_that_was_seen_is_followed_up_although_the_turn_for_it_failed(
    station: Station, notes: Watched
) -> None:
    inner, conflicts = notes.instead, [2]
    assert inner is not None

    async def busy(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method == "PUT" and conflicts[0]:
            conflicts[0] -= 1
            return web.json_response({"message": "busy"}, status=409)
        return await inner(request, body)

    notes.instead = busy
    async with station.working():
        await served(station, notes)
        await station.make(KIND, "one", title="one", labels={"a": "ours"})
        notes.titled("one")[0]["labels"] = {"a": "theirs"}
        await station.leap(700)
        await notes.until(lambda: notes.titled("one")[0]["labels"] == {"a": "ours"})
    assert conflicts == [0]


async def test_word_of_a_change_that_came_while_no_controller_ran_is_looked_into(
    station: Station, notes: Watched
) -> None:
    async with station.working():
        await served(station, notes, refresh={"interval": "never"})
        await station.make(KIND, "one", title="one", labels={"a": "ours"})
    notes.titled("one")[0]["labels"] = {"a": "theirs"}
    await station.annotate(KIND, "one", **{WAKE: "now"})
    async with station.working():
        found = await station.until(KIND, "one", lambda d: d["status"]["sync"].get("woken") == "now")
        await station.ready(KIND, "one")
        await station.make(KIND, "two", title="two")
        again = await station.get(KIND, "one")
    assert notes.titled("one")[0]["labels"] == {"a": "ours"}
    assert notes.writes() == ["POST", "PUT", "POST"]
    assert found.raw["status"]["sync"]["woken"] == again.raw["status"]["sync"]["woken"]


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
@LOCAL
async def test_who_refers_to_what_was_made_anew_gets_its_new_id(
    station: Station, notes: Watched, restart: bool
) -> None:
    async def refer() -> None:
        await served(station, notes)
        await station.make(KIND, "two", title="two")
        await station.make(KIND, "one", title="one", text={"ref": {"kind": KIND, "name": "two"}})

    def is_known() -> bool:
        two = notes.titled("two")
        return bool(two) and notes.titled("one")[0]["text"] == f"/notes/{two[0]['id']}"

    async def make_anew() -> None:
        notes.notes.pop(notes.titled("two")[0]["id"])
        await station.leap(700)
        await notes.until(is_known)

    async with station.working():
        await refer()
        if not restart:
            await make_anew()
    if restart:
        async with station.working():
            await station.make(KIND, "three", title="three")
            await make_anew()


@LOCAL
async def test_two_that_refer_to_each_other_do_not_keep_each_other_awake(station: Station, notes: Watched) -> None:
    async with station.working():
        await served(station, notes)
        names = ("one", "two")
        for name in names:
            await station.make(KIND, name, title=name)
        for name, other in zip(names, reversed(names), strict=True):
            text = {"ref": {"kind": KIND, "name": other}}
            await station.change(KIND, name, lambda s, text=text: s.update(text=text, policy={"mode": "plan"}))
            await station.until(KIND, name, lambda d: (d["status"].get("plan") or {}).get("changes"))
        await station.make(KIND, "three", title="three")
        before = len(notes.asked)
        await station.make(KIND, "four", title="four")
    own = [asked.path for asked in notes.asked[before:] if asked.path in ("/notes/n1", "/notes/n2")]
    assert len(own) <= 2


@pytest.mark.parametrize("interval", ["0s", "1ms"])
@LOCAL
async def test_no_interval_is_shorter_than_a_second(station: Station, notes: Watched, interval: str) -> None:
    joins = [{"name": "state", "path": "state", "interval": interval}]
    async with station.working():
        await served(station, notes, refresh={"interval": interval}, joins=joins)
        await station.make(KIND, "one", title="one", policy={"refresh": interval})
        before = len(notes.asked)
        for name in "abcdefgh":
            await station.make(KIND, name, title=name, policy={"refresh": "never"})
        looks = [asked for asked in notes.asked[before:] if asked.path == "/notes/n1"]
        notes.titled("one")[0]["labels"] = {"seen": "yes"}
        await station.leap(2)
        await station.until(KIND, "one", lambda d: d["status"]["observed"].get("labels"))
    assert len(looks) <= 3


@LOCAL
async def test_keys_that_a_call_gives_are_asked_for_again_although_the_resource_is_the_same(
    station: Station, notes: Watched
) -> None:
    inner, key = notes.instead, ["first"]
    assert inner is not None

    async def keys(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.path.endswith("/listKeys"):
            return web.json_response({"key": key[0]})
        return await inner(request, body)

    notes.instead = keys
    call = {"method": "POST", "path": "/notes/{id}/listKeys"}
    export = {"to": "Secret", "name": "{name}-keys", "data": {"key": "key"}, "operation": call}
    title = {"to": "ConfigMap", "name": "{name}-title", "data": {"title": "title"}}
    async with station.working():
        await served(station, notes, exports=[export, title])
        await station.make(KIND, "one", title="one")
        key[0] = "second"
        await station.leap(700)
        wanted = base64.b64encode(b"second").decode()
        await station.until(Named("v1", "Secret"), "one-keys", lambda d: d["data"]["key"] == wanted)
        kept = await station.client.get(Named("v1", "ConfigMap"), "one-title", station.namespace)
    assert station.client.scheme.document(kept)["data"] == {"title": "one"}
    assert notes.writes().count("PUT") == 0


# --- what is said ----------------------------------------------------------------------------------------------------------


@LOCAL
async def test_what_nobody_expected_is_said_in_the_conditions_without_its_text(
    station: Station, notes: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trimtab.systems.rest import object_controller

    converge, failures = object_controller.converge, [1]

    async def broken(session: Any) -> Any:
        if failures[0]:
            failures[0] -= 1
            raise ZeroDivisionError(f"the password is {FIRST}")
        return await converge(session)

    monkeypatch.setattr(object_controller, "converge", broken)
    async with station.working():
        await served(station, notes)
        await station.create(station.document(KIND, "one", {"title": "one"}))
        found = await station.until(KIND, "one", lambda d: condition_of(d, "Ready").get("reason") == "InternalError")
        await station.ready(KIND, "one")
    assert "ZeroDivisionError" in condition_of(found.raw, "Ready")["message"]
    assert FIRST not in str(found.raw)


@LOCAL
async def test_what_the_api_server_refuses_is_said_in_the_conditions(
    station: Station, notes: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trimtab.systems.rest import object_controller

    async def forbidden(session: Any) -> Any:
        raise StatusError(403, "Forbidden", "pods is forbidden")

    monkeypatch.setattr(object_controller, "converge", forbidden)
    async with station.working():
        await served(station, notes)
        await station.create(station.document(KIND, "one", {"title": "one"}))
        found = await station.condition(KIND, "one", "Ready", "False", "InternalError")
    assert "403 Forbidden" in condition_of(found.raw, "Ready")["message"]


# --- paused ------------------------------------------------------------------------------------------------------------------


async def test_what_is_paused_is_neither_ready_nor_written_nor_deleted(station: Station, notes: Watched) -> None:
    async with station.working():
        await served(station, notes)
        await station.make(KIND, "one", title="one", labels={"a": "1"})
        await station.change(KIND, "one", lambda s: s.update(labels={"a": "2"}, policy={"paused": True}))
        found = await station.condition(KIND, "one", "Ready", "Unknown", "Paused")
        generation = found.raw["metadata"]["generation"]
        assert condition_of(found.raw, "Drifted")["observedGeneration"] < generation
        await station.delete(KIND, "one")
        held = await station.until(KIND, "one", lambda d: "deletion waits" in condition_of(d, "Ready")["message"])
        assert condition_of(held.raw, "Ready")["reason"] == "Paused"
        assert notes.writes() == ["POST"]
        await station.change(KIND, "one", lambda s: s["policy"].update(paused=False))
        await station.gone(KIND, "one")
    assert notes.writes() == ["POST", "DELETE"]


@LOCAL
async def test_what_is_paused_may_go_when_it_is_to_be_left_as_it_is(station: Station, notes: Watched) -> None:
    async with station.working():
        await served(station, notes)
        await station.make(KIND, "one", title="one", policy={"paused": False, "deletion": "detach"})
        await station.change(KIND, "one", lambda s: s["policy"].update(paused=True))
        await station.condition(KIND, "one", "Ready", "Unknown", "Paused")
        await station.delete(KIND, "one")
        await station.gone(KIND, "one")
    assert notes.writes() == ["POST"]


@LOCAL
async def test_what_is_paused_shows_what_is_there_and_no_secret(station: Station, notes: Watched) -> None:
    await station.secret("pw", password=FIRST)
    async with station.working():
        await served(station, notes)
        await station.make(KIND, "one", title="one", password=PASSWORD)
        await station.change(KIND, "one", lambda s: s.update(policy={"paused": True, "refresh": "10s"}))
        await station.condition(KIND, "one", "Ready", "Unknown", "Paused")
        notes.titled("one")[0]["labels"] = {"dsn": f"user:{FIRST}@host", "seen": "yes"}
        await station.leap(11)
        found = await station.until(KIND, "one", lambda d: d["status"]["observed"].get("labels"))
    assert found.raw["status"]["observed"]["labels"] == {"seen": "yes"}
    assert FIRST not in str(found.raw)


@LOCAL
async def test_what_is_paused_while_its_operation_runs_is_not_asked_about_it(station: Station, notes: Watched) -> None:
    inner = notes.instead
    assert inner is not None

    async def slow(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.path == "/doing":
            return web.json_response({"status": "Running"})
        if request.method == "PUT":
            return web.json_response({}, status=202, headers={"Operation-Location": f"{notes.url}/doing"})
        return await inner(request, body)

    notes.instead = slow
    async with station.working():
        await served(station, notes)
        await station.make(KIND, "one", title="one")
        await station.change(KIND, "one", lambda s: s.update(labels={"a": "b"}))
        await station.until(KIND, "one", lambda d: d["status"]["sync"].get("operation"))
        await station.change(KIND, "one", lambda s: s.update(policy={"paused": True}))
        await station.condition(KIND, "one", "Ready", "Unknown", "Paused")
        before = len(notes.asked)
        await station.leap(60)
        for name in "abcd":
            await station.make(KIND, name, title=name)
        found = await station.get(KIND, "one")
    assert not [asked for asked in notes.asked[before:] if asked.path == "/doing"]
    assert len([asked for asked in notes.asked[before:] if asked.path == "/notes/n1"]) <= 1
    assert found.raw["status"]["sync"]["operation"]


# --- definitions that are wrong or going ---------------------------------------------------------------------------------------


async def edited(station: Station, mutate: Callable[[Document], Any]) -> None:
    found = await station.client.get(DEFINITION, f"notes.{station.service}")
    changed = json.loads(json.dumps(found.raw))
    mutate(changed["spec"])
    await station.client.patch(found, Untyped(changed))


async def test_objects_of_a_definition_that_is_going_can_still_go_after_a_restart(
    station: Station, notes: Watched
) -> None:
    async with station.working():
        await served(station, notes)
        await station.make(KIND, "one", title="one")
        await station.client.delete(Ref(DEFINITION, f"notes.{station.service}"))
        await station.condition(DEFINITION, f"notes.{station.service}", "Ready", "False", "InUse", namespace="")
    async with station.working():
        await station.delete(KIND, "one")
        await station.gone(KIND, "one")
    assert notes.notes == {}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda spec: spec.update(overlay={"hooks": ["nowhere"]}), "HookNotInstalled"),
        (lambda spec: spec["operations"]["read"].update(path="/nowhere/{id}"), "Invalid"),
    ],
    ids=["hook", "path"],
)
@LOCAL
async def test_objects_of_a_definition_that_became_wrong_are_managed_as_before_after_a_restart(
    station: Station, notes: Watched, wrong: Callable[[Document], Any], reason: str
) -> None:
    name = f"notes.{station.service}"
    async with station.working():
        await served(station, notes)
        await station.make(KIND, "one", title="one")
        await edited(station, wrong)
        await station.condition(DEFINITION, name, "Ready", "False", reason, namespace="")
    async with station.working():
        await station.change(KIND, "one", lambda spec: spec.update(labels={"a": "b"}))
        await station.ready(KIND, "one")
        await station.make(KIND, "two", title="two")
        await station.delete(KIND, "one")
        await station.gone(KIND, "one")
        found = await station.condition(DEFINITION, name, "Ready", "False", reason, namespace="")
    assert notes.writes() == ["POST", "PUT", "POST", "DELETE"]
    assert "nowhere" in condition_of(found.raw, "Ready")["message"]


@LOCAL
async def test_a_service_whose_new_document_cannot_be_read_is_managed_as_before_after_a_restart(
    station: Station, notes: Watched
) -> None:
    service = Named(GROUP, "RestService")
    async with station.working():
        await served(station, notes)
        await station.make(KIND, "one", title="one")
        found = await station.client.get(service, station.service)
        changed = json.loads(json.dumps(found.raw))
        changed["spec"]["document"] = {"inline": "just words"}
        await station.client.patch(found, Untyped(changed))
        await station.condition(service, station.service, "Ready", "False", "DocumentUnreadable", namespace="")
    async with station.working():
        await station.change(KIND, "one", lambda spec: spec.update(labels={"a": "b"}))
        await station.ready(KIND, "one")
    assert notes.titled("one")[0]["labels"] == {"a": "b"}


# --- who waits for whom ------------------------------------------------------------------------------------------------------


def test_who_waits_is_woken_once_and_nothing_is_left_of_who_left() -> None:
    board, woken = Board(), []
    one, two = Request("ns", "one"), Request("ns", "two")
    first, second = Wanted("Note", "ns", "a"), Wanted("Note", "ns", "b")
    board.wait(first, woken.append, one)
    board.wait(second, woken.append, one)
    board.wait(first, woken.append, two)
    board.leave(woken.append, two)
    board.tell(first)
    board.tell(first)
    assert woken == [one]
    assert len(board) == 1
    board.forget(woken.append)
    board.tell(second)
    assert woken == [one]
    assert len(board) == 0


@LOCAL
async def test_nothing_is_left_of_objects_that_are_gone(
    station: Station, notes: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trimtab.systems.rest import running

    is_empty, boards = asyncio.Event(), []

    class Noted(Board):
        def __init__(self) -> None:
            super().__init__()
            boards.append(self)

        def leave(self, wake: Any, request: Request) -> None:
            super().leave(wake, request)
            if not len(self):
                is_empty.set()

    monkeypatch.setattr(running, "Board", Noted)
    await station.secret("pw", password=FIRST)
    async with station.working():
        await served(station, notes)
        await station.make(KIND, "two", title="two")
        text = {"ref": {"kind": KIND, "name": "two"}}
        await station.make(KIND, "one", title="one", password=PASSWORD, text=text)
        assert len(boards[0]) == 1
        is_empty.clear()
        await station.delete(KIND, "one")
        async with asyncio.timeout(PATIENCE):
            await is_empty.wait()
            await station.gone(KIND, "one")
    assert len(boards[0]) == 0
