"""Word of changes from the ARM emulator: the handshakes, and the events in both forms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.lab.arm_calls import NETWORK, SET, calls, network, scale_set
from trimtab.lab.arm import Behaviour, HandshakeFailed

Heard = asyncio.Queue[tuple[str, dict[str, str], Any]]


@asynccontextmanager
async def listener(*, polite: bool = True) -> AsyncIterator[tuple[str, Heard]]:
    heard: Heard = asyncio.Queue()

    async def serve(request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        if request.method == "OPTIONS":
            return web.Response(headers={"WebHook-Allowed-Origin": "*"} if polite else {})
        body = await request.json()
        if headers.get("aeg-event-type") == "SubscriptionValidation":
            return web.json_response({"validationResponse": body[0]["data"]["validationCode"]} if polite else {})
        heard.put_nowait((request.path, headers, body))
        return web.Response()

    runner = web.ServerRunner(web.Server(serve), shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", heard
    finally:
        await runner.cleanup()


async def test_changes_are_told_in_the_schema_of_event_grid() -> None:
    async with listener() as (url, heard), calls() as call:
        await call.arm.subscribe(f"{url}/hook", headers={"X-Key": "k"})
        await call("PUT", SET, scale_set())
        await call("DELETE", SET)
        await call.arm.events.sent()
        path, headers, (event,) = heard.get_nowait()
        assert (path, headers["x-key"], headers["aeg-event-type"]) == ("/hook", "k", "Notification")
        assert (event["eventType"], event["subject"]) == ("Microsoft.Resources.ResourceWriteSuccess", SET)
        assert heard.get_nowait()[2][0]["eventType"] == "Microsoft.Resources.ResourceDeleteSuccess"
        assert heard.empty()


async def test_changes_are_told_as_cloud_events() -> None:
    async with listener() as (url, heard), calls() as call:
        await call.arm.subscribe(url, "cloud-events")
        call.arm.put(SET, scale_set())
        call.arm.scale(SET, 9)
        await call.arm.events.sent()
        events = [heard.get_nowait() for _ in range(2)]
        assert all(headers["content-type"].startswith("application/cloudevents+json") for _, headers, _ in events)
        assert {event["subject"] for _, _, event in events} == {SET}
        assert {event["specversion"] for _, _, event in events} == {"1.0"}


async def test_a_change_that_takes_long_is_told_of_when_it_is_done() -> None:
    async with listener() as (url, heard), calls(Behaviour()) as call:
        await call.arm.subscribe(url)
        await call("PUT", NETWORK, network())
        await call.arm.events.sent()
        assert heard.empty()
        call.arm.finish()
        await call.arm.events.sent()
        assert heard.get_nowait()[2][0]["subject"] == NETWORK


@pytest.mark.parametrize("form", ["event-grid", "cloud-events"])
async def test_who_does_not_shake_hands_is_told_nothing(form: Any) -> None:
    async with listener(polite=False) as (url, heard), calls() as call:
        with pytest.raises(HandshakeFailed):
            await call.arm.subscribe(url, form)
        await call("PUT", SET, scale_set())
        await call.arm.events.sent()
        assert heard.empty()


async def test_a_listener_that_went_away_does_not_stop_the_emulator() -> None:
    async with calls() as call:
        async with listener() as (url, _):
            await call.arm.subscribe(url)
        await call("PUT", SET, scale_set())
        await call.arm.events.sent()
        assert call.arm.events.refused == 1
