"""A resource is made once, and what is made is never lost: with late effects, odd answers, and edits in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.systems.rest.items_kit import (
    BY_LOCATION,
    KIND,
    PART,
    Items,
    begun,
    boxes,
    definition,
    document,
    finalizers_of,
    forget,
    lost,
    passing,
    refused,
    says,
    serving,
    sync_of,
)
from tests.systems.rest.station import Document, Station

LOCAL = pytest.mark.parametrize("client", ["local"], indirect=True)
"""Where the API server makes no difference."""
TIMEOUT = 30.0
"""Seconds of a request, unless a RestService says otherwise."""


@pytest.fixture
async def items() -> AsyncIterator[Items]:
    async with serving() as service:
        yield service


async def serve(station: Station, items: Items, *definitions: Document, **options: Any) -> None:
    await station.serve(items.url, document(**options), definitions=definitions or (definition(),))


async def create(station: Station, name: str = "a", kind: str = KIND, **spec: Any) -> None:
    await station.create(station.document(kind, name, {"title": name, **spec}))


# --- late, lost, elsewhere --------------------------------------------------------------------------------------------------


@LOCAL
async def test_what_a_long_creation_made_and_is_not_shown_yet_is_waited_for(station: Station, items: Items) -> None:
    hidden = iter(range(4))

    async def late(request: web.Request, body: Any) -> web.StreamResponse | None:
        is_hidden = request.path.startswith("/items/") and items.there and next(hidden, None) is not None
        return refused(404, "NotFound") if is_hidden else None

    items.instead, items.lasting, items.located = late, frozenset({"POST"}), True
    async with station.working():
        await serve(station, items, definition(server=True, identity=BY_LOCATION))
        await create(station)
        await begun(station)
        items.finish()
        await passing(station, station.ready(KIND, "a"))
    assert items.writes() == ["POST"]


@LOCAL
async def test_a_creation_that_arrives_after_its_answer_was_given_up_is_found(station: Station, items: Items) -> None:
    async def late(request: web.Request, body: Any) -> web.StreamResponse | None:
        return refused(504, "GatewayTimeout") if request.method == "POST" else None

    items.instead = late
    async with station.working():
        await serve(station, items, definition(server=True, find=True))
        await create(station)
        await passing(station, says(station, "Confirming"))
        items.answered("POST", "/items", {"title": "a"})
        await passing(station, station.ready(KIND, "a"))
    assert items.writes() == ["POST"]


@LOCAL
async def test_a_creation_that_never_arrived_is_sent_again_when_it_cannot_arrive_any_more(
    station: Station, items: Items
) -> None:
    sent: list[float] = []

    async def late(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "POST":
            return None
        sent.append(station.clock.monotonic())
        return refused(504, "GatewayTimeout") if len(sent) == 1 else None

    items.instead = late
    async with station.working():
        await serve(station, items, definition(server=True, find=True))
        await create(station)
        await passing(station, station.ready(KIND, "a"))
    assert sent[1] - sent[0] > TIMEOUT


@LOCAL
async def test_an_id_that_an_update_changed_is_known_before_anything_is_read(station: Station, items: Items) -> None:
    unread = asyncio.Event()

    async def moving(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method == "PUT":
            del items.there[request.path]
            return items.answered("POST", "/items", body)
        if request.path == "/items/2":
            await unread.wait()
        return None

    items.instead = moving
    async with station.working():
        await serve(station, items, definition(server=True))
        await station.make(KIND, "a", title="one")
        await station.change(KIND, "a", lambda spec: spec.update(title="two"))
        try:
            await station.until(KIND, "a", lambda d: d["status"]["resourceID"] == "/items/2")
        finally:
            unread.set()
        await station.ready(KIND, "a")


@LOCAL
async def test_an_update_that_may_have_changed_the_id_and_cannot_be_found_makes_no_second_one(
    station: Station, items: Items
) -> None:
    async def moving(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "PUT":
            return None
        del items.there[request.path]
        items.answered("POST", "/items", body)
        return lost(request)

    items.instead = moving
    async with station.working():
        await serve(station, items, definition(server=True))
        await station.make(KIND, "a", title="one")
        await station.change(KIND, "a", lambda spec: spec.update(title="two"))
        await passing(station, says(station, "CreationUncertain"))
    assert items.writes() == ["POST", "PUT"]


@LOCAL
async def test_a_lost_status_makes_no_second_one_where_the_first_cannot_be_found(
    station: Station, items: Items
) -> None:
    async with station.working():
        await serve(station, items, definition(server=True))
        await station.make(KIND, "a", title="one")
    await forget(station)
    async with station.working():
        await says(station, "CreationUncertain")
    assert items.writes() == ["POST"]


@LOCAL
async def test_the_location_of_a_monitor_is_not_taken_for_an_id(station: Station, items: Items) -> None:
    async def monitored(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method == "POST":
            items.answered("POST", "/items", body)
        if request.method == "POST" or (request.path == "/ops/1" and not items.monitors):
            return web.Response(status=202, headers={"Location": f"{items.url}/ops/1"})
        return web.Response(headers={"Location": "/items/1"}) if request.path == "/ops/1" else None

    items.instead = monitored
    async with station.working():
        await serve(station, items, definition(server=True, identity=BY_LOCATION))
        await create(station)
        found = await begun(station)
        assert not found.raw["status"].get("resourceID")
        items.monitors["/ops/1"] = {}
        found = await passing(station, station.ready(KIND, "a"))
    assert found.raw["status"]["resourceID"] == "/items/1"


@LOCAL
async def test_an_operation_that_can_no_longer_be_followed_may_still_have_made_something(
    station: Station, items: Items
) -> None:
    items.lasting = frozenset({"POST"})
    short = {"polling": {"deadline": "1m"}}
    async with station.working():
        await serve(station, items, definition(server=True, find=True, overlay=short))
        await create(station)
        await begun(station)
        await passing(station, says(station, "Confirming"))
        items.finish()
        await passing(station, station.ready(KIND, "a"))
    assert items.writes() == ["POST"]


# --- what must be saved, and when -------------------------------------------------------------------------------------------


async def test_a_spec_that_is_edited_while_a_creation_is_answered_does_not_lose_the_id(
    station: Station, items: Items
) -> None:
    async def meanwhile(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method == "POST":
            await station.change(KIND, "a", lambda spec: spec.update(size=2))
        return None

    items.instead = meanwhile
    async with station.working():
        await serve(station, items, definition(server=True))
        await create(station, size=1)
        found = await station.until(
            KIND,
            "a",
            lambda d: d["metadata"]["generation"] == 2 and sync_of(d).get("lastApplied", "").count('"size":2'),
        )
    assert found.raw["status"]["resourceID"] == "/items/1"
    assert items.writes() == ["POST", "PUT"]


async def test_what_went_wrong_is_said_over_an_edit_of_the_spec(station: Station, items: Items) -> None:
    is_said = asyncio.Event()

    async def meanwhile(request: web.Request, body: Any) -> web.StreamResponse | None:
        if len(items.asked) > 1:
            await is_said.wait()
            return None
        await station.change(KIND, "a", lambda spec: spec.update(size=2))
        return refused(403, "Forbidden")

    items.instead = meanwhile
    async with station.working():
        await serve(station, items)
        await create(station, size=1)
        try:
            await says(station, "Unauthorized")
        finally:
            is_said.set()
        await station.ready(KIND, "a")


@LOCAL
async def test_the_id_that_the_server_chose_is_known_before_anything_is_read(station: Station, items: Items) -> None:
    unread = asyncio.Event()

    async def slow(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method == "GET":
            await unread.wait()
        return None

    items.instead = slow
    async with station.working():
        await serve(station, items, definition(server=True))
        await create(station)
        try:
            await station.until(KIND, "a", lambda d: (d.get("status") or {}).get("resourceID") == "/items/1")
        finally:
            unread.set()
        await station.ready(KIND, "a")


@LOCAL
async def test_a_restart_asks_where_the_last_poll_said_to(station: Station, items: Items) -> None:
    async def moving(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.path == "/ops/1":
            return web.json_response({"status": "Running"}, headers={"Operation-Location": f"{items.url}/ops/2"})
        return None

    items.instead, items.lasting = moving, frozenset({"PUT"})
    async with station.working():
        await serve(station, items)
        await create(station)
        await begun(station)
        items.monitors["/ops/2"] = {"status": "Running"}
        await passing(station, station.until(KIND, "a", lambda d: sync_of(d)["operation"]["url"].endswith("/ops/2")))
    items.asked.clear()
    items.finish()
    async with station.working():
        await passing(station, station.ready(KIND, "a"))
    assert items.reads()[0] == "/ops/2"
    assert "/ops/1" not in items.reads()


@LOCAL
async def test_what_is_shown_while_it_is_being_made_is_no_base_to_compare_with(station: Station, items: Items) -> None:
    async def early(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "PUT":
            return None
        items.there["/items/a"] = {"id": "a", "provisioningState": "Creating", "title": "none yet"}
        return web.json_response({}, status=201)

    items.instead = early
    async with station.working():
        await serve(station, items)
        await create(station)
        await begun(station)
        items.there["/items/a"].update(provisioningState="Succeeded", title="a")
        found = await passing(station, station.ready(KIND, "a"))
    assert not sync_of(found.raw).get("knownDifferences")
    assert items.writes() == ["PUT"]


# --- what is not ours ---------------------------------------------------------------------------------------------------------


@LOCAL
async def test_what_met_the_first_attempt_of_a_creation_is_not_taken(station: Station, items: Items) -> None:
    async def first(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "PUT":
            return None
        items.there["/items/a"] = {"id": "a", "title": "theirs"}
        return refused(409, "AlreadyExists")

    items.instead = first
    async with station.working():
        await serve(station, items)
        await create(station)
        await passing(
            station, station.until(KIND, "a", lambda d: "was not made by this object" in str(d.get("status")))
        )
        found = await station.get(KIND, "a")
    assert finalizers_of(found.raw) == []
    assert items.there["/items/a"]["title"] == "theirs"


@LOCAL
@pytest.mark.parametrize(("declared", "sent"), [(True, "*"), (False, None)])
async def test_a_creation_asks_that_nothing_be_there_where_that_can_be_asked(
    station: Station, items: Items, declared: bool, sent: str | None
) -> None:
    async with station.working():
        await serve(station, items, conditional=declared)
        await station.make(KIND, "a", title="one")
    [put] = [asked for asked in items.asked if asked.method == "PUT"]
    assert put.headers.get("If-None-Match") == sent


# --- others ---------------------------------------------------------------------------------------------------------------------


@LOCAL
async def test_a_reference_waits_for_what_is_announced_and_not_made(station: Station, items: Items) -> None:
    made = asyncio.Event()

    async def slow(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method == "PUT" and request.path == "/items/b":
            await made.wait()
        return None

    items.instead = slow
    async with station.working():
        await serve(station, items, definition(overlay={"fields": {"note": {"reference": "*"}}}))
        await create(station, "b")
        await station.until(KIND, "b", lambda d: (d.get("status") or {}).get("resourceID"))
        await create(station, "a", note={"ref": {"kind": KIND, "name": "b"}})
        try:
            await station.condition(KIND, "a", "ReferencesResolved", "False")
        finally:
            made.set()
        await station.ready(KIND, "a")
    assert items.there["/items/a"]["note"] == "/items/b"


async def test_a_parent_owns_its_parts(station: Station, items: Items) -> None:
    async with station.working():
        await serve(station, items, *boxes())
        parent = await station.make("Box", "box", title="box")
        part = await station.make(PART, "a", title="one", parent={"name": "box"})
    assert [owner["uid"] for owner in part.raw["metadata"]["ownerReferences"]] == [parent.metadata.uid]


@LOCAL
async def test_the_body_at_the_end_of_a_monitor_names_the_id(station: Station, items: Items) -> None:
    async def monitored(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method == "POST":
            items.answered("POST", "/items", body)
        if request.method == "POST" or (request.path == "/ops/1" and not items.monitors):
            return web.Response(status=202, headers={"Location": f"{items.url}/ops/1"})
        return items.answered("GET", "/items/1") if request.path == "/ops/1" else None

    items.instead = monitored
    async with station.working():
        await serve(station, items, definition(server=True, identity=BY_LOCATION))
        await create(station)
        found = await begun(station)
        assert not found.raw["status"].get("resourceID")
        items.monitors["/ops/1"] = {}
        found = await passing(station, station.ready(KIND, "a"))
    assert found.raw["status"]["resourceID"] == "/items/1"
