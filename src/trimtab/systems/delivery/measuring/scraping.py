"""A data plane, scraped by ourselves: for where there is no Prometheus.

Flow: from the first use a task scrapes every second and keeps the raw samples of the counters that are asked for, in
memory and bounded, until nobody has asked for a while.

Guarantees: a window that began before the first scrape, or in a gap of them, is WindowLost and never a count: after a
restart there is no past. Samples carry the moment when they were asked for.

Caveat: use it before a window begins (`begin`), or the first window is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import urlsplit

from trimtab.model.clock import Clock, SystemClock
from trimtab.runtime.outbound import Budget, HostPin, Limits, Outbound, OutboundError
from trimtab.systems.delivery.measuring import exposition
from trimtab.systems.delivery.measuring.contract import Point, Series, SourceError, Window, WindowLost
from trimtab.systems.delivery.measuring.keeping import Kept
from trimtab.systems.delivery.measuring.names import DURATION_BUCKETS, REQUESTS

INTERVAL = 1.0
SHARE = 0.1
"""Of the time may go into reading what was scraped; else it is scraped less often."""
KEPT, MOST_KEPT = 600.0, 7200.0
"""Seconds of samples. As many are kept as the longest window needs, within the bound."""
MOST_BYTES = 16 * 1024 * 1024
TIMEOUT = 5.0


class ScrapeSource:
    """Scrapes while it is used, and until it is closed."""

    def __init__(
        self,
        url: str,
        *,
        names: frozenset[str] = frozenset({REQUESTS, DURATION_BUCKETS}),
        interval: float = INTERVAL,
        clock: Clock | None = None,
    ) -> None:
        try:
            parts = urlsplit(url)
            self._host = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
        except ValueError:
            raise SourceError("the address of the data plane's metrics is no URL") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SourceError("the address of the data plane's metrics is no http or https URL")
        self.url, self._names, self._interval = url, names, interval
        self._clock = clock or SystemClock()
        self._outbound = Outbound(
            Budget(rate=1000, burst=1000, attempts=1),
            host_pin=HostPin(hosts=(parts.hostname,)),
            limits=Limits(total=TIMEOUT, connect=TIMEOUT, read=TIMEOUT, body=MOST_BYTES),
        )
        self._kept = Kept()
        self._keep = KEPT
        self._failure = ""
        self._task: asyncio.Task[None] | None = None
        self._first = asyncio.Event()
        self._used_at = self._clock.monotonic()
        self._closed = False

    def begin(self, length: float = 0.0) -> None:
        """Scrape from now on. Who will want a window says so before it begins, and how long it may be (seconds)."""
        self._used_at = self._clock.monotonic()
        self._keep = min(MOST_KEPT, max(self._keep, 2 * length))
        if self._closed:
            raise SourceError("the source of metrics is closed")
        if self._task is None or self._task.done():
            self._first.clear()
            self._task = asyncio.create_task(self._scrape_on())

    async def counters(self, name: str, labels: Mapping[str, str], window: Window) -> Sequence[Series]:
        start, end = window.start.timestamp(), window.end.timestamp()
        self.begin(end - start)
        await self._first.wait()
        patience = max(5.0, 3 * self._interval)
        if not self._kept.times or self._kept.times[-1] < end - patience:
            raise SourceError(f"the metrics of the data plane at {self._host} cannot be had: {self._failure}")
        if not self._kept.covers(start, patience):
            raise WindowLost("no samples since the start of the window: the data plane was not being scraped then")
        return self._kept.series(name, labels, start, end)

    async def query(self, promql: str, at: datetime) -> Sequence[Point]:
        raise SourceError("a query needs a Prometheus: set analysis.prometheus.address or --prometheus")

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._outbound.close()

    def __repr__(self) -> str:
        return f"ScrapeSource({self._host})"

    async def _scrape_on(self) -> None:
        try:
            while self._clock.monotonic() - self._used_at < self._keep:
                begun = self._clock.monotonic()
                cost = await self._scrape()
                self._first.set()
                took = self._clock.monotonic() - begun
                await self._clock.sleep(max(self._interval - took, cost / SHARE))
        finally:
            self._first.set()  # nobody waits for one that is gone

    async def _scrape(self) -> float:
        """Seconds that reading it took."""
        moment = self._clock.now().timestamp()
        try:
            response = await self._outbound.fetch(
                "GET", self.url, headers={"Accept": "text/plain;version=0.0.4;q=1,*/*;q=0.1"}
            )
            if not response.ok:
                raise SourceError(f"it answered {response.status}")
            begun = self._clock.monotonic()
            self._kept.take(moment, (await response.read()).decode(errors="replace"), self._names)
        except OutboundError as error:
            self._failure = str(error).removeprefix(f"{error.method} {error.url}: ")
            return 0.0
        except (SourceError, exposition.Malformed) as error:
            self._failure = str(error)
            return 0.0
        self._failure = ""
        self._kept.forget(moment - self._keep)
        return self._clock.monotonic() - begun
