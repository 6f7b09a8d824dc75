"""The client towards the world, against real servers on loopback that do what servers do on bad days."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import math
import random
import socket
import ssl
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from trimtab.model.redacted import Redacted, bearer
from trimtab.runtime.outbound.budget import Budget
from trimtab.runtime.outbound.client import Limits, Outbound
from trimtab.runtime.outbound.errors import (
    BudgetSpent,
    NotAllowed,
    OutboundError,
    Refused,
    TimedOut,
    TlsFailed,
    TooLarge,
    Unreachable,
    Unreadable,
)
from trimtab.runtime.outbound.pin import HostPin
from trimtab.runtime.outbound.tls import Tls, TlsError
from trimtab.testing.clock import FakeClock
from trimtab.testing.pki import Authority

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MIB = 1 << 20


class SkippingClock(FakeClock):
    """Nobody waits: whoever sleeps finds that the time has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._elapsed += seconds


class World:
    """A server whose answers a test gives; it keeps the requests."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.seen: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.answers: list[web.StreamResponse | Handler] = []
        self.otherwise: Handler = _ok

    def url(self, path: str = "/") -> str:
        return self.address + path

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        self.bodies.append(await request.read())
        answer = self.answers.pop(0) if self.answers else self.otherwise
        return answer if isinstance(answer, web.StreamResponse) else await answer(request)


async def _ok(request: web.Request) -> web.StreamResponse:
    return web.json_response({"path": request.path_qs})


async def _hang(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def _break_off(request: web.Request) -> web.StreamResponse:
    """Half a body, then a reset."""
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"half")
    assert request.transport is not None
    request.transport.abort()
    return response


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x" * 65536)


def _redirect(to: str, status: int = 302) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": to})

    return answer


async def _serve(context: ssl.SSLContext | None = None) -> tuple[World, web.AppRunner]:
    world = World("")
    app = web.Application(client_max_size=64 * MIB)
    app.router.add_route("*", "/{path:.*}", world.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    world.address = f"{'https' if context else 'http'}://localhost:{port}"
    return world, runner


class Names(AbstractResolver):
    """A DNS of the test's own: each question takes the next answer, the last one stays."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=0, flags=0)
            for address in found
        ]

    async def close(self) -> None:
        pass


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made, runner = await _serve()
    yield made
    await runner.cleanup()


@pytest.fixture
async def elsewhere() -> AsyncIterator[World]:
    made, runner = await _serve()
    yield made
    await runner.cleanup()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def secure(authority: Authority) -> AsyncIterator[World]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.server("server"))
    made, runner = await _serve(context)
    yield made
    await runner.cleanup()


@pytest.fixture
def clock() -> SkippingClock:
    return SkippingClock()


@pytest.fixture
async def outbound(clock: SkippingClock) -> AsyncIterator[Outbound]:
    async with _outbound(clock) as made:
        yield made


def _outbound(clock: FakeClock | None = None, **options: Any) -> Outbound:
    return Outbound(clock=clock, chance=random.Random(1), **options)


# The answer


async def test_a_document_is_fetched(outbound: Outbound, world: World) -> None:
    assert await outbound.json("GET", world.url("/v2/?n=1")) == {"path": "/v2/?n=1"}


async def test_any_status_is_an_answer(outbound: Outbound, world: World) -> None:
    world.answers = [web.Response(status=404, text="no such tag")]
    async with outbound.request("GET", world.url()) as response:
        assert (response.status, await response.read()) == (404, b"no such tag")


async def test_json_wants_a_success(outbound: Outbound, world: World) -> None:
    world.answers = [web.Response(status=403, text="secret words")]
    with pytest.raises(Refused, match=r"the server answered 403$") as raised:
        await outbound.json("GET", world.url())
    assert (raised.value.status, raised.value.body) == (403, b"secret words")


async def test_an_empty_success_is_no_document(outbound: Outbound, world: World) -> None:
    world.answers = [web.Response(status=204)]
    assert await outbound.json("DELETE", world.url()) is None


async def test_what_is_no_json_is_told(outbound: Outbound, world: World) -> None:
    world.answers = [web.Response(text="<html>")]
    with pytest.raises(Unreadable, match="no JSON"):
        await outbound.json("GET", world.url())


