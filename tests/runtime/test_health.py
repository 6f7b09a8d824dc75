"""The health server, asked over real connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from prometheus_client.core import Metric

from trimtab.runtime.health import HEAD_TIMEOUT, MAX_CONNECTIONS, MAX_REQUEST, Check, HealthServer
from trimtab.runtime.metrics import CONTENT_TYPE, Metrics

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str


async def ask(server: HealthServer, target: str, method: str = "GET") -> Answer:
    return parsed(await send(server, f"{method} {target} HTTP/1.1\r\nHost: here\r\n\r\n".encode()))


async def send(server: HealthServer, request: bytes) -> bytes:
    """These bytes; and everything that comes back until the server hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(request)
        return await reader.read()
    except ConnectionError:  # cut off in the middle
        return b""
    finally:
        writer.close()


def parsed(answer: bytes) -> Answer:
    head, _, body = answer.decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return Answer(int(first.split()[1]), headers, body)


def fine() -> None:
    pass


async def fine_later() -> None:
    await asyncio.sleep(0)


def broken() -> None:
    raise RuntimeError("the cache is not in sync")


@pytest.fixture
def ready() -> dict[str, Check]:
    return {"leader": fine, "cache": fine_later}


@pytest.fixture
async def server(ready: dict[str, Check]) -> AsyncIterator[HealthServer]:
    async with HealthServer(ready=ready, metrics=Metrics()) as server:
        yield server


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/healthz/", "/healthz/ping", "/readyz/cache", "/readyz?x=1"])
async def test_a_healthy_process_answers_ok(server: HealthServer, path: str) -> None:
    answer = await ask(server, path)

    assert (answer.status, answer.body) == (200, "ok")


async def test_verbose_lists_the_checks_by_name(server: HealthServer) -> None:
    assert (await ask(server, "/readyz?verbose")).body == "[+]cache ok\n[+]leader ok\nreadyz check passed\n"
    assert (await ask(server, "/healthz?verbose")).body == "[+]ping ok\nhealthz check passed\n"


async def test_a_failed_check_is_500_and_listed_without_its_reason(
    server: HealthServer, ready: dict[str, Check]
) -> None:
    ready["cache"] = broken

    answer = await ask(server, "/readyz")

    assert answer.status == 500
    assert answer.body == "[-]cache failed: reason withheld\n[+]leader ok\nreadyz check failed\n"


async def test_a_check_asked_alone_tells_its_reason(server: HealthServer, ready: dict[str, Check]) -> None:
    ready["cache"] = broken

    answer = await ask(server, "/readyz/cache")

    assert (answer.status, answer.body) == (500, "internal server error: the cache is not in sync\n")


async def test_readiness_does_not_touch_health(server: HealthServer, ready: dict[str, Check]) -> None:
    ready["cache"] = broken

    assert (await ask(server, "/healthz")).status == 200


async def test_a_check_can_be_left_out(server: HealthServer, ready: dict[str, Check]) -> None:
    ready["cache"] = broken

    answer = await ask(server, "/readyz?verbose&exclude=cache&exclude=nothing")

    assert answer.status == 200
    assert answer.body.splitlines() == [
        "[+]cache excluded: ok",
        "[+]leader ok",
        'warn: some health checks cannot be excluded: no matches for "nothing"',
        "readyz check passed",
    ]


async def test_a_check_that_hangs_fails() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    async with HealthServer(checks={"stuck": hang}, timeout=0.3) as server:
        assert (await ask(server, "/healthz")).status == 500
        assert "no answer within 0.3 s" in (await ask(server, "/healthz/stuck")).body


