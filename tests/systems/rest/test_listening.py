"""What services tell of changes: the ARM emulator tells it, on both API servers; whoever else comes learns nothing."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.runtime.widgets import Tap, logged, tapped
from tests.systems.rest.arm_kit import DOCUMENT, GROUP, KIND, SCALE_SET, scale_set, served, writes
from tests.systems.rest.station import Station
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.client.transport import Call, Reply, Unreachable
from trimtab.lab.arm import INSTANT, ArmEmulator, HandshakeFailed
from trimtab.runtime.credentials import Credentials
from trimtab.systems.rest.listening import Listener
from trimtab.systems.rest.listening.events import MAX_EVENTS, Refused, Told, told
from trimtab.systems.rest.listening.finding import Target
from trimtab.systems.rest.listening.listener import BURST, MAX_BYTES
from trimtab.systems.rest.listening.waking import Waker
from trimtab.systems.rest.reconciling.subject import WAKE

TOKEN = "a-token-that-nobody-guesses"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
LOCALLY = pytest.mark.parametrize("client", ["local"], indirect=True)
"""What the API server has no part in is tried on one of them."""


@pytest.fixture
async def arm() -> AsyncIterator[ArmEmulator]:
    async with ArmEmulator([DOCUMENT], behaviour=INSTANT) as emulator:
        yield emulator


class Door:
    """A listener, for the station's service."""

    def __init__(self, station: Station, port: int) -> None:
        self.host = f"http://127.0.0.1:{port}"
        self.url = f"{self.host}/{station.service}"

    async def ask(
        self,
        body: Any = b"",
        headers: Mapping[str, str] = BEARER,
        *,
        media_type: str = "application/cloudevents+json",
        url: str = "",
        method: str = "POST",
    ) -> tuple[int, str, Mapping[str, str]]:
        data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        sent = {"Content-Type": media_type, **headers}
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url or self.url, data=data, headers=sent) as answer,
        ):
            return answer.status, await answer.text(), answer.headers

    async def tell(self, *subjects: str, **more: Any) -> int:
        status, _, _ = await self.ask([cloud(each) for each in subjects], media_type=BATCH, **more)
        return status


BATCH = "application/cloudevents-batch+json"


def cloud(subject: str, **more: Any) -> dict[str, Any]:
    event = {"specversion": "1.0", "id": "1", "source": "/lab", "type": "lab.changed", "subject": subject}
    return {**event, **more}


@asynccontextmanager
async def door(station: Station, client: ApiClient | None = None) -> AsyncIterator[Door]:
    """Open, with the token in its Secret. The station's service must be there."""
    async with Credentials(station.client) as credentials:
        listener = Listener(
            client or station.client, credentials, clock=station.clock, objects=Query(namespace=station.namespace)
        )
        port = await listener.start()
        try:
            yield Door(station, port)
        finally:
            await listener.stop()


async def told_of(station: Station, arm: ArmEmulator) -> None:
    """A service that takes notifications, with a scale set."""
    await station.secret("told", token=TOKEN)
    secret = {"name": "told", "namespace": station.namespace}
    await served(station, arm, notifications={"tokenSecret": secret})
    await scale_set(station)


async def woken(station: Station, kind: str = KIND, name: str = "front") -> str:
    annotations = (await station.get(kind, name)).metadata.annotations or {}
    return annotations.get(WAKE, "")


