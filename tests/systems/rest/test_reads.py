"""Which resource is ours: by the answer, by a list, by an ID that someone gives; and what is not asked for twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.systems.rest.notes_kit import DOCUMENT, KIND, Notes, definition
from tests.systems.rest.station import Document, Station, condition_of
from tests.systems.rest.test_hooks import Install, install
from tests.systems.rest.test_odd_services import half, not_ready

__all__ = ["install"]

LOCAL = pytest.mark.parametrize("client", ["local"], indirect=True)


class Numbered(Notes):
    """It counts its notes, and calls them by their numbers."""

    def answered(self, method: str, path: str, body: Any) -> web.Response:
        if method != "POST":
            return super().answered(method, path, body)
        number = len(self.notes) + 1
        self.notes[str(number)] = {**body, "id": number}
        return web.json_response(self.notes[str(number)], status=201)


@pytest.fixture
async def notes() -> AsyncIterator[Notes]:
    async with Notes() as service:
        yield service


async def serving(station: Station, notes: Notes, **changes: Any) -> None:
    document = DOCUMENT.replace("id: { type: string, readOnly", "id: { readOnly")
    await station.serve(notes.url, document, definitions=[definition(**changes)])


def identity(**changes: Any) -> Document:
    return {"parameter": "id", "assigned": "server", "answer": "id", **changes}


def losing(notes: Notes) -> None:
    """The answer to the first creation breaks off."""

    async def lost(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "POST" or notes.posts(body["title"]) > 1:
            return None
        return await half(request, notes.answered("POST", "/notes", body))

    notes.instead = lost


async def create(station: Station, **spec: Any) -> None:
    await station.create(station.document(KIND, "one", {"title": "one", **spec}))


def leaping(station: Station, met: bool) -> bool:
    if not met:
        station.clock.leap(120)
    return met


async def says(station: Station, text: str) -> None:
    """It is not ready, for this reason, and stays so a while."""
    for _ in range(2):
        await station.until(
            KIND, "one", lambda d: leaping(station, text in condition_of(d, "Ready").get("message", ""))
        )
        await station.leap(700)


# --- by a list -------------------------------------------------------------------------------------------------------------


@LOCAL
async def test_numbers_are_ids_and_a_lost_creation_is_found_by_its_number(station: Station) -> None:
    async with Numbered() as notes, station.working():
        losing(notes)
        await serving(station, notes)
        await create(station)
        found = await station.until(
            KIND, "one", lambda d: leaping(station, condition_of(d, "Ready").get("status") == "True")
        )
    assert found.raw["status"]["resourceID"] == "/notes/1"
    assert notes.writes() == ["POST"]


@LOCAL
async def test_numbers_are_ids_also_where_only_a_list_reads(station: Station) -> None:
    operations = {name: call for name, call in definition()["spec"]["operations"].items() if name != "read"}
    async with Numbered() as notes, station.working():
        await serving(station, notes, operations=operations)
        await station.make(KIND, "one", title="one")
        await station.change(KIND, "one", lambda spec: spec.update(text="second"))
        await station.ready(KIND, "one")
    assert notes.writes() == ["POST", "PUT"]


@LOCAL
async def test_of_two_that_fit_none_is_taken(station: Station, notes: Notes) -> None:
    losing(notes)
    notes.notes["n9"] = {"id": "n9", "title": "one"}
    async with station.working():
        await serving(station, notes)
        await create(station)
        await says(station, "2 resources have the same title: name ours in spec.resourceID")
    assert notes.writes() == ["POST"]


@LOCAL
async def test_one_that_fits_and_has_no_id_is_an_error(station: Station, notes: Notes) -> None:
    async def nameless(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method == "POST":
            return await half(request, notes.answered("POST", "/notes", body))
        return web.json_response([{"title": "one"}])

    notes.instead = nameless
    async with station.working():
        await serving(station, notes)
        await create(station)
        await says(station, "does not say its ID")
    assert notes.writes() == ["POST"]


@LOCAL
async def test_what_the_spec_does_not_say_finds_nobody_elses(station: Station, notes: Notes) -> None:
    notes.notes["n9"] = {"id": "n9", "title": "theirs"}
    async with station.working():
        await serving(station, notes, identity=identity(find=["text"]))
        await create(station, policy={"adopt": "overwrite"})
        await says(station, "cannot be told from others without text")
    assert notes.writes() == []


@LOCAL
async def test_a_lost_creation_that_cannot_be_told_from_others_is_not_repeated(station: Station, notes: Notes) -> None:
    losing(notes)
    async with station.working():
        await serving(station, notes, identity=identity(find=["title", "text"]))
        await create(station)
        await says(station, "cannot be told from others without text")
    assert notes.writes() == ["POST"]


# --- by an answer ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location",
    [
        "{url}/notes/n1",
        "/notes/n1",
        "notes/n1",
        "{url}/notes/n1?version=2",
        "http://localhost:1/notes/n7",
        "/notes",
        "",
    ],
)
@LOCAL
async def test_a_location_names_the_resource_only_if_it_is_one_of_the_service(
    station: Station, notes: Notes, location: str
) -> None:
    async def located(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "POST":
            return None
        notes.answered("POST", "/notes", body)
        return web.Response(status=201, headers={"Location": location.replace("{url}", notes.url)})

    notes.instead = located
    async with station.working():
        await serving(station, notes, identity=identity(answer="header:Location", find=["title"]))
        await create(station)
        found = await station.until(
            KIND, "one", lambda d: leaping(station, condition_of(d, "Ready").get("status") == "True")
        )
    assert found.raw["status"]["resourceID"] == "/notes/n1"
    assert notes.writes() == ["POST"]


@LOCAL
async def test_a_monitor_is_no_resource(station: Station, notes: Notes) -> None:
    async def slow(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.path == "/operations/1":
            return web.json_response(notes.notes["n1"])
        if request.method != "POST":
            return None
        notes.answered("POST", "/notes", body)
        return web.Response(status=202, headers={"Location": "/operations/1"})

    notes.instead = slow
    async with station.working():
        await serving(station, notes, identity=identity(answer="header:Location", find=["title"]))
        await create(station)
        found = await station.until(KIND, "one", lambda d: d.get("status", {}).get("sync", {}).get("operation"))
        assert "resourceID" not in found.raw["status"]
        found = await station.until(
            KIND, "one", lambda d: leaping(station, condition_of(d, "Ready").get("status") == "True")
        )
    assert found.raw["status"]["resourceID"] == "/notes/n1"
    assert notes.writes() == ["POST"]


# --- by an ID that is given ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["/notes/..", "/notes/%2e%2e", "/notes/n1?force=1", "/notes/n1#x", "/users/n1"])
@LOCAL
async def test_an_id_that_leads_elsewhere_is_never_asked_for(station: Station, notes: Notes, given: str) -> None:
    async with station.working():
        await serving(station, notes)
        await create(station, resourceID=given)
        assert "spec.resourceID: is no ID of a Note" in await not_ready(station, "InvalidSpec")
        await station.delete(KIND, "one")
        await station.gone(KIND, "one")
    assert notes.asked == []


@pytest.mark.parametrize(("one", "other"), [("/notes/n1", "/notes/%6e1"), ("/notes/%6e1", "/notes/n1")])
@LOCAL
async def test_another_way_to_write_an_id_makes_no_second_owner(
    station: Station, notes: Notes, one: str, other: str
) -> None:
    notes.notes["n1"] = {"id": "n1", "title": "first"}
    async with station.working():
        await serving(station, notes)
        await station.make(KIND, "first", title="first", resourceID=one)
        await create(station, resourceID=other)
        assert "managed by another object already: first" in await not_ready(station, "AlreadyManaged")
        await station.delete(KIND, "one")
        await station.gone(KIND, "one")
    assert list(notes.notes) == ["n1"]


@LOCAL
async def test_what_nobody_could_find_is_taken_once_its_id_is_given(station: Station, notes: Notes) -> None:
    losing(notes)
    async with station.working():
        await serving(station, notes, identity=identity())
        await create(station)
        await not_ready(station, "CreationUncertain")
        await station.change(KIND, "one", lambda spec: spec.update(resourceID="/notes/n1"))
        await station.ready(KIND, "one")
        await station.delete(KIND, "one")
        await station.gone(KIND, "one")
    assert notes.writes() == ["POST", "DELETE"]


# --- once for all -------------------------------------------------------------------------------------------------------------


@LOCAL
async def test_siblings_share_a_list_also_behind_a_hook(station: Station, notes: Notes, install: Install) -> None:
    hook = install("async def modify_request(ctx, request, following):\n    return await following(request)\n")
    names = [f"n{at}" for at in range(1, 9)]
    async with station.working():
        await serving(station, notes, overlay={"hooks": [hook]})
        for name in names:
            await station.make(KIND, name, title=name)
        for text in ("first", "second"):
            before = len(notes.asked)
            for note in notes.notes.values():
                note["labels"] = {"seen": text}
            await station.leap(603)
            for name in names:
                await station.until(KIND, name, lambda d: d["status"]["observed"].get("labels") == {"seen": text})  # noqa: B023
            assert sum(1 for asked in notes.asked[before:] if asked.path == "/notes") <= 2
