"""Services that are down, half there, wrong, or after our token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.systems.rest.arm_kit import DOCUMENT as COMPUTE
from tests.systems.rest.arm_kit import KIND as SET
from tests.systems.rest.arm_kit import SCALE_SET, SPEC, scale_set, scale_sets, served, writes
from tests.systems.rest.notes_kit import DOCUMENT, KIND, Notes, definition
from tests.systems.rest.station import Document, Station, condition_of
from tests.systems.rest.test_definitions_controller import edit
from trimtab.client.protocol import Query
from trimtab.lab.arm import INSTANT, ArmEmulator, Refused, shape
from trimtab.model.kubernetes import ConfigMap, Event
from trimtab.systems.rest.kinds import RestDefinition, RestService
from trimtab.testing.ports import free_ports

LOCAL = pytest.mark.parametrize("client", ["local"], indirect=True)
SETS = "Microsoft.Compute/virtualMachineScaleSets"


@pytest.fixture
async def notes() -> AsyncIterator[Notes]:
    async with Notes() as service:
        yield service


@pytest.fixture
async def arm() -> AsyncIterator[ArmEmulator]:
    async with ArmEmulator([COMPUTE], behaviour=INSTANT) as emulator:
        yield emulator


async def serving(station: Station, notes: Notes, **spec: Any) -> None:
    await station.serve(notes.url, DOCUMENT, definitions=[definition()], **spec)


async def create(station: Station, **spec: Any) -> None:
    await station.create(station.document(KIND, "one", {"title": "one", **spec}))


async def not_ready(station: Station, reason: str = "") -> str:
    """What a note says."""
    found = await station.until(
        KIND,
        "one",
        lambda d: (
            condition_of(d, "Ready").get("status") in ("False", "Unknown")
            and (not reason or condition_of(d, "Ready")["reason"] == reason)
        ),
    )
    return str(condition_of(found.raw, "Ready")["message"])


# --- down, half, another thing -------------------------------------------------------------------------------------------------


@LOCAL
async def test_an_endpoint_that_is_down_is_said_and_tried_again(station: Station, notes: Notes) -> None:
    up, notes.url = notes.url, f"http://127.0.0.1:{free_ports(1)[0]}"
    async with station.working():
        await serving(station, notes)
        await create(station)
        await not_ready(station, "Unreachable")
        await edit(station, RestService, station.service, lambda spec: spec.update(endpoint=up))
        await station.ready(KIND, "one")
    assert notes.writes() == ["POST"]


async def half(request: web.Request, answer: web.Response) -> web.StreamResponse:
    """The answer breaks off."""
    body = bytes(answer.body)  # type: ignore[arg-type]
    response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    assert request.transport is not None
    request.transport.close()
    return response


async def page(request: web.Request, answer: web.Response) -> web.StreamResponse:
    """A portal's page instead of the answer."""
    return web.Response(text="<html><body>Log in</body></html>", content_type="text/html")


async def words(request: web.Request, answer: web.Response) -> web.StreamResponse:
    return web.Response(text='"done"', content_type="application/json")


async def inside(request: web.Request, answer: web.Response) -> web.StreamResponse:
    return web.json_response({"error": {"code": "Broken", "message": "not today"}})