async def test_metrics_are_served_as_prometheus_reads_them(server: HealthServer) -> None:
    answer = await ask(server, "/metrics")

    assert (answer.status, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    assert "# TYPE workqueue_depth gauge\n" in answer.body


async def test_a_collector_that_breaks_is_500_and_the_server_lives() -> None:
    class Broken:
        def collect(self) -> list[Metric]:
            raise RuntimeError("no numbers")

        def describe(self) -> list[Metric]:
            return []

    metrics = Metrics()
    metrics.registry.register(Broken())
    async with HealthServer(metrics=metrics) as server:
        assert (await ask(server, "/metrics")).status == 500
        assert (await ask(server, "/healthz")).status == 200


async def test_without_metrics_there_is_no_such_page() -> None:
    async with HealthServer() as server:
        assert (await ask(server, "/metrics")).status == 404


@pytest.mark.parametrize("path", ["/", "/nothing", "/healthz/unknown", "/metrics/more"])
async def test_other_pages_are_not_found(server: HealthServer, path: str) -> None:
    assert (await ask(server, path)).status == 404


async def test_head_answers_without_a_body(server: HealthServer) -> None:
    answer = await ask(server, "/healthz", "HEAD")

    assert (answer.status, answer.headers["content-length"], answer.body) == (200, "2", "")


async def test_only_reading_is_served(server: HealthServer) -> None:
    assert (await ask(server, "/healthz", "POST")).status == 405


@pytest.mark.parametrize("request_line", [b"nonsense", b"GET /healthz", b"GET /healthz SPDY/3", b"GET //[ HTTP/1.1"])
async def test_what_is_not_http_is_a_bad_request(server: HealthServer, request_line: bytes) -> None:
    assert parsed(await send(server, request_line + b"\r\n\r\n")).status == 400


async def test_a_request_that_is_too_large_is_cut_off(server: HealthServer) -> None:
    request = b"GET /healthz HTTP/1.1\r\nCookie: " + b"x" * MAX_REQUEST * 2 + b"\r\n\r\n"

    assert await send(server, request) == b""
    assert (await ask(server, "/healthz")).status == 200


async def test_a_request_that_never_ends_is_cut_off_in_time() -> None:
    async with HealthServer(timeout=0.3) as server:
        assert await send(server, b"GET /healthz HTTP/1.1\r\n") == b""


async def test_the_head_of_a_request_has_less_time_than_its_checks() -> None:
    async with HealthServer(timeout=60) as server, asyncio.timeout(2 * HEAD_TIMEOUT):
        assert await send(server, b"GET /healthz HTTP/1.1\r\n") == b""


@contextlib.asynccontextmanager
async def slow(server: HealthServer, count: int) -> AsyncIterator[list[Connection]]:
    """Connections that begin a request and do not end it."""
    opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(count)]
    for _, writer in opened:
        writer.write(b"GET /healthz HTTP/1.1\r\n")
    yield opened
    for _, writer in opened:
        writer.close()


async def test_every_probe_is_answered_however_many_slow_connections_are_open(server: HealthServer) -> None:
    async with slow(server, MAX_CONNECTIONS + 100):
        answers = [await ask(server, "/healthz") for _ in range(12)]
        answers += await asyncio.gather(*(ask(server, "/readyz") for _ in range(12)))
        assert [answer.status for answer in answers] == [200] * 24


async def test_of_too_many_connections_the_one_that_waits_longest_is_closed(server: HealthServer) -> None:
    async with slow(server, MAX_CONNECTIONS) as opened:
        assert (await ask(server, "/healthz")).status == 200
        (first, _), *others = opened
        assert await first.read() == b""
        for _, writer in others:
            writer.write(b"\r\n")
        assert all([b"200 OK" in await reader.read() for reader, _ in others])


async def test_who_is_being_answered_does_not_make_room() -> None:
    running, enough = asyncio.Event(), asyncio.Event()

    async def check() -> None:
        running.set()
        await enough.wait()

    async with HealthServer(checks={"slow": check}) as server:
        asking = asyncio.create_task(ask(server, "/healthz"))
        await running.wait()
        async with slow(server, MAX_CONNECTIONS + 1):
            assert (await ask(server, "/readyz")).status == 200
            enough.set()
            assert (await asking).status == 200


async def test_leaving_closes_the_port_and_the_connections_on_it() -> None:
    async with HealthServer() as server:
        port = server.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await ask(server, "/healthz")  # so the first one has been accepted

    assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_it_listens_on_loopback_unless_told(server: HealthServer) -> None:
    assert server._server is not None
    assert server._server.sockets[0].getsockname()[0] == "127.0.0.1"


def test_a_server_that_does_not_run_has_no_port() -> None:
    with pytest.raises(RuntimeError, match="not running"):
        _ = HealthServer().port
