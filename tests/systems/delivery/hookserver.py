"""A server that webhooks reach: it writes down what it is asked, and answers what the test says."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from tests.systems.delivery.hours import Busy


class HookServer:
    """`no` are the points at which it refuses; it agrees to a rollback only when `back` is set."""

    def __init__(self, busy: Busy) -> None:
        self._busy, self._runner, self._port = busy, web.AppRunner(_application(self._counted)), 0
        self.asked: list[dict[str, Any]] = []
        self.no: set[str] = set()
        self.back = False
        self._heard = asyncio.Condition()

    def hooks(self, *points: str) -> list[dict[str, Any]]:
        """Webhooks of an analysis that lead here."""
        url = f"http://127.0.0.1:{self._port}/"
        return [{"name": point.lower(), "type": point, "url": url, "timeout": "2s"} for point in points]

    def points(self) -> list[str]:
        return [each["type"] for each in self.asked]

    async def until(self, times: int) -> None:
        """It was asked so often."""
        async with self._heard:
            await self._heard.wait_for(lambda: len(self.asked) >= times)

    async def __aenter__(self) -> HookServer:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    async def _counted(self, request: web.Request) -> web.Response:
        with self._busy.at_work():
            said = await request.json()
            async with self._heard:
                self.asked.append(said)
                self._heard.notify_all()
            agreed = self.back if said["type"] == "Rollback" else said["type"] not in self.no
            return web.Response(status=200 if agreed else 409, text="" if agreed else "not now")


def _application(handler: Any) -> web.Application:
    application = web.Application()
    application.router.add_post("/", handler)
    return application
