"""What we made goes with its object, and nothing else does; what nobody can tell keeps the object."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.systems.rest.items_kit import (
    BOX,
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
)
from tests.systems.rest.station import Document, Station
from trimtab.runtime.objects import with_metadata
from trimtab.systems.rest.reconciling.subject import FINALIZER

LOCAL = pytest.mark.parametrize("client", ["local"], indirect=True)
"""Where the API server makes no difference."""
ITEM = "/items/a"


@pytest.fixture
async def items() -> AsyncIterator[Items]:
    async with serving() as service:
        yield service


async def serve(station: Station, items: Items, *definitions: Document) -> None:
    await station.serve(items.url, document(), definitions=definitions or (definition(),))


async def create(station: Station, name: str = "a", kind: str = KIND, **spec: Any) -> None:
    await station.create(station.document(kind, name, {"title": name, **spec}))


# --- what is not ours stays -------------------------------------------------------------------------------------------------


async def test_what_someone_made_after_our_creation_was_refused_stays(station: Station, items: Items) -> None:
    async def full(request: web.Request, body: Any) -> web.StreamResponse | None:
        return refused(400, "QuotaExceeded") if request.method == "PUT" else None

    items.instead = full
    async with station.working():
        await serve(station, items)
        await create(station)
        await says(station, "Refused")
        items.there[ITEM] = {"id": "a", "title": "theirs"}
        await station.delete(KIND, "a")
        await station.gone(KIND, "a")
    assert ITEM in items.there


@LOCAL
async def test_for_an_object_that_we_never_held_nothing_is_deleted(station: Station, items: Items) -> None:
    items.there[ITEM] = {"id": "a", "title": "theirs"}
    async with station.working():
        await serve(station, items)
        await create(station)
        await says(station, "AlreadyExists")
    found = await station.get(KIND, "a")
    await station.client.patch(found, with_metadata(found, finalizers=("tests.trimtab.dev/hold",)))
    await station.delete(KIND, "a")
    async with station.working():
        await station.make(KIND, "b", title="b")  # its turns come after the one of what was there
    assert items.writes() == ["PUT"]


# --- what is ours goes ------------------------------------------------------------------------------------------------------


@LOCAL
async def test_a_deletion_waits_for_a_creation_whose_result_has_no_id_yet(station: Station, items: Items) -> None:
    items.lasting = frozenset({"POST"})
    async with station.working():
        await serve(station, items, definition(server=True, find=True))
        await create(station)
        await begun(station)
        await station.delete(KIND, "a")
        await passing(station, says(station, "Deleting"))
        items.finish()
        await passing(station, station.gone(KIND, "a"))
    assert items.writes() == ["POST", "DELETE"]
    assert items.there == {}


@LOCAL
async def test_a_deletion_waits_for_a_list_to_show_what_a_creation_made(station: Station, items: Items) -> None:
    hidden = iter(range(2))

    async def late(request: web.Request, body: Any) -> web.StreamResponse | None:
        is_hidden = request.path == "/items" and items.there and next(hidden, None) is not None
        return web.json_response([]) if is_hidden and request.method == "GET" else None

    items.instead, items.lasting = late, frozenset({"POST"})
    async with station.working():
        await serve(station, items, definition(server=True, find=True))
        await create(station)
        await begun(station)
        await station.delete(KIND, "a")
        items.finish()
        await passing(station, station.gone(KIND, "a"))
    assert items.there == {}


@LOCAL
@pytest.mark.parametrize("server", [False, True], ids=["our name", "the server's ID"])
async def test_a_deletion_waits_for_a_creation_that_shows_nothing_yet(
    station: Station, items: Items, server: bool
) -> None:
    items.lasting, items.located = frozenset({"PUT", "POST"}), True
    kind = definition(server=True, identity=BY_LOCATION) if server else definition()
    async with station.working():
        await serve(station, items, kind)
        await create(station)
        await begun(station)
        await station.delete(KIND, "a")
        await passing(station, says(station, "Deleting"))
        items.finish()
        await passing(station, station.gone(KIND, "a"))
    assert items.there == {}


async def test_an_object_goes_only_when_a_read_shows_that_its_resource_is_gone(station: Station, items: Items) -> None:
    async def lingering(request: web.Request, body: Any) -> web.StreamResponse | None:
        return web.Response(status=204) if request.method == "DELETE" else None

    items.instead = lingering
    async with station.working():
        await serve(station, items)
        await station.make(KIND, "a", title="one")
        await station.delete(KIND, "a")
        found = await begun(station)
        assert finalizers_of(found.raw)
        items.there.clear()
        await passing(station, station.gone(KIND, "a"))
    assert items.writes() == ["PUT", "DELETE"]


@LOCAL
async def test_a_lost_status_lets_nothing_stay_whose_id_follows_from_the_spec(station: Station, items: Items) -> None:
    async with station.working():
        await serve(station, items)
        await station.make(KIND, "a", title="one")
    await forget(station)
    await station.delete(KIND, "a")
    async with station.working():
        await station.gone(KIND, "a")
    assert items.there == {}


# --- what nobody can tell ---------------------------------------------------------------------------------------------------


async def _uncertain(station: Station, items: Items, **spec: Any) -> None:
    """An item whose creation was not answered, and that cannot be found."""

    async def unanswered(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "POST":
            return None
        items.answered("POST", "/items", body)
        return lost(request)

    items.instead = unanswered
    await serve(station, items, definition(server=True))
    await create(station, **spec)
    await passing(station, says(station, "CreationUncertain"))


@LOCAL
async def test_an_object_stays_while_nobody_can_tell_what_it_made(station: Station, items: Items) -> None:
    async with station.working():
        await _uncertain(station, items)
        await station.delete(KIND, "a")
        found = await station.condition(KIND, "a", "Ready", "False", "CreationUncertain")
        assert found.raw["metadata"]["deletionTimestamp"]
        assert finalizers_of(found.raw)


@LOCAL
async def test_an_object_that_is_to_be_detached_goes_whatever_it_made(station: Station, items: Items) -> None:
    async with station.working():
        await _uncertain(station, items, policy={"deletion": "detach"})
        await station.delete(KIND, "a")
        await station.gone(KIND, "a")
    assert items.writes() == ["POST"]


@LOCAL
async def test_a_part_that_was_never_made_goes_when_its_whole_is_gone(station: Station, items: Items) -> None:
    async def full(request: web.Request, body: Any) -> web.StreamResponse | None:
        return refused(400, "QuotaExceeded") if request.method == "POST" else None

    items.instead = full
    async with station.working():
        await serve(station, items, *boxes())
        await station.make(BOX, "box", title="box")
        await create(station, kind=PART, parent={"name": "box"})
        await says(station, "Refused", PART)
    found = await station.get(PART, "a")
    await station.client.patch(found, with_metadata(found, finalizers=(FINALIZER,)))
    await _without_parent(station)
    await station.delete(PART, "a")
    async with station.working():
        await station.gone(PART, "a")
    assert items.writes() == ["PUT", "POST"]


async def _without_parent(station: Station) -> None:
    """The box's object goes while nobody looks after it."""
    found = await station.get(BOX, "box")
    await station.client.patch(found, with_metadata(found, finalizers=()))
    await station.delete(BOX, "box")
    await station.gone(BOX, "box")