async def test_drift_that_a_service_tells_of_is_corrected_at_once(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await told_of(station, arm)
        async with door(station) as opened:
            await arm.subscribe(opened.url, "event-grid", BEARER)
            await arm.subscribe(f"{opened.url}?token={TOKEN}", "cloud-events")
            arm.scale(SCALE_SET, 9)
            await station.until(KIND, "front", lambda d: d["status"]["sync"].get("corrected"))
            await station.ready(KIND, "front")
            await arm.events.sent()
    assert arm.events.refused == 0
    assert writes(arm)[1:] == [("PATCH", {"sku": {"capacity": 3}})]


@pytest.mark.parametrize("form", ["event-grid", "cloud-events"])
@LOCALLY
async def test_each_form_of_events_wakes_what_changed(station: Station, arm: ArmEmulator, form: Any) -> None:
    async with station.working():
        await told_of(station, arm)
        async with door(station) as opened:
            await arm.subscribe(opened.url, form, BEARER)
            arm.scale(SCALE_SET, 9)
            await arm.events.sent()
            assert arm.events.refused == 0
        assert await woken(station)


async def test_objects_and_kinds_that_come_later_are_found(station: Station, arm: ArmEmulator) -> None:
    async with station.working(), door(station) as opened:
        await told_of(station, arm)
        async with asyncio.timeout(20):
            while not await woken(station):  # until the watches bring it
                await opened.tell(SCALE_SET)


# --- who may tell ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def opened(station: Station, arm: ArmEmulator) -> AsyncIterator[Door]:
    async with station.working():
        await told_of(station, arm)
        async with door(station) as made:
            yield made


@LOCALLY
async def test_a_token_comes_in_several_ways(opened: Door) -> None:
    assert await opened.tell() == 200
    assert await opened.tell(headers={"aeg-sas-key": TOKEN}) == 200
    assert await opened.tell(headers={}, url=f"{opened.url}?token={TOKEN}") == 200
    assert await opened.tell(headers={}, url=f"{opened.url}?access_token={TOKEN}") == 200


@LOCALLY
async def test_whoever_has_no_token_of_the_service_learns_nothing(station: Station, opened: Door) -> None:
    wrong: list[tuple[dict[str, str], str]] = [
        ({}, ""),
        ({"Authorization": "Bearer wrong"}, ""),
        ({"Authorization": f"Basic {TOKEN}"}, ""),
        ({"Authorization": "Bearer "}, ""),
        ({}, "?token="),
        (BEARER, "-not-there"),
        (BEARER, "%00"),
    ]
    answers = set()
    for method in ("POST", "OPTIONS"):
        for headers, path in wrong:
            status, said, got = await opened.ask(cloud(SCALE_SET), headers, url=opened.url + path, method=method)
            answers.add((status, said, tuple(sorted(name for name in got if name != "Date"))))
    assert len(answers) == 1
    assert answers.pop()[:2] == (401, "no service of this name takes this token\n")
    assert await woken(station) == ""


@LOCALLY
async def test_a_service_without_notifications_takes_no_token(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await served(station, arm)
        async with door(station) as opened:
            assert await opened.tell(SCALE_SET) == 401


@LOCALLY
async def test_a_new_token_counts_and_the_old_one_no_more(station: Station, opened: Door) -> None:
    await station.secret("told", token="another one")
    async with asyncio.timeout(20):
        while await opened.tell(headers={"Authorization": "Bearer another one"}) != 200:  # until the watch brings it
            pass
    assert await opened.tell() == 401


@LOCALLY
async def test_a_subscription_with_a_wrong_token_fails(opened: Door, arm: ArmEmulator) -> None:
    for form in ("event-grid", "cloud-events"):
        with pytest.raises(HandshakeFailed):
            await arm.subscribe(opened.url, form, {"Authorization": "Bearer wrong"})  # type: ignore[arg-type]


@LOCALLY
async def test_an_origin_is_given_leave_and_a_rate(opened: Door) -> None:
    asked = {"WebHook-Request-Origin": "events.example.com", "WebHook-Request-Rate": "120"}
    status, _, got = await opened.ask(headers={**BEARER, **asked}, method="OPTIONS")
    said = (status, got["WebHook-Allowed-Origin"], got["WebHook-Allowed-Rate"])
    assert said == (200, "events.example.com", "120")
    assert (await opened.ask(headers=BEARER, method="OPTIONS"))[0] == 400


@LOCALLY
async def test_tokens_are_in_no_log(station: Station, arm: ArmEmulator) -> None:
    with logged() as lines:
        async with station.working():
            await told_of(station, arm)
            async with door(station) as opened:
                await arm.subscribe(opened.url, "event-grid", BEARER)
                await opened.tell(SCALE_SET, url=f"{opened.url}?token={TOKEN}", headers={})
                await opened.tell(SCALE_SET, headers={"Authorization": "Bearer wrong-guess"})
    assert "let in" in str(lines)
    assert TOKEN not in str(lines)
    assert "wrong-guess" not in str(lines)


# --- what is told ----------------------------------------------------------------------------------------------------------


@LOCALLY
async def test_an_event_wakes_what_it_names_in_whatever_case(station: Station, opened: Door, arm: ArmEmulator) -> None:
    assert await opened.tell(SCALE_SET.upper() + "/") == 200
    assert await woken(station)
    assert await woken(station, "ResourceGroup", "web") == ""
    await station.leap(2)
    first = await woken(station)
    assert await opened.tell(f"{arm.url}{SCALE_SET}?api-version=1") == 200
    assert await woken(station) != first


@LOCALLY
async def test_an_event_of_what_has_no_object_wakes_the_nearest_above_it(station: Station, opened: Door) -> None:
    assert await opened.tell(f"{SCALE_SET}/virtualMachines/0/networkInterfaces/nic") == 200
    assert await woken(station)
    assert await woken(station, "ResourceGroup", "web") == ""
    assert await opened.tell(f"{GROUP}/providers/Microsoft.Network/virtualNetworks/new") == 200
    assert await woken(station, "ResourceGroup", "web")


@LOCALLY
async def test_what_no_object_stands_for_is_taken_and_forgotten(station: Station, opened: Door) -> None:
    strange = ("/", "/" * 100, "/subscriptions/other" + "/a" * 900, f"https://elsewhere.example.com{SCALE_SET}")
    for subject in strange:
        assert (await opened.ask(cloud(subject)))[:2] == (200, "nothing to keep\n")
    assert await woken(station) == ""
    assert await woken(station, "ResourceGroup", "web") == ""


GRID = {"eventType": "Microsoft.Resources.ResourceWriteSuccess"}


@pytest.mark.parametrize(
    ("event", "subjects"),
    [
        (cloud("/a"), ("/a",)),
        (cloud("", data={"resourceUri": "/a"}), ("/a",)),
        (cloud("not a path", resourceUri="/a"), ("/a",)),
        ({**GRID, "subject": "/a", "data": {"resourceUri": "/b"}}, ("/a",)),
        ({**GRID, "data": {"resourceUri": "/b"}}, ("/b",)),
        ([cloud("/a"), {**GRID, "subject": "/b"}, cloud("/a")], ("/a", "/b")),
        ({"eventType": "Microsoft.Storage.BlobCreated", "subject": "/a"}, ()),
        ({"eventType": "Microsoft.EventGrid.SubscriptionDeletedEvent", "subject": "/a"}, ()),
        ({"subject": "/a"}, ()),
        (cloud("blobs/x"), ()),
        (cloud("/" + "x" * 3000), ()),
        ({"specversion": 7, "type": ["a"], "subject": {}, "data": []}, ()),
        ([], ()),
    ],
)
def test_an_event_says_which_resource_changed(event: Any, subjects: tuple[str, ...]) -> None:
    assert told("application/json", {}, json.dumps(event).encode()) == Told(subjects=subjects)


@pytest.mark.parametrize(
    ("headers", "body", "media_type", "subject"),
    [
        ({"ce-subject": "/a%20b"}, b"text", "text/plain", "/a b"),
        ({}, b'{"resourceUri": "/a"}', "application/json", "/a"),
        ({"ce-subject": "/a"}, b"", "application/octet-stream", "/a"),
    ],
)
def test_an_event_may_come_in_headers(headers: dict[str, str], body: bytes, media_type: str, subject: str) -> None:
    named = {"ce-specversion": "1.0", "ce-type": "lab.changed", "ce-source": "/lab", "ce-id": "1"}
    assert told(media_type, {**named, **headers}, body) == Told(subjects=(subject,))


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"<html>", "application/json", 400),
        (b"", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"7", "application/json", 400),
        (b"[[]]", "application/json", 400),
        (b"{}", BATCH, 400),
        (b"[]", "application/cloudevents+json", 400),
        (b"{}", "text/html", 415),
        (json.dumps([{}] * (MAX_EVENTS + 1)).encode(), "application/json", 413),
        (b'[{"eventType": "Microsoft.EventGrid.SubscriptionValidationEvent"}]', "application/json", 400),
    ],
)
def test_garbage_is_refused(body: bytes, media_type: str, status: int) -> None:
    with pytest.raises(Refused) as refused:
        told(media_type, {}, body)
    assert refused.value.status == status