async def test_a_mapping_is_sent_as_json(outbound: Outbound, world: World) -> None:
    await outbound.json("POST", world.url(), body={"a": 1})
    assert world.bodies == [b'{"a":1}']
    assert world.seen[0].headers["Content-Type"] == "application/json"


async def test_a_stream_is_sent_and_sent_again(outbound: Outbound, world: World) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    world.answers = [web.Response(status=503)]
    await outbound.json("PUT", world.url(), body=pieces)
    assert world.bodies == [b"one two", b"one two"]


async def test_a_secret_header_is_revealed_to_the_server_only(outbound: Outbound, world: World) -> None:
    await outbound.json("GET", world.url(), headers={"Authorization": bearer(Redacted("t0k"))})
    assert world.seen[0].headers["Authorization"] == "Bearer t0k"


async def test_user_and_password_of_a_url_become_a_header(outbound: Outbound, world: World) -> None:
    await outbound.json("GET", world.url("/x").replace("://", "://ann:pw@"))
    assert world.seen[0].headers["Authorization"] == "Basic YW5uOnB3"


async def test_the_environment_names_no_proxy(
    outbound: Outbound, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    assert await outbound.json("GET", world.url())


async def test_a_proxy_of_the_environment_is_used_when_asked_for(
    world: World, elsewhere: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", elsewhere.address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with _outbound(proxy_from_environment=True) as outbound:
        await outbound.json("GET", world.url())
    assert elsewhere.seen
    assert not world.seen


def test_a_proxy_and_the_address_check_cannot_be_had_together() -> None:
    with pytest.raises(ValueError, match="proxy"):
        Outbound(host_pin=HostPin(private=False), proxy_from_environment=True)


async def test_a_fetched_body_can_be_read_as_often_as_one_likes(outbound: Outbound, world: World) -> None:
    response = await outbound.fetch("GET", world.url())
    assert await response.read() == await response.read() == b"".join([piece async for piece in response.stream()])


# Bounds


async def test_an_endless_body_is_cut(outbound: Outbound, world: World) -> None:
    world.answers = [_endless]
    async with outbound.request("GET", world.url()) as response:
        with pytest.raises(TooLarge, match=r"over 1000000 bytes"):
            await response.read(1_000_000)


async def test_a_body_that_announces_too_much_is_not_read(outbound: Outbound, world: World) -> None:
    world.answers = [web.Response(body=b"x" * 2000)]
    with pytest.raises(TooLarge):
        await outbound.fetch("GET", world.url(), max_bytes=1000)


async def test_a_stream_gives_what_came_before_it_was_too_large(outbound: Outbound, world: World) -> None:
    world.answers = [_endless]
    pieces: list[bytes] = []

    async def take() -> None:
        async with outbound.request("GET", world.url()) as response:
            async for piece in response.stream(5 * MIB):
                pieces.append(piece)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(TooLarge):
        await take()
    assert MIB < sum(map(len, pieces)) <= 5 * MIB


async def test_gzip_is_unpacked(outbound: Outbound, world: World) -> None:
    packed = gzip.compress(b"first ") + gzip.compress(b"second")
    world.answers = [web.Response(body=packed, headers={"Content-Encoding": "gzip"})]
    response = await outbound.fetch("GET", world.url())
    assert await response.read() == b"first second"


async def test_gzip_that_the_caller_asked_for_stays_packed(outbound: Outbound, world: World) -> None:
    packed = gzip.compress(b"layer")
    world.answers = [web.Response(body=packed, headers={"Content-Encoding": "gzip"})]
    response = await outbound.fetch("GET", world.url(), headers={"Accept-Encoding": "gzip"})
    assert await response.read() == packed


async def test_a_gzip_bomb_is_found_before_it_is_there(outbound: Outbound, world: World) -> None:
    bomb = gzip.compress(bytes(200 * MIB), compresslevel=1)
    world.answers = [web.Response(body=bomb, headers={"Content-Encoding": "gzip"})]
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            await outbound.fetch("GET", world.url(), max_bytes=2 * MIB)
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


async def test_broken_gzip_is_told(outbound: Outbound, world: World) -> None:
    world.answers = [web.Response(body=b"not gzip", headers={"Content-Encoding": "gzip"})]
    with pytest.raises(Unreadable, match="no gzip"):
        await outbound.fetch("GET", world.url())


async def test_gzip_that_breaks_off_is_told(world: World) -> None:
    packed = gzip.compress(random.Random(1).randbytes(5000))[:-100]
    world.answers = [web.Response(body=packed, headers={"Content-Encoding": "gzip"})]
    async with _outbound(budget=Budget(attempts=1)) as outbound:
        with pytest.raises(Unreachable, match="broke off"):
            await outbound.fetch("GET", world.url())


# Time


async def test_a_server_that_hangs_is_given_up(outbound: Outbound, world: World) -> None:
    world.answers = [_hang]
    with pytest.raises(TimedOut, match="the time for it is over"):
        await outbound.fetch("GET", world.url(), timeout=0.05)
    assert len(world.seen) == 1


async def test_silence_is_retried(clock: SkippingClock, world: World) -> None:
    world.answers = [_hang]
    async with _outbound(clock, limits=Limits(read=0.05)) as outbound:
        assert await outbound.json("GET", world.url())
    assert len(world.seen) == 2


async def test_a_body_that_falls_silent_is_given_up(clock: SkippingClock, world: World) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"a beginning")
        return await _hang(request)

    world.answers = [silent]
    async with (
        _outbound(clock, limits=Limits(read=0.05)) as outbound,
        outbound.request("GET", world.url(), timeout=math.inf) as response,
    ):
        with pytest.raises(TimedOut, match="fell silent"):
            await response.read()


async def test_a_connection_that_does_not_come_about_is_given_up(clock: SkippingClock) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        try:
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(address)  # the queue of the server is full now
            async with _outbound(clock, limits=Limits(connect=0.05)) as outbound:
                with pytest.raises(TimedOut, match="no connection") as raised:
                    await outbound.fetch("POST", f"http://127.0.0.1:{address[1]}/")
        finally:
            for one in waiting:
                one.close()
    assert not raised.value.sent
    assert len(clock.slept) == 3


# Retries


async def test_a_storm_of_503_is_outlived(outbound: Outbound, world: World, clock: SkippingClock) -> None:
    world.answers = [web.Response(status=503), web.Response(status=502), web.Response(status=504)]
    assert await outbound.json("GET", world.url())
    first, second, third = clock.slept
    assert 0.1 <= first <= 0.2 <= second <= 0.4 <= third <= 0.8


async def test_a_storm_that_lasts_is_the_answer_in_the_end(outbound: Outbound, world: World) -> None:
    async def storm(request: web.Request) -> web.StreamResponse:
        return web.Response(status=503)

    world.otherwise = storm
    assert (await outbound.fetch("GET", world.url())).status == 503
    assert len(world.seen) == Budget().attempts


async def test_retries_stay_a_fifth_of_the_requests_in_a_storm(outbound: Outbound, world: World) -> None:
    async def storm(request: web.Request) -> web.StreamResponse:
        return web.Response(status=503)

    world.otherwise = storm
    for _ in range(100):
        await outbound.fetch("GET", world.url())
    assert len(world.seen) <= 100 + 0.2 * 100 + Budget().retry_reserve


@pytest.mark.parametrize(("idempotent", "sent"), [(None, 1), (True, 2)])
async def test_a_post_is_repeated_only_when_the_caller_says_so(
    outbound: Outbound, world: World, idempotent: bool | None, sent: int
) -> None:
    world.answers = [web.Response(status=503)]
    await outbound.fetch("POST", world.url(), body=b"x", idempotent=idempotent)
    assert len(world.seen) == sent


async def test_a_post_whose_connection_broke_is_not_repeated(outbound: Outbound, world: World) -> None:
    world.answers = [_break_off]
    with pytest.raises(Unreachable) as raised:
        await outbound.fetch("POST", world.url(), body=b"x")
    assert raised.value.sent
    assert len(world.seen) == 1


async def test_a_post_that_found_no_server_is_repeated(outbound: Outbound, clock: SkippingClock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(Unreachable, match="does not answer: Connection refused"):
        await outbound.fetch("POST", f"http://127.0.0.1:{port}/", body=b"x")
    assert len(clock.slept) == 3


async def test_a_body_that_breaks_off_is_fetched_again(outbound: Outbound, world: World) -> None:
    world.answers = [_break_off]
    assert await outbound.json("GET", world.url()) == {"path": "/"}
    assert len(world.seen) == 2


async def test_a_body_that_breaks_off_while_it_is_streamed_is_told(outbound: Outbound, world: World) -> None:
    world.answers = [_break_off]
    async with outbound.request("GET", world.url()) as response:
        with pytest.raises(Unreachable, match="the connection broke"):
            await response.read()


# Pauses


async def test_retry_after_in_seconds_is_waited_for(outbound: Outbound, world: World, clock: SkippingClock) -> None:
    world.answers = [web.Response(status=429, headers={"Retry-After": "7"})]
    assert await outbound.json("GET", world.url())
    assert 7 <= sum(clock.slept) <= 7.7


async def test_retry_after_as_a_date_is_waited_for(outbound: Outbound, world: World, clock: SkippingClock) -> None:
    date = format_datetime(clock.now() + timedelta(seconds=9), usegmt=True)
    world.answers = [web.Response(status=503, headers={"Retry-After": date})]
    assert await outbound.json("GET", world.url())
    assert 9 <= sum(clock.slept) <= 9.9


async def test_a_pause_is_for_the_whole_scope(world: World) -> None:
    clock = FakeClock()
    world.answers = [web.Response(status=429, headers={"Retry-After": "30"})]
    async with _outbound(clock) as outbound:
        assert (await outbound.fetch("POST", world.url(), scope="subscription")).status == 429
        paused = asyncio.create_task(outbound.fetch("GET", world.url("/paused"), scope="subscription"))
        await outbound.fetch("GET", world.url("/free"), scope="another")
        await clock.advance(29.9)
        assert [request.path for request in world.seen] == ["/", "/free"]
        await clock.advance(4)
        assert (await paused).ok


async def test_a_pause_over_the_deadline_is_not_begun(outbound: Outbound, world: World, clock: SkippingClock) -> None:
    world.answers = [web.Response(status=429, headers={"Retry-After": "100"})]
    assert (await outbound.fetch("GET", world.url(), timeout=20)).status == 429
    with pytest.raises(BudgetSpent, match=r"asked its scope to pause for another 100.0 s"):
        await outbound.fetch("GET", world.url(), timeout=20)
    assert clock.slept == []


async def test_a_wish_without_measure_is_bounded(outbound: Outbound, world: World, clock: SkippingClock) -> None:
    world.answers = [web.Response(status=429, headers={"Retry-After": "99999999"})]
    assert (await outbound.fetch("GET", world.url(), timeout=math.inf)).status == 429
    assert (await outbound.fetch("GET", world.url(), timeout=math.inf)).ok
    assert sum(clock.slept) <= Budget().longest_wish * 1.1


async def test_no_more_at_once_than_the_budget_says(world: World) -> None:
    now, most, go = 0, 0, asyncio.Event()

    async def counted(request: web.Request) -> web.StreamResponse:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 3:
            go.set()
        await go.wait()
        now -= 1
        return web.Response()

    world.otherwise = counted
    async with _outbound(budget=Budget(concurrent=3)) as outbound:
        await asyncio.gather(*(outbound.fetch("GET", world.url()) for _ in range(9)))
    assert most == 3


async def test_the_rate_is_kept(world: World, clock: SkippingClock) -> None:
    async with _outbound(clock, budget=Budget(rate=2, burst=1)) as outbound:
        for _ in range(5):
            await outbound.fetch("GET", world.url())
    assert sum(clock.slept) == pytest.approx(2.0)


async def test_cancellation_frees_the_slot(world: World) -> None:
    arrived = asyncio.Event()

    async def arrive(request: web.Request) -> web.StreamResponse:
        arrived.set()
        return await _hang(request)

    world.answers = [arrive]
    async with _outbound(budget=Budget(concurrent=1)) as outbound:
        task = asyncio.create_task(outbound.fetch("GET", world.url()))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await outbound.fetch("GET", world.url(), timeout=5)).ok


async def test_a_slot_that_does_not_get_free_is_told(world: World) -> None:
    async with _outbound(budget=Budget(concurrent=1)) as outbound, outbound.request("GET", world.url()):
        with pytest.raises(BudgetSpent, match="all 1 slots"):
            await outbound.fetch("GET", world.url(), timeout=0.05)


# Redirects


async def test_a_redirect_is_followed(outbound: Outbound, world: World) -> None:
    world.answers = [_redirect("/there?x=1")]
    assert await outbound.json("GET", world.url()) == {"path": "/there?x=1"}


async def test_a_signed_url_arrives_as_it_was_written(outbound: Outbound, world: World) -> None:
    signed = "/a%7Eb/%2Fc?sig=a%2Bb%2F%3D&x=~%7E&empty="
    world.answers = [_redirect(signed)]
    await outbound.fetch("GET", world.url(signed))
    assert [request.raw_path for request in world.seen] == [signed, signed]


async def test_a_redirect_loop_ends(outbound: Outbound, world: World) -> None:
    world.otherwise = _redirect("/")
    with pytest.raises(NotAllowed, match="more than 5 times"):
        await outbound.fetch("GET", world.url())
    assert len(world.seen) == 6


async def test_credentials_do_not_follow_to_another_host(outbound: Outbound, world: World, elsewhere: World) -> None:
    world.answers = [_redirect(elsewhere.url("/blob"))]
    secrets = {"Authorization": "Bearer t", "X-Api-Key": "k", "Cookie": "c", "Accept": "text/plain"}
    await outbound.fetch("GET", world.url(), headers=secrets)
    headers = elsewhere.seen[0].headers
    assert not {"Authorization", "X-Api-Key", "Cookie"} & set(headers)
    assert headers["Accept"] == "text/plain"


async def test_credentials_stay_on_the_same_host(outbound: Outbound, world: World) -> None:
    world.answers = [_redirect("/next")]
    await outbound.fetch("GET", world.url(), headers={"Authorization": "Bearer t"})
    assert world.seen[1].headers["Authorization"] == "Bearer t"


async def test_a_redirect_out_of_the_pin_is_refused(world: World, elsewhere: World) -> None:
    world.answers = [_redirect(elsewhere.url())]
    async with _outbound(host_pin=HostPin(hosts=(world.address.removeprefix("http://"),))) as outbound:
        with pytest.raises(NotAllowed, match="host is not among those"):
            await outbound.fetch("GET", world.url())
    assert not elsewhere.seen


async def test_a_redirect_from_https_to_http_is_refused(authority: Authority, secure: World, world: World) -> None:
    secure.answers = [_redirect(world.url())]
    async with _outbound(tls=Tls(ca=authority.certificate.read_bytes())) as outbound:
        with pytest.raises(NotAllowed, match="from https to http"):
            await outbound.fetch("GET", secure.url())
    assert not world.seen


# Where to


async def test_a_host_that_is_not_pinned_is_refused(outbound: Outbound, world: World) -> None:
    async with _outbound(host_pin=HostPin(hosts=("registry.example.com",))) as outbound:
        with pytest.raises(NotAllowed):
            await outbound.fetch("GET", world.url())
    assert not world.seen


async def test_a_name_that_leads_to_loopback_is_refused(world: World) -> None:
    port = world.address.rpartition(":")[2]
    pin = HostPin(loopback=False)
    async with _outbound(host_pin=pin, resolver=Names(["127.0.0.1"])) as outbound:
        with pytest.raises(NotAllowed, match="resolves to an address that is not allowed"):
            await outbound.fetch("GET", f"http://public.example.com:{port}/")
    assert not world.seen


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "127.1", "2130706433"])
async def test_an_address_of_loopback_is_refused_however_it_is_written(world: World, host: str) -> None:
    port = world.address.rpartition(":")[2]
    async with _outbound(host_pin=HostPin(loopback=False), budget=Budget(attempts=1)) as outbound:
        with pytest.raises(OutboundError) as raised:
            await outbound.fetch("GET", f"http://{host}:{port}/")
    assert not raised.value.sent
    assert not world.seen


