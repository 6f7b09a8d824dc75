"""A server with the part of Prometheus' HTTP API that analysis uses, whose counters a test sets: for what a real one takes
minutes to show, and for what it never does. Each second of the test's clock is a scrape."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.systems.delivery.hours import Busy


class Gauge:
    """`rates` are requests a second of a workload, and the share of them that fails."""

    def __init__(self, clock: Any, busy: Busy) -> None:
        self._clock, self._busy, self._port = clock, busy, 0
        self._runner: web.AppRunner | None = None
        self.rates: Callable[[str], tuple[float, float]] = lambda workload: (10.0, 0.0)
        self.down = False
        self._bursts: dict[str, tuple[float, int]] = {}
        self.queries: list[str] = []
        self.answer: Callable[[str], Any] | None = None
        self._began = clock.now().timestamp()

    def burst(self, workload: str, errors: int) -> None:
        """So many requests fail now, at once."""
        self._bursts[workload] = (self._clock.now().timestamp() + 1, errors)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        if self._runner is not None:
            return
        application = web.Application()
        application.router.add_route("*", "/api/v1/query", self._counted)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _counted(self, request: web.Request) -> web.Response:
        with self._busy.at_work():
            return await self._query(request)

    async def _query(self, request: web.Request) -> web.Response:
        form = {**request.query, **(await request.post() if request.method == "POST" else {})}
        query, at = str(form["query"]), float(str(form.get("time") or self._clock.now().timestamp()))
        self.queries.append(query)
        if self.down:
            return web.json_response({"status": "error", "errorType": "x", "error": "down"}, status=503)
        if self.answer is not None:
            return web.json_response({"status": "success", "data": self.answer(query)})
        now = re.match(r"^[^\[]+\}( or |$)", query)  # the samples of one moment, not of a range
        series = self._raw(query if not now else f"{query.partition('}')[0]}}}[5m]", at)
        if not now:
            data = {"resultType": "matrix", "result": series}
        else:
            last = [{"metric": each["metric"], "value": each["values"][-1]} for each in series]
            data = {"resultType": "vector", "result": last}
        return web.json_response({"status": "success", "data": data})

    def _raw(self, query: str, at: float) -> list[Any]:
        workload = re.search(r'destination_workload="([^"]+)"', query)
        seconds = re.search(r"\[(\d+(?:\.\d+)?)(ms|s|m)\]", query)
        if not workload or not seconds:
            return []
        length = float(seconds[1]) * {"ms": 0.001, "s": 1, "m": 60}[seconds[2]]
        rate, failing = self.rates(workload[1])
        times = [t for t in range(int(at - length) + 1, int(at) + 1) if t >= self._began - 5]
        made = []
        for code, share in (("200", 1 - failing), ("500", failing)):
            burst, errors = self._bursts.get(workload[1], (0.0, 0)) if code == "500" else (0.0, 0)
            values = [
                [t, str(int((t - self._began + 10) * rate * share) + (errors if t >= burst else 0))] for t in times
            ]
            labels = {"__name__": "istio_requests_total", "reporter": "source", "response_code": code}
            if values and (share or errors or code == "200"):
                made.append({"metric": labels, "values": values})
        return made if rate else []
