"""What is written is what was asked for, and what others wrote stays; what is said of it is true, and shows no secret."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.runtime.widgets import PATIENCE
from tests.systems.rest.items_kit import (
    KIND,
    Items,
    begun,
    between,
    definition,
    document,
    finalizers_of,
    forget,
    passing,
    refused,
    says,
    serving,
    sync_of,
)
from tests.systems.rest.station import Document, Station, condition_of
from trimtab.client.transport import Call
from trimtab.systems.rest.reconciling.subject import FINALIZER

LOCAL = pytest.mark.parametrize("client", ["local"], indirect=True)
"""Where the API server makes no difference."""
ITEM = "/items/a"
LOOK = 700.0
"""Seconds after which every item was looked at."""
PASSWORD = "hunter2hunter2"


@pytest.fixture
async def items() -> AsyncIterator[Items]:
    async with serving() as service:
        yield service


async def serve(station: Station, items: Items, **options: Any) -> None:
    await station.serve(items.url, document(**options), definitions=[definition()])


async def make(station: Station, **spec: Any) -> None:
    await station.make(KIND, "a", **{"title": "one", **spec})


async def edit(station: Station, **fields: Any) -> None:
    await station.change(KIND, "a", lambda spec: spec.update(fields))


# --- what failed ------------------------------------------------------------------------------------------------------------


@LOCAL
async def test_what_the_service_calls_failed_after_a_creation_is_not_ready(station: Station, items: Items) -> None:
    items.lasting = frozenset({"PUT"})
    async with station.working():
        await serve(station, items)
        await station.create(station.document(KIND, "a", {"title": "one"}))
        await begun(station)
        items.finish()
        items.there[ITEM]["provisioningState"] = "Failed"
        said = await passing(station, says(station, "ProvisioningFailed"))
    assert said["status"] == "False"


@LOCAL
async def test_what_the_service_calls_failed_after_an_update_is_not_ready(station: Station, items: Items) -> None:
    async with station.working():
        await serve(station, items)
        await make(station)
        items.lasting = frozenset({"PUT"})
        await edit(station, title="two")
        await begun(station)
        items.there[ITEM].update(title="two", provisioningState="Failed")
        items.finish("Failed", error={"code": "QuotaExceeded", "message": "no cores left"})
        await passing(station, says(station, "Refused"))
        await station.leap(4000)
        said = await says(station, "ProvisioningFailed")
    assert said["status"] == "False"


# --- drift ------------------------------------------------------------------------------------------------------------------


@LOCAL
@pytest.mark.parametrize("etags", [True, False], ids=["with ETags", "without"])
async def test_drift_that_was_reported_stays_drift_when_another_field_is_edited(
    station: Station, items: Items, etags: bool
) -> None:
    items.etags = etags
    async with station.working():
        await serve(station, items)
        await make(station, size=1, policy={"drift": "report"})
        items.there[ITEM]["size"] = 9
        await station.leap(LOOK)
        await station.condition(KIND, "a", "Drifted", "True")
        await edit(station, title="two")
        await station.until(KIND, "a", lambda d: '"two"' in sync_of(d)["lastApplied"])
        await edit(station, policy={"drift": "correct"})
        await items.asked.until(lambda _: items.there[ITEM]["size"] == 1)


@LOCAL
@pytest.mark.parametrize("etags", [True, False], ids=["with ETags", "without"])
async def test_what_others_change_while_we_write_is_drift(station: Station, items: Items, etags: bool) -> None:
    async def meanwhile(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "PUT":
            return None
        answer = items.answered("PUT", request.path, body)
        items.there[ITEM]["size"] = 9
        return answer

    items.etags = etags
    async with station.working():
        await serve(station, items)
        await make(station, size=1)
        items.instead = meanwhile
        await edit(station, title="two")
        await station.until(KIND, "a", lambda d: '"two"' in sync_of(d)["lastApplied"])
        items.instead = None
        await station.leap(LOOK)
        await items.asked.until(lambda _: items.there[ITEM]["size"] == 1)


@LOCAL
async def test_one_contested_field_stops_the_correction_of_no_other(station: Station, items: Items) -> None:
    async with station.working():
        await serve(station, items)
        await make(station, size=1)
        for times in range(3):
            items.there[ITEM]["size"] = 9
            await station.leap(LOOK)
            await station.until(KIND, "a", lambda d, n=times: len(sync_of(d).get("corrected", {}).get("size", ())) > n)
            await station.ready(KIND, "a")
        items.there[ITEM].update(size=9, title="theirs")
        await station.leap(LOOK)
        await station.until(KIND, "a", lambda d: "title" in sync_of(d)["corrected"] and not sync_of(d).get("pending"))
        assert items.there[ITEM]["title"] == "one"
        await station.leap(LOOK)
        found = await station.condition(KIND, "a", "Drifted", "True", "DriftContested")
    assert "size" in condition_of(found.raw, "Drifted")["message"]
    assert items.there[ITEM]["size"] == 9


# --- another writer ---------------------------------------------------------------------------------------------------------


@LOCAL
@pytest.mark.parametrize("etags", [True, False], ids=["ETags that no PUT takes", "no ETags"])
async def test_what_others_wrote_between_the_read_and_an_unguarded_put_is_kept(
    station: Station, items: Items, etags: bool
) -> None:
    def meanwhile(call: Call) -> None:
        if b'"Updating"' in call.body and "note" not in items.there[ITEM]:
            items.there[ITEM]["note"] = "theirs"
            station.clock.leap(5)

    items.etags = etags
    async with station.working(client=between(station.client, meanwhile)):
        await serve(station, items)
        await make(station)
        await edit(station, title="two")
        await station.ready(KIND, "a")
    assert items.there[ITEM]["title"] == "two"
    assert items.there[ITEM]["note"] == "theirs"


# --- plans and claims -------------------------------------------------------------------------------------------------------


async def test_what_was_adopted_by_a_plan_is_claimed_when_it_is_managed(station: Station, items: Items) -> None:
    items.there[ITEM] = {"id": "a", "title": "one"}
    async with station.working():
        await serve(station, items)
        await station.create(station.document(KIND, "a", _planned(title="one")))
        await station.until(KIND, "a", lambda d: sync_of(d).get("created"))
        await edit(station, policy={"mode": "manage"})
        await station.until(KIND, "a", lambda d: FINALIZER in finalizers_of(d))
        await station.delete(KIND, "a")
        await station.gone(KIND, "a")
    assert items.there == {}


@LOCAL
async def test_an_update_is_sent_only_for_what_is_claimed(station: Station, items: Items) -> None:
    held: list[list[str]] = []

    async def noting(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method == "PUT":
            held.append(finalizers_of((await station.get(KIND, "a")).raw))
        return None

    items.there[ITEM], items.instead = {"id": "a", "title": "theirs"}, noting
    async with station.working():
        await serve(station, items)
        await station.create(station.document(KIND, "a", _planned(title="theirs")))
        await station.until(KIND, "a", lambda d: sync_of(d).get("created"))
        await edit(station, title="ours", policy={"mode": "manage"})
        await station.ready(KIND, "a")
    assert held == [[FINALIZER]]


def _planned(**spec: Any) -> Document:
    return {**spec, "resourceID": ITEM, "policy": {"mode": "plan"}}


# --- made anew --------------------------------------------------------------------------------------------------------------


@LOCAL
async def test_what_is_to_be_made_anew_is_decided_anew_each_time(station: Station, items: Items) -> None:
    async def locked(request: web.Request, body: Any) -> web.StreamResponse | None:
        return refused(409, "ScopeLocked") if request.method == "DELETE" else None

    async with station.working():
        await serve(station, items)
        await make(station, zone="one", policy={"createOnly": "recreate"})
        items.instead = locked
        await edit(station, zone="two")
        await items.asked.until(lambda _: "DELETE" in items.writes())
        await edit(station, zone="one", policy={"createOnly": "block", "mode": "plan"})
        await passing(station, station.ready(KIND, "a"))
        found = await station.until(KIND, "a", lambda d: not sync_of(d).get("recreating"))
        items.instead = None
        items.asked.clear()
        await station.leap(LOOK)
        await items.asked.until(lambda _: items.reads())
    assert condition_of(found.raw, "Ready")["status"] == "True"
    assert items.writes() == []


@LOCAL
async def test_what_was_made_anew_is_not_being_made_anew_any_more(station: Station, items: Items) -> None:
    async with station.working():
        await serve(station, items)
        await make(station, zone="one", policy={"createOnly": "recreate"})
        await edit(station, zone="two")
        found = await station.ready(KIND, "a")
    assert not sync_of(found.raw).get("recreating")
    assert items.there[ITEM]["zone"] == "two"


# --- what is looked at ------------------------------------------------------------------------------------------------------


@LOCAL
@pytest.mark.parametrize(
    "unfinished",
    [{"applying": '{"title":"two"}'}, {"model": "of before"}, {"removals": {"note": 1}}, {"recreating": "a change"}],
    ids=lambda given: next(iter(given)),
)
async def test_a_start_looks_at_what_is_not_finished(station: Station, items: Items, unfinished: Document) -> None:
    async with station.working():
        await serve(station, items)
        await make(station)
    await forget(station, keep=lambda status: status["sync"].update(unfinished))
    items.asked.clear()
    async with station.working():
        await items.asked.until(lambda _: ITEM in items.reads())


# --- secrets ----------------------------------------------------------------------------------------------------------------


@LOCAL
@pytest.mark.parametrize("now", [PASSWORD, "of-another-hand"], ids=["ours", "another's"])
async def test_a_plan_does_not_show_the_secrets_of_a_list(station: Station, items: Items, now: str) -> None:
    users = [{"login": "eve", "pass": {"secretRef": {"name": "pw", "key": "password"}}}]
    async with station.working():
        await serve(station, items)
        await station.secret("pw", password=PASSWORD)
        await make(station, users=users)
        assert items.there[ITEM]["users"][0]["pass"] == PASSWORD
        items.there[ITEM]["users"][0]["pass"] = now
        await edit(station, users=[{**users[0], "login": "eva"}], policy={"mode": "plan"})
        found = await station.until(KIND, "a", lambda d: d["status"].get("plan"))
    assert now not in str(found.raw["status"])


@LOCAL
async def test_the_text_of_a_failed_operation_does_not_show_a_secret(station: Station, items: Items) -> None:
    items.lasting = frozenset({"PUT"})
    async with station.working():
        await serve(station, items)
        await station.secret("pw", password=PASSWORD)
        password = {"secretRef": {"name": "pw", "key": "password"}}
        await station.create(station.document(KIND, "a", {"title": "one", "password": password}))
        await begun(station)
        items.finish("Failed", error={"code": "Weak", "message": f"{PASSWORD} is weak"})
        found = await passing(station, station.until(KIND, "a", lambda d: "is weak" in str(d["status"])))
        events = await _events(station)
    assert PASSWORD not in str(found.raw["status"])
    assert PASSWORD not in str(events)


async def _events(station: Station) -> list[tuple[str, str]]:
    """Once the one of the failure is among them: it is written behind the back of what failed."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await station.events("a")
            if any("is weak" in message for _, message in found):
                return found
            await asyncio.sleep(0)