async def test_a_name_that_changes_its_address_gains_nothing(world: World) -> None:
    async def close(request: web.Request) -> web.StreamResponse:
        return web.Response(headers={"Connection": "close"})

    world.answers = [close]
    port = world.address.rpartition(":")[2]
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    async with _outbound(host_pin=HostPin(private=False), resolver=names) as outbound:
        assert (await outbound.fetch("GET", f"http://rebound.example.com:{port}/")).ok
        with pytest.raises(NotAllowed):
            await outbound.fetch("GET", f"http://rebound.example.com:{port}/")


async def test_of_several_addresses_only_the_allowed_are_tried(world: World) -> None:
    port = world.address.rpartition(":")[2]
    names = Names(["10.0.0.1", "192.168.0.1", "127.0.0.1"])
    async with _outbound(host_pin=HostPin(private=False), resolver=names) as outbound:
        assert (await outbound.fetch("GET", f"http://mixed.example.com:{port}/")).ok


async def test_several_addresses_none_of_them_allowed_are_refused() -> None:
    names = Names(["10.0.0.1", "192.168.0.1"])
    async with _outbound(host_pin=HostPin(private=False), resolver=names) as outbound:
        with pytest.raises(NotAllowed):
            await outbound.fetch("GET", "http://mixed.example.com/")


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x/", "nonsense", "http://", "http://[::1/", "http://a:b/"]
)
async def test_only_http_is_spoken(outbound: Outbound, url: str) -> None:
    with pytest.raises(NotAllowed):
        await outbound.fetch("GET", url)


