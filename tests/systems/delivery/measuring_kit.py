"""What tests of measuring share: counters that a test sets, served for a real Prometheus; and servers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.needs import needs
from trimtab.lab.prometheus import Prometheus, job
from trimtab.systems.delivery.measuring.contract import Target, Window
from trimtab.systems.delivery.measuring.names import DURATION_BUCKETS, REQUESTS
from trimtab.testing.ports import free_ports

EPOCH = datetime(2026, 11, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def window(start: float, end: float) -> Window:
    return Window(at(start), at(end))


def target_of(namespace: str) -> Target:
    return Target(namespace=namespace, name="web", canary="web-canary", stable="web", service="web")


class Counters:
    """A process with counters. `restart` sets all to nothing, as a new process would have it; one that is `broken` answers
    500."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._scrapes = 0
        self.broken = False
        self.prometheus: str | None = None
        self._changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = outer._served()
                self.send_response(500 if outer.broken else 200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # it was too slow for the scraper
                    self.wfile.write(body)

            def log_message(self, format: str, *values: Any) -> None:  # noqa: A002 - its name in the library
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.address}/metrics"

    def add(self, amount: float, name: str = REQUESTS, **labels: str) -> None:
        with self._changed:
            written = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
            series = f"{name}{{{written}}}"
            self._values[series] = self._values.get(series, 0.0) + amount

    def requests(self, amount: float, namespace: str, workload: str, code: str = "200", **labels: str) -> None:
        labels = {"reporter": "source", "response_code": code, **labels}
        self.add(amount, destination_workload_namespace=namespace, destination_workload=workload, **labels)

    def durations(self, amounts: dict[str, float], namespace: str, workload: str, reporter: str = "source") -> None:
        """Cumulative, by upper bound."""
        for bound, amount in amounts.items():
            self.add(
                amount,
                DURATION_BUCKETS,
                le=bound,
                reporter=reporter,
                destination_workload_namespace=namespace,
                destination_workload=workload,
            )

    def restart(self) -> None:
        with self._changed:
            self._values.clear()

    async def scraped(self) -> None:
        """All that was set is in the scraper's store: a scrape began after it, and the next one after that. A Prometheus
        is asked whether it got it, too: it gives up on one that takes long."""
        await asyncio.to_thread(self._wait)

    def _wait(self) -> None:
        with self._changed:
            wanted = self._scrapes + 1
        seen = wanted
        while True:
            seen += 1
            with self._changed:
                assert self._changed.wait_for(lambda seen=seen: self._scrapes >= seen, timeout=20), "nobody scrapes"
            if self.broken or self.prometheus is None or self._stored() >= wanted:
                return

    def _stored(self) -> float:
        """The number of the last scrape that the Prometheus took."""
        with urllib.request.urlopen(f"{self.prometheus}/api/v1/query?query=test_scrapes", timeout=10) as answer:
            result = json.load(answer)["data"]["result"]
        return float(result[0]["value"][1]) if result else 0.0

    def _served(self) -> bytes:
        with self._changed:
            self._scrapes += 1
            self._changed.notify_all()
            written = "".join(f"{series} {value}\n" for series, value in self._values.items())
            return f"{written}test_scrapes {self._scrapes}\n".encode()

    def __enter__(self) -> Counters:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextlib.contextmanager
def scraping_prometheus(directory: Path, interval: str = "50ms") -> Iterator[tuple[Prometheus, Counters]]:
    """A real Prometheus, and the counters that it scrapes."""
    needs("prometheus")
    with (
        Counters() as counters,
        Prometheus(directory, *free_ports(1), [job("test", counters.address, interval=interval)]) as prometheus,
    ):
        counters.prometheus = prometheus.url
        yield prometheus, counters


Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def answering(answer: Answering, ssl_context: Any = None) -> AsyncIterator[str]:
    """A server that answers everything so; its URL."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl_context)
    await site.start()
    try:
        yield f"{'https' if ssl_context else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def said(text: str, status: int = 200) -> Answering:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=text, status=status, content_type="application/json")

    return answer