# --- too much --------------------------------------------------------------------------------------------------------------


@LOCALLY
async def test_garbage_is_answered_and_the_door_stays_open(opened: Door) -> None:
    assert (await opened.ask(b"<html>"))[0] == 400
    assert (await opened.ask(b" " * (MAX_BYTES + 1)))[0] == 413
    assert await opened.tell() == 200


async def test_a_burst_is_two_wakes(station: Station, opened: Door) -> None:
    assert await opened.tell(*[SCALE_SET] * 500) == 200
    first = await woken(station)
    for _ in range(5):
        assert await opened.tell(SCALE_SET, f"{SCALE_SET}/virtualMachines/1") == 200
    assert await woken(station) == first
    await station.leap(1.1)
    await station.until(KIND, "front", lambda d: d["metadata"]["annotations"][WAKE] != first)


@LOCALLY
async def test_a_flood_is_told_to_wait(station: Station, opened: Door) -> None:
    answers: list[int] = []
    while len(answers) < 4 * BURST and 429 not in answers:
        answers += await asyncio.gather(*(opened.tell(SCALE_SET) for _ in range(20)))
    assert set(answers) == {200, 429}
    await station.leap(60)
    assert await opened.tell(SCALE_SET) == 200


@LOCALLY
async def test_an_event_costs_one_write_and_no_read(station: Station, arm: ArmEmulator) -> None:
    client, tap = tapped(station.client)
    async with station.working():
        await told_of(station, arm)
        async with door(station, client) as opened:
            await opened.tell()
            before = len(tap.calls)
            await opened.tell(SCALE_SET, f"{GROUP}/providers/Microsoft.Network/virtualNetworks/new", "/else")
            after = [(call.method, call.path.rpartition("/")[2]) for call in tap.calls[before:]]
    assert sorted(after) == [("PATCH", "front"), ("PATCH", "web")]