# TLS


async def test_an_extra_authority_is_trusted(authority: Authority, secure: World) -> None:
    async with _outbound(tls=Tls(ca=authority.certificate.read_bytes())) as outbound:
        assert await outbound.json("GET", secure.url())


async def test_a_certificate_of_an_unknown_authority_is_refused(outbound: Outbound, secure: World) -> None:
    with pytest.raises(TlsFailed, match=r"not trusted: unable to get local issuer certificate"):
        await outbound.fetch("GET", secure.url())
    assert not secure.seen


async def test_a_certificate_for_another_name_is_refused(authority: Authority, secure: World) -> None:
    port = secure.address.rpartition(":")[2]
    trust = Tls(ca=authority.certificate.read_bytes())
    async with _outbound(tls=trust, resolver=Names(["127.0.0.1"])) as outbound:
        with pytest.raises(TlsFailed, match="Hostname mismatch"):
            await outbound.fetch("GET", f"https://other.example.com:{port}/")


async def test_insecure_must_be_asked_for(secure: World) -> None:
    async with _outbound(tls=Tls(insecure=True)) as outbound:
        assert await outbound.json("GET", secure.url())


async def test_a_server_without_tls_is_told(outbound: Outbound, world: World) -> None:
    with pytest.raises(TlsFailed, match="no TLS came about"):
        await outbound.fetch("GET", world.url().replace("http:", "https:"))


