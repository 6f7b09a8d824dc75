"""What services tell of changes: the ARM emulator tells it, on both API servers; whoever else comes learns nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiohttp
import pytest

from tests.runtime.widgets import logged
from tests.systems.rest.arm_kit import DOCUMENT, GROUP, KIND, SCALE_SET, scale_set, served, writes
from tests.systems.rest.station import Station
from trimtab.client.protocol import Query
from trimtab.lab.arm import INSTANT, ArmEmulator, HandshakeFailed
from trimtab.model.scheme import Untyped
from trimtab.runtime.credentials import Credentials
from trimtab.systems.rest.listening import Listener
from trimtab.systems.rest.listening.events import MAX_EVENTS
from trimtab.systems.rest.listening.listener import BURST, MAX_BYTES
from trimtab.systems.rest.reconciling.subject import WAKE

TOKEN = "a-token-that-nobody-guesses"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


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
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
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
async def door(station: Station) -> AsyncIterator[Door]:
    """Open, with the token in its Secret. The station's service must be there."""
    async with Credentials(station.client) as credentials:
        listener = Listener(station.client, credentials, clock=station.clock, objects=Query(namespace=station.namespace))
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


@pytest.mark.parametrize("form", ["event-grid", "cloud-events"])
async def test_drift_that_a_service_tells_of_is_corrected_at_once(
    station: Station, arm: ArmEmulator, form: Literal["event-grid", "cloud-events"]
) -> None:
    async with station.working():
        await told_of(station, arm)
        async with door(station) as opened:
            await arm.subscribe(opened.url, form, BEARER)
            arm.scale(SCALE_SET, 9)
            await station.until(KIND, "front", lambda d: d["status"]["sync"].get("corrected"))
            await station.ready(KIND, "front")
            await arm.events.sent()
    assert arm.events.refused == 0
    assert writes(arm)[1:] == [("PATCH", {"sku": {"capacity": 3}})]