@LOCALLY
async def test_what_waits_to_be_woken_is_woken_at_the_end(station: Station, arm: ArmEmulator) -> None:
    async with station.working():
        await told_of(station, arm)
        async with door(station) as opened:
            await opened.tell(SCALE_SET)
            first = await woken(station)
            await opened.tell(SCALE_SET)
        assert await woken(station) != first


class Flaky(Tap):
    """Nothing gets through while it is `down`."""

    down = False

    async def call(self, call: Call) -> Reply:
        if self.down:
            raise Unreachable("gone for a moment")
        return await super().call(call)


@LOCALLY
async def test_a_wake_that_fails_is_told_again(station: Station, opened: Door) -> None:
    tap = Flaky(station.client.transport)
    waker = Waker(ApiClient(tap, station.client.scheme), station.clock)
    target = Target(f"{station.group}/v1", KIND, station.namespace, "front")
    tap.down = True
    with pytest.raises(OSError, match="moment"):
        await waker.wake([target])
    tap.down = False
    await waker.wake([target])
    assert await woken(station)


@LOCALLY
async def test_an_object_that_is_gone_is_nobody_to_wake(station: Station, opened: Door) -> None:
    waker = Waker(station.client, station.clock)
    await waker.wake([Target(f"{station.group}/v1", KIND, station.namespace, "gone")])
    await waker.close()
    assert await woken(station) == ""