@pytest.mark.parametrize("way", [half, page, words])
@LOCAL
async def test_a_creation_whose_answer_is_none_is_found_and_not_repeated(
    station: Station, notes: Notes, way: Any
) -> None:
    async def odd(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "POST":
            return None
        return await way(request, notes.answered("POST", "/notes", body))  # type: ignore[no-any-return]

    notes.instead = odd
    async with station.working():
        await serving(station, notes)
        await create(station)
        for _ in range(6):
            await station.leap(600)
            await asyncio.sleep(0)
        found = await station.ready(KIND, "one")
    assert notes.writes() == ["POST"]
    assert found.raw["status"]["resourceID"] == "/notes/n1"


@pytest.mark.parametrize("way", [half, page, words, inside])
@LOCAL
async def test_a_read_that_is_none_writes_nothing_and_is_said(station: Station, notes: Notes, way: Any) -> None:
    async def odd(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "GET":
            return None
        return await way(request, notes.answered("GET", request.path, None))  # type: ignore[no-any-return]

    async with station.working():
        await serving(station, notes)
        await station.make(KIND, "one", title="one", text="first")
        notes.instead = odd
        await station.change(KIND, "one", lambda spec: spec.update(text="second"))
        assert await not_ready(station)
        notes.instead = None
        await station.leap(4000)
        await station.ready(KIND, "one")
    assert notes.writes() == ["POST", "PUT"]


@LOCAL
async def test_a_success_with_an_error_inside_is_an_error(station: Station, notes: Notes) -> None:
    async def odd(request: web.Request, body: Any) -> web.StreamResponse | None:
        return await inside(request, web.Response()) if request.method == "POST" else None

    notes.instead = odd
    async with station.working():
        await serving(station, notes)
        await create(station)
        await station.until(KIND, "one", lambda d: "not today" in condition_of(d, "Ready").get("message", ""))
        notes.instead = None
        await station.leap(4000)
        await station.ready(KIND, "one")
    assert len(notes.titled("one")) == 1


# --- other values, other IDs ----------------------------------------------------------------------------------------------------


@LOCAL
async def test_a_service_that_shows_other_values_is_left_alone(station: Station, notes: Notes) -> None:
    async def loud(request: web.Request, body: Any) -> web.StreamResponse | None:
        return _louder(notes.answered(request.method, request.path, body))

    notes.instead = loud
    async with station.working():
        await serving(station, notes)
        await station.make(KIND, "one", title="one", text="quiet")
        notes.notes["n1"]["labels"] = {"theirs": "1"}
        await station.leap(700)
        found = await station.until(KIND, "one", lambda d: d["status"]["observed"].get("labels"))
    assert found.raw["status"]["observed"]["text"] == "QUIET!"
    assert condition_of(found.raw, "Drifted")["status"] == "False"
    assert notes.writes() == ["POST"]


def _louder(answer: web.Response) -> web.Response:
    body = json.loads(answer.body) if answer.body else None  # type: ignore[arg-type]
    if isinstance(body, dict) and "text" in body:
        body["text"] = body["text"].upper() + "!"
    return web.json_response(body, status=answer.status) if body is not None else answer


@LOCAL
async def test_a_service_that_never_says_the_same_twice_is_not_fought_for_ever(station: Station, notes: Notes) -> None:
    reads = iter(range(10_000))

    async def fickle(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "GET" or request.path == "/notes":
            return None
        answer = notes.answered("GET", request.path, None)
        if answer.status != 200:
            return answer
        return web.json_response({**json.loads(answer.body), "text": f"read {next(reads)}"})  # type: ignore[arg-type]

    notes.instead = fickle
    async with station.working():
        await serving(station, notes)
        await station.make(KIND, "one", title="one", text="ours", policy={"refresh": "10s"})
        await station.leap(20)
        await station.until(
            KIND, "one", lambda d: condition_of(d, "Drifted").get("reason") == "DriftContested" or _leap(station)
        )
    assert len(notes.writes()) <= 5


@LOCAL
async def test_a_read_that_says_gone_for_a_moment_makes_no_second_one(station: Station, notes: Notes) -> None:
    flaps = iter([True, False, True, False, False])

    async def flapping(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method == "GET" and request.path != "/notes" and next(flaps, False):
            return web.json_response({"message": "no such note"}, status=404)
        return None

    async with station.working():
        await serving(station, notes)
        await station.make(KIND, "one", title="one", text="first")
        notes.notes["n1"]["labels"] = {"theirs": "kept"}
        notes.instead = flapping
        await station.change(KIND, "one", lambda spec: spec.update(text="second"))
        await station.ready(KIND, "one")
    assert notes.writes() == ["POST", "PUT"]
    assert notes.notes["n1"]["labels"] == {"theirs": "kept"}


@LOCAL
async def test_a_read_that_says_gone_for_a_moment_brings_no_blind_put(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.change(SCALE_SET, lambda body: body["tags"].update(theirs="kept"))
        arm.fault(Refused(404, "ResourceNotFound"), "GET", "virtualMachineScaleSets/front$")
        await station.change(SET, "front", lambda spec: spec["sku"].update(capacity=5))
        await station.ready(SET, "front")
    assert arm.resources[SCALE_SET]["tags"] == {"tag1": "value", "theirs": "kept"}
    assert [method for method, _ in writes(arm)] == ["PUT", "PATCH"]


@pytest.mark.parametrize("lost", [False, True], ids=["answered", "answer lost"])
async def test_an_id_that_an_update_changes_is_followed(station: Station, notes: Notes, lost: bool) -> None:
    async def moving(request: web.Request, body: Any) -> web.StreamResponse | None:
        if request.method != "PUT":
            return None
        answer = notes.answered("POST", "/notes", body)
        del notes.notes[request.path.rpartition("/")[2]]
        return await half(request, answer) if lost else answer

    notes.instead = moving
    async with station.working():
        await serving(station, notes)
        await station.make(KIND, "one", title="one", text="first")
        await station.change(KIND, "one", lambda spec: spec.update(text="second"))
        await station.until(KIND, "one", lambda d: d["status"]["resourceID"] == "/notes/n2" or _leap(station))
        await station.ready(KIND, "one")
        await station.delete(KIND, "one")
        await station.gone(KIND, "one")
    assert notes.writes() == ["POST", "PUT", "DELETE"]
    assert notes.notes == {}


def _leap(station: Station) -> bool:
    station.clock.leap(60)
    return False


# --- operations and preconditions --------------------------------------------------------------------------------------------


@LOCAL
async def test_an_operation_that_never_ends_is_given_up_and_said(station: Station, arm: ArmEmulator) -> None:
    short = scale_sets(lambda spec: spec.update(overlay={"polling": {"deadline": "1m"}}))
    async with station.working():
        await served(station, arm, short)
        lasting = shape("202+LOC empty", polls=100_000, retry_after=1)
        arm.behave(SETS, asynchronous=True, operations={"create": lasting})
        await station.create(station.document(SET, "front", SPEC))
        await station.until(SET, "front", lambda d: d.get("status", {}).get("sync", {}).get("operation"))
        await station.leap(120)
        found = await station.until(
            SET, "front", lambda d: "did not end" in condition_of(d, "Synced").get("message", "")
        )
    assert condition_of(found.raw, "Ready")["status"] == "False"
    assert [method for method, _ in writes(arm)] == ["PUT"]


@LOCAL
async def test_what_failed_at_the_service_is_never_called_ready(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        failing = shape("201+AAO nonterminal", polls=0, retry_after=1, outcome="Failed", error_message="no cores left")
        arm.behave(SETS, asynchronous=True, operations={"create": failing, "update": failing, "patch": failing})
        await station.create(station.document(SET, "front", SPEC))
        await station.until(SET, "front", lambda d: d.get("status", {}).get("sync", {}).get("operation"))
        await station.leap(60)
        await station.until(SET, "front", lambda d: "no cores left" in condition_of(d, "Ready").get("message", ""))
        seen = len(arm.requests)
        await station.leap(4000)
        found = await station.until(SET, "front", lambda d: len(arm.requests) > seen + 1)
        assert condition_of(found.raw, "Ready")["status"] == "False"
        arm.behave(SETS, INSTANT)
        await station.change(SET, "front", lambda spec: spec["sku"].update(capacity=1))
        found = await station.ready(SET, "front")
    assert found.raw["status"]["observed"]["properties"]["provisioningState"] == "Succeeded"


@LOCAL
async def test_a_storm_of_412_ends_in_a_condition(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        await scale_set(station)
        arm.fault(
            Refused(412, "PreconditionFailed", "not the one"), "PATCH", "virtualMachineScaleSets/front$", times=1000
        )
        await station.change(SET, "front", lambda spec: spec["sku"].update(capacity=5))
        await station.condition(SET, "front", "Ready", "False", "Conflict")
        assert arm.log.count("PATCH") <= 10
        arm.clear_faults()
        await station.leap(600)
        await station.ready(SET, "front")
    assert arm.resources[SCALE_SET]["sku"]["capacity"] == 5


# --- the token ------------------------------------------------------------------------------------------------------------------

TOKEN = "tok-7f3a9c51e2-never-to-be-seen"


async def with_token(station: Station) -> Document:
    await station.secret("login", token=TOKEN)
    return {"type": "bearer", "secretRef": {"name": "login", "namespace": station.namespace}}


async def scan(station: Station, capfd: pytest.CaptureFixture[str]) -> None:
    """The token is nowhere but in its Secret."""
    kinds: list[Any] = [RestService, RestDefinition, ConfigMap, Event, station.kind(KIND)]
    for kind in kinds:
        for found in (await station.client.list(kind, Query())).items:
            assert TOKEN not in json.dumps(station.client.scheme.document(found)), found.name
    out, err = capfd.readouterr()
    assert TOKEN not in out
    assert TOKEN not in err


async def test_a_service_that_repeats_the_token_cannot_make_us_show_it(
    station: Station, notes: Notes, capfd: pytest.CaptureFixture[str]
) -> None:
    async def telltale(request: web.Request, body: Any) -> web.StreamResponse | None:
        heard = request.headers["Authorization"]
        if request.method == "PUT":
            headers = {"X-Heard": heard}
            return web.json_response({"message": f"{heard} may not do this"}, status=403, headers=headers)
        return None

    notes.instead = telltale
    async with station.working():
        await serving(station, notes, credentials=await with_token(station))
        await station.make(KIND, "one", title="one")
        await station.change(KIND, "one", lambda spec: spec.update(text="two"))
        await not_ready(station, "Unauthorized")
    assert {asked.headers["Authorization"] for asked in notes.asked} == {f"Bearer {TOKEN}"}
    await scan(station, capfd)


@LOCAL
async def test_a_redirect_to_another_host_does_not_get_the_token(
    station: Station, notes: Notes, capfd: pytest.CaptureFixture[str]
) -> None:
    async with Notes() as other:

        async def away(request: web.Request, body: Any) -> web.StreamResponse | None:
            return web.Response(status=307, headers={"Location": f"{other.url}{request.path}"})

        notes.instead = away
        async with station.working():
            await serving(station, notes, credentials=await with_token(station))
            await create(station)
            await not_ready(station)
        assert not [asked for asked in other.asked if "Authorization" in asked.headers]
        assert other.notes == {}
    await scan(station, capfd)


@LOCAL
async def test_an_operation_at_another_host_is_not_asked_for(
    station: Station, arm: ArmEmulator, capfd: pytest.CaptureFixture[str]
) -> None:
    async with Notes() as other, station.working():
        await served(station, arm, credentials=await with_token(station))
        elsewhere = shape("202+LOC empty", polls=1, retry_after=1, host=other.url)
        arm.behave(SETS, asynchronous=True, operations={"create": elsewhere})
        await station.create(station.document(SET, "front", SPEC))
        await station.until(SET, "front", lambda d: d.get("status"))
        await station.leap(60)
        await station.until(SET, "front", lambda d: "pollHosts" in condition_of(d, "Synced").get("message", ""))
        assert other.asked == []
    out, err = capfd.readouterr()
    assert TOKEN not in out + err