async def test_a_client_certificate_is_shown_to_its_server_only(
    authority: Authority, secure: World, tmp_path: Path
) -> None:
    shown: list[object] = []

    async def who(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        shown.append(request.transport.get_extra_info("peercert"))
        return web.Response()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    context.verify_mode = ssl.CERT_OPTIONAL
    first, first_runner = await _serve(context)
    second, second_runner = await _serve(context)
    first.answers = [who, _redirect(second.url())]
    second.answers = [who]
    pair = authority.client("ann")
    tls = Tls(
        ca=authority.certificate.read_bytes(),
        certificate=pair.certificate.read_bytes(),
        key=Redacted(pair.key.read_bytes()),
    )
    async with _outbound(tls=tls) as outbound:
        await outbound.fetch("GET", first.url())
        await outbound.fetch("GET", first.url())
    await first_runner.cleanup()
    await second_runner.cleanup()
    assert [bool(certificate) for certificate in shown] == [True, False]


async def test_a_server_that_wants_a_certificate_is_not_reached_without(authority: Authority, tmp_path: Path) -> None:
    authority.server("server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    world, runner = await _serve(context)
    async with _outbound(SkippingClock(), tls=Tls(ca=authority.certificate.read_bytes())) as outbound:
        with pytest.raises(OutboundError):
            await outbound.fetch("GET", world.url())
    await runner.cleanup()
    assert not world.seen


async def test_an_authority_that_is_no_certificate_is_told_without_showing_it() -> None:
    async with _outbound(tls=Tls(ca=b"-----BEGIN SECRET-----")) as outbound:
        with pytest.raises(TlsError, match="no certificate in PEM") as raised:
            await outbound.fetch("GET", "https://localhost:1/")
    assert "SECRET" not in str(raised.value)


async def test_no_error_shows_a_secret(outbound: Outbound) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    url = f"http://ann:hunter2@127.0.0.1:{port}/path?sig=hunter2&page=3"
    with pytest.raises(Unreachable) as raised:
        await outbound.fetch("GET", url, headers={"Authorization": Redacted("hunter2")})
    assert "hunter2" not in str(raised.value) + repr(raised.value) + raised.value.url
    assert f"127.0.0.1:{port}/path?sig=REDACTED&page=3" in str(raised.value)


# A unix socket


@contextlib.asynccontextmanager
async def _at_socket(path: Path) -> AsyncIterator[World]:
    world = World("http://service")
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", world.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01, access_log=None)
    await runner.setup()
    await web.UnixSite(runner, path).start()
    yield world
    await runner.cleanup()


async def test_a_unix_socket_is_spoken_to_whatever_host_is_named(tmp_path: Path, clock: SkippingClock) -> None:
    pin = HostPin(hosts=("service",), loopback=False, private=False)
    async with _at_socket(tmp_path / "s") as world, _outbound(clock, host_pin=pin, unix=tmp_path / "s") as outbound:
        assert await outbound.json("GET", world.url("/v1?a=1")) == {"path": "/v1?a=1"}
        assert world.seen[0].headers["Host"] == "service"


async def test_names_are_checked_before_a_unix_socket_too(tmp_path: Path, clock: SkippingClock) -> None:
    pin = HostPin(hosts=("service",))
    async with _at_socket(tmp_path / "s") as world, _outbound(clock, host_pin=pin, unix=tmp_path / "s") as outbound:
        world.answers = [_redirect("http://other/x")]
        with pytest.raises(NotAllowed, match="its host is not among those"):
            await outbound.json("GET", world.url("/"))
        with pytest.raises(NotAllowed):
            await outbound.json("GET", "http://other/x")
        assert len(world.seen) == 1


async def test_bodies_from_a_unix_socket_are_bounded_and_half_ones_read_again(
    tmp_path: Path, clock: SkippingClock
) -> None:
    async with _at_socket(tmp_path / "s") as world, _outbound(clock, unix=tmp_path / "s") as outbound:
        world.answers = [_endless]
        with pytest.raises(TooLarge):
            await outbound.fetch("GET", world.url("/"), max_bytes=MIB)
        world.answers = [_break_off]
        assert await outbound.json("GET", world.url("/a")) == {"path": "/a"}


async def test_a_unix_socket_that_is_not_there_was_not_sent_to(tmp_path: Path, clock: SkippingClock) -> None:
    async with _outbound(clock, unix=tmp_path / "none") as outbound:
        with pytest.raises(Unreachable) as raised:
            await outbound.json("POST", "http://service/")
    assert not raised.value.sent


def test_a_unix_socket_and_a_proxy_do_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a unix socket is not reached by a proxy"):
        Outbound(unix=tmp_path / "s", proxy_from_environment=True)


# What is asked for again


async def test_a_status_that_the_budget_leaves_out_is_the_callers(clock: SkippingClock, world: World) -> None:
    world.answers = [web.Response(status=429, headers={"Retry-After": "9"}), web.Response(status=503)]
    async with _outbound(clock, budget=Budget(again=(503,))) as outbound:
        assert (await outbound.fetch("GET", world.url())).status == 429
        assert clock.slept == []
        assert (await outbound.fetch("GET", world.url())).status == 200
    assert len(world.seen) == 3
