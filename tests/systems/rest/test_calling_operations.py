"""Long-running operations: every shape that begins one, and each way that a poll may go."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.rest.calling_kit import NOW, SkippingClock, World, followed, freely, model, serving
from trimtab.model.clock import parse_time
from trimtab.systems.rest.calling.contract import Answer, CallError, ErrorClass
from trimtab.systems.rest.calling.operations import Done, Failed, begin, due, poll
from trimtab.systems.rest.calling.service import Service
from trimtab.systems.rest.calling.states import settled
from trimtab.systems.rest.model import Call, Polling
from trimtab.systems.rest.state import Operation
from trimtab.testing.clock import FakeClock

BASE = "http://127.0.0.1:1"
AAO, LOC, OL = "azure-asyncoperation", "location", "operation-location"
GOING, ENDED = {"properties": {"provisioningState": "Updating"}}, {"properties": {"provisioningState": "Succeeded"}}


def answer(status: int, body: Any = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers=named, body=body, raw=body, url=f"{BASE}/subscriptions/s/x?api-version=1")


def begun(method: str, given: Answer, **more: Any) -> Operation | None:
    return begin(more.pop("of", model()), Call(method=method, path="/x"), given, now=NOW, **more)


# Every shape of a successful PUT that was seen on ARM, in the order of their number
SHAPES = [
    (201, {AAO: "/m"}, GOING, "status"),
    (201, {}, ENDED, None),
    (200, {}, {"id": "x"}, None),
    (202, {AAO: "/m", LOC: "/l"}, GOING, "status"),
    (201, {}, {"id": "x"}, None),
    (200, {}, ENDED, None),
    (202, {LOC: "/l"}, None, "location"),
    (202, {AAO: "/m", LOC: "/l"}, None, "status"),
    (201, {LOC: "/things/x"}, {"id": "x"}, None),  # where it is, not how far
    (201, {AAO: "/m", LOC: "/l"}, GOING, "status"),
    (200, {AAO: "/m"}, GOING, "status"),
    (200, {AAO: "/m"}, ENDED, "status"),  # the header wins: the body may be what was there before
    (200, {}, GOING, "resource"),
    (201, {AAO: "/m"}, ENDED, "status"),
    (200, {AAO: "/m", LOC: "/l"}, ENDED, "status"),
    (201, {AAO: "/m", LOC: "/l"}, {"id": "x"}, "status"),
    (201, {}, GOING, "resource"),
    (202, {}, None, "resource"),
    (202, {OL: "/m", LOC: "/l"}, None, "status"),
    (204, {}, None, None),
]


@pytest.mark.parametrize(("status", "headers", "body", "style"), SHAPES)
def test_what_a_put_begins(status: int, headers: dict[str, str], body: Any, style: str | None) -> None:
    operation = begun("PUT", Answer(status=status, headers=headers, body=body, url=f"{BASE}/x"))
    assert (operation.style if operation else None) == style
    if operation is not None:
        assert operation.url == {"status": f"{BASE}/m", "location": f"{BASE}/l", "resource": ""}[operation.style]


@pytest.mark.parametrize(
    ("status", "headers", "body", "style"),
    [
        (202, {LOC: "/l"}, None, "location"),
        (202, {AAO: "/m", LOC: "/l"}, None, "status"),
        (200, {}, None, None),
        (204, {}, None, None),
        (202, {AAO: "/m"}, None, "status"),
        (202, {}, None, "gone"),
        (200, {}, {"properties": {"provisioningState": "Deleting"}}, "gone"),
        (200, {}, {"properties": {"provisioningState": "Failed"}}, None),  # it was so before
    ],
)
def test_what_a_delete_begins(status: int, headers: dict[str, str], body: Any, style: str | None) -> None:
    operation = begun("DELETE", Answer(status=status, headers=headers, body=body, url=f"{BASE}/x"))
    assert (operation.style if operation else None) == style


def test_a_patch_that_is_done_is_not_followed_by_a_header_that_is_left_over() -> None:
    assert begun("PATCH", answer(200, ENDED, azure_asyncoperation="http://localhost/elsewhere")) is None
    assert begun("PATCH", answer(200, GOING, azure_asyncoperation="/m")) is not None


def test_a_write_that_failed_at_once_raises() -> None:
    body = {"properties": {"provisioningState": "Failed", "error": {"code": "PrincipalNotFound", "message": "no"}}}
    with pytest.raises(CallError, match="the operation ended as Failed: PrincipalNotFound: no") as raised:
        begun("PUT", answer(201, body), verb="create")
    assert raised.value.kind is ErrorClass.DEPENDENCY


def test_an_operation_remembers_what_it_is_about() -> None:
    operation = begun("PUT", answer(201, GOING, azure_asyncoperation="/ops/o-1?t=2", retry_after="30"), generation=7)
    assert operation == Operation(
        verb="update",
        method="PUT",
        url=f"{BASE}/ops/o-1?t=2",
        style="status",
        started="2026-01-01T00:00:00.000000Z",
        next_poll="2026-01-01T00:00:30.000000Z",
        deadline="2026-01-01T01:00:00.000000Z",
        generation=7,
        id="o-1",
    )
    assert msgspec.json.decode(msgspec.json.encode(operation), type=Operation) == operation


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://elsewhere.example/o", "https://elsewhere.example/o"),
        ("/o?a=1", f"{BASE}/o?a=1"),
        ("o", f"{BASE}/subscriptions/s/o"),
        ("?asyncId=1", f"{BASE}/subscriptions/s/x?asyncId=1"),
    ],
)
def test_a_monitor_is_resolved_against_the_request(given: str, url: str) -> None:
    operation = begun("PUT", answer(202, None, location=given))
    assert operation is not None
    assert operation.url == url


@pytest.mark.parametrize(
    ("wish", "seconds"),
    [
        ("0", 1),
        ("5", 5),
        ("100000", 600),
        ("Thu, 01 Jan 2026 00:01:30 GMT", 90),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 1),
        ("/bar", 15),
        ("-3", 15),
        (None, 15),
    ],
)
def test_the_next_poll_is_when_the_service_asks_for_it_within_reason(wish: str | None, seconds: float) -> None:
    operation = begun("PUT", answer(202, None, location="/l", **({"retry_after": wish} if wish else {})))
    assert operation is not None
    assert due(operation, NOW) == seconds


@given(status=st.integers(200, 204), headers=st.dictionaries(st.sampled_from([AAO, LOC, OL]), st.text(max_size=20)))
def test_whatever_the_headers_say_nothing_breaks(status: int, headers: dict[str, str]) -> None:
    for method in ("PUT", "PATCH", "POST", "DELETE"):
        operation = begun(method, Answer(status=status, headers=headers, url=f"{BASE}/x"))
        assert operation is None or operation.style in ("status", "location", "resource", "gone")


# Polls


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with serving() as made:
        yield made


@pytest.fixture
async def service(world: World) -> AsyncIterator[Service]:
    clock = FakeClock()
    async with Service(world.url, throttle=freely(clock), clock=clock) as made:
        yield made


def operation(world: World, style: str = "status", **more: Any) -> Operation:
    url = {"url": "" if style in ("resource", "gone", "lost") else f"{world.url}/o"}
    kept = {"verb": "update", "method": "PUT", "started": "2026-01-01T00:00:00Z", "style": style, **url, **more}
    return Operation(**kept)


async def look(service: Service, at: Operation, of: Any = None, after: float = 0) -> Operation | Done | Failed:
    now = NOW + timedelta(seconds=after)
    return await poll(service, of or model(), at, resource="/things/a", now=now, chance=random.Random(1))


def said(body: Any, status: int = 200, **headers: str) -> web.Response:
    return web.json_response(body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


async def test_one_poll_is_one_request(service: Service, world: World) -> None:
    world.answers = [said({"status": "InProgress", "percentComplete": 42.5}, retry_after="20")]
    after = await look(service, operation(world, failures=2))
    assert isinstance(after, Operation)
    assert (after.polls, after.failures, after.percent, due(after, NOW)) == (1, 0, 42.5, 20)
    assert world.asked == ["GET /o"]


async def test_where_there_is_nothing_to_ask_the_next_look_tells(service: Service, world: World) -> None:
    at = operation(world, "resource")
    assert await poll(service, model(), at, resource="", now=NOW, chance=random.Random(1)) == Done()
    assert world.seen == []


async def test_a_monitor_may_move(service: Service, world: World) -> None:
    world.answers = [said({"status": "Running"}, Azure_AsyncOperation="/elsewhere"), web.Response(status=202)]
    after = await look(service, operation(world))
    assert isinstance(after, Operation)
    assert after.url == f"{world.url}/elsewhere"
    world.answers = [web.Response(status=202, headers={"Location": "/again"})]
    after = await look(service, operation(world, "location"))
    assert isinstance(after, Operation)
    assert after.url == f"{world.url}/again"


async def test_a_monitor_that_moves_to_another_host_ends_it(service: Service, world: World) -> None:
    world.answers = [web.Response(status=202, headers={"Location": "http://evil.example/x"})]
    moved = await look(service, operation(world, "location"))
    assert isinstance(moved, Operation)
    end = await look(service, moved)
    assert isinstance(end, Failed)
    assert (end.error.kind, end.error.uncertain) == (ErrorClass.TERMINAL, True)
    assert "the poll URL leaves the endpoint" in str(end.error)
    assert len(world.seen) == 1


@pytest.mark.parametrize("state", ["succeeded", "Succeeded", "SUCCEEDED"])
async def test_the_status_is_read_in_any_case(service: Service, world: World, state: str) -> None:
    world.answers = [said({"status": state})]
    assert isinstance(await look(service, operation(world)), Done)


async def test_an_operation_that_failed_says_why(service: Service, world: World) -> None:
    error = {"code": "Conflict", "message": "sorry", "details": [{"code": "AnotherOperationInProgress"}]}
    world.answers = [said({"status": "Failed", "error": error})]
    end = await look(service, operation(world))
    assert isinstance(end, Failed)
    assert (end.error.kind, end.error.code, end.error.uncertain) == (ErrorClass.CONFLICT, "Conflict", False)
    assert str(end.error) == "PUT /o: the operation ended as Failed: Conflict: sorry"


async def test_the_overlay_says_what_a_failure_means_here(service: Service, world: World) -> None:
    world.answers = [said({"status": "Failed", "error": {"code": "Odd", "message": "x"}})]
    of = model(errors=({"code": "Odd", "class": "dependency"},))
    end = await look(service, operation(world), of)
    assert isinstance(end, Failed)
    assert end.error.kind is ErrorClass.DEPENDENCY


async def test_a_monitor_that_is_the_resource_tells_by_its_provisioning_state(service: Service, world: World) -> None:
    world.answers = [said(GOING), said(ENDED)]
    assert isinstance(await look(service, operation(world)), Operation)
    assert isinstance(await look(service, operation(world)), Done)


@pytest.mark.parametrize("style", ["status", "location", "resource", "gone"])
@pytest.mark.parametrize("status", [500, 502, 503, 429, 408])
async def test_trouble_with_asking_is_no_trouble_of_the_operation(world: World, style: str, status: int) -> None:
    world.otherwise = _always(status)
    clock = SkippingClock()
    async with Service(world.url, throttle=freely(clock), clock=clock) as service:
        after = await look(service, operation(world, style, failures=50))
    assert isinstance(after, Operation)
    assert (after.failures, after.style) == (51, style)


async def test_the_pause_of_a_throttled_poll_is_kept(service: Service, world: World) -> None:
    world.answers = [web.Response(status=429, headers={"Retry-After": "77"})]
    after = await look(service, operation(world))
    assert isinstance(after, Operation)
    assert due(after, NOW) == 77


async def test_a_monitor_that_is_gone_sends_us_to_the_resource(service: Service, world: World) -> None:
    world.answers = [said({"error": {"code": "NotFound"}}, 404), said(GOING), said(ENDED)]
    at = await look(service, operation(world))
    assert isinstance(at, Operation)
    assert (at.style, due(at, NOW)) == ("lost", 0)
    at = await look(service, at)
    assert isinstance(at, Operation)
    assert isinstance(await look(service, at), Done)
    assert world.asked == ["GET /o", "GET /things/a", "GET /things/a"]


async def test_neither_monitor_nor_resource_is_believed_after_some_polls(service: Service, world: World) -> None:
    world.otherwise = _always(404)
    at: Operation | Done | Failed = operation(world)
    while isinstance(at, Operation):
        at = await look(service, at)
    assert isinstance(at, Failed)
    assert (at.error.kind, at.error.uncertain, len(world.seen)) == (ErrorClass.GONE, True, 6)


async def test_a_deletion_whose_monitor_is_gone_ends_when_the_resource_is(service: Service, world: World) -> None:
    world.answers = [said({}, 404), said({"id": "x"}), said({}, 404)]
    at = await look(service, operation(world, verb="delete", method="DELETE"))
    assert isinstance(at, Operation)
    assert at.style == "gone"
    at = await look(service, at)
    assert isinstance(at, Operation)
    assert await look(service, at) == Done()


async def test_a_resource_that_is_not_there_yet_is_waited_for(service: Service, world: World) -> None:
    world.otherwise = _always(404)
    at = await look(service, operation(world, "resource", failures=50))
    assert isinstance(at, Operation)
    world.otherwise = _always(200)
    assert isinstance(await look(service, at), Done)


async def test_a_resource_that_counts_as_gone_ends_a_deletion(service: Service, world: World) -> None:
    world.answers = [said({"status": {"state": "active"}}), said({"status": {"state": "expired"}})]
    of = model(gone={"status.state": "expired"})
    at = await look(service, operation(world, "gone", verb="delete"), of)
    assert isinstance(at, Operation)
    assert isinstance(await look(service, at, of), Done)


async def test_a_4xx_at_the_location_is_the_operations_own_answer(service: Service, world: World) -> None:
    world.answers = [said({"error": {"code": "PropertyChangeNotAllowed", "message": "no"}}, 409)]
    end = await look(service, operation(world, "location"))
    assert isinstance(end, Failed)
    assert end.error.code == "PropertyChangeNotAllowed"


async def test_after_the_deadline_it_is_given_up_but_looked_at_first(service: Service, world: World) -> None:
    late = operation(world, deadline="2026-01-01T01:00:00Z")
    world.answers = [said({"status": "Running"}), said({"status": "Running"}), said({"status": "Succeeded"})]
    assert isinstance(await look(service, late, after=3599), Operation)
    end = await look(service, late, after=3600)
    assert isinstance(end, Failed)
    assert (end.error.code, end.error.uncertain) == ("OperationTimedOut", True)
    assert isinstance(await look(service, late, after=7200), Done)


async def test_polls_without_a_wish_become_rarer_up_to_a_minute(service: Service, world: World) -> None:
    world.otherwise = _always(202)
    at: Operation | Done | Failed = operation(world, "location")
    pauses = []
    for _ in range(8):
        assert isinstance(at, Operation)
        at = await look(service, at)
        assert isinstance(at, Operation)
        pauses.append(due(at, NOW))
    assert pauses == sorted(pauses[:4]) + pauses[4:]
    assert 15 <= pauses[0] <= 25
    assert all(60 <= pause <= 66 for pause in pauses[4:])


# What was declared


LXD = Polling(
    url="body.operation",
    status="body.metadata.status",
    pending=("Pending", "Running", "Cancelling"),
    success=("Success",),
    error="body.metadata.err",
)


async def test_operations_of_lxd_are_followed_by_locators(service: Service, world: World) -> None:
    of = model(polling=LXD, envelope="metadata")

    def envelope(status: str, **more: Any) -> web.Response:
        return said({"type": "sync", "metadata": {"id": "1", "status": status, **more}})

    begins = Answer(
        status=202,
        headers={"location": "/1.0/operations/1"},
        body={"id": "1"},
        raw={"type": "async", "operation": "/1.0/operations/1", "metadata": {"id": "1"}},
        url=f"{world.url}/1.0/instances",
    )
    world.answers = [envelope("Running"), envelope("Success")]
    end, styles = await followed(service, of, begins, method="POST", resource="/x")
    assert (type(end), styles) == (Done, ["status", "status"])
    assert world.asked == ["GET /1.0/operations/1"] * 2
    world.answers = [envelope("Failure", err="no space left")]
    end, _ = await followed(service, of, begins, method="POST", resource="/x")
    assert isinstance(end, Failed)
    assert "the operation ended as Failure: no space left" in str(end.error)


def test_an_answer_without_what_was_declared_begins_nothing() -> None:
    sync = {"type": "sync", "operation": "", "metadata": {}}
    assert begun("PUT", answer(200, sync), of=model(polling=LXD)) is None


def test_declared_operations_are_looked_at_soon() -> None:
    found = begun("POST", answer(202, {"operation": "/o"}), of=model(polling=LXD))
    assert found is not None
    assert due(found, NOW) == 1
    assert parse_time(found.deadline) == NOW + timedelta(hours=1)


async def test_a_status_code_may_be_what_tells(service: Service, world: World) -> None:
    of = model(polling=Polling(url="header.X-Job", status="code", pending=("200",), success=("404", "204")))
    found = begin(of, Call(method="DELETE", path="/x"), answer(202, None, x_job=f"{world.url}/jobs/1"), now=NOW)
    assert found is not None
    world.answers = [said({}), said({}, 404)]
    at = await look(service, found, of)
    assert isinstance(at, Operation)
    assert isinstance(await look(service, at, of), Done)


async def test_a_resource_may_say_itself_how_far_it_is(service: Service, world: World) -> None:
    of = model(polling=Polling(status="body.status", pending=("BUILD",), success=("ACTIVE",), error="body.fault"))
    world.answers = [said({"status": "BUILD"}), said({"status": "ACTIVE"})]
    begins = answer(201, {"status": "BUILD"})
    end, styles = await followed(service, of, begins, method="PUT", resource="/servers/a")
    assert (type(end), styles) == (Done, ["resource", "resource"])
    world.answers = [said({"status": "ERROR", "fault": {"code": 500, "message": "No valid host"}})]
    end, _ = await followed(service, of, begins, method="PUT", resource="/servers/a")
    assert isinstance(end, Failed)
    assert (end.error.kind, "No valid host" in str(end.error)) == (ErrorClass.TRANSIENT, True)
    assert begun("PUT", answer(200, {"status": "ACTIVE"}), of=of) is None
    assert begun("DELETE", answer(204), of=of) is None


@pytest.mark.parametrize(
    ("body", "is_settled"),
    [
        (ENDED, True),
        (GOING, False),
        ({}, True),
        (None, True),
        ({"properties": {"provisioningState": "Canceled"}}, True),
        ({"provisioningState": "Creating"}, False),
    ],
)
def test_whether_a_resource_is_settled(body: Any, is_settled: bool) -> None:
    assert settled(body) is is_settled


def _always(status: int) -> Any:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response({}, status=status)

    return handle
