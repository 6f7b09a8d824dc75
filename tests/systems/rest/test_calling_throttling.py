"""Budgets: by credential, scope and class of verb; a 429 pauses the scope."""

from __future__ import annotations

import asyncio
import random

import pytest
from aiohttp import web

from tests.systems.rest.calling_kit import serving
from trimtab.systems.rest.calling.contract import CallError, ErrorClass, Request
from trimtab.systems.rest.calling.service import Service
from trimtab.systems.rest.calling.throttling import Throttle, class_of, remaining, scope_of
from trimtab.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def throttle(clock: FakeClock, *, reads: float = 10, writes: float = 2) -> Throttle:
    return Throttle(reads_per_second=reads, writes_per_second=writes, clock=clock, chance=random.Random(1))


def request(method: str = "GET", url: str = "/x") -> Request:
    verbs = {"GET": "read", "PUT": "update", "DELETE": "delete", "POST": "create"}
    return Request(verb=verbs[method], method=method, url=url)


async def test_a_429_pauses_the_scope_and_not_one_object(clock: FakeClock) -> None:
    async with serving() as world:
        world.answers = [web.Response(status=429, headers={"Retry-After": "40"})]
        async with Service(world.url, clock=clock, throttle=throttle(clock)) as service:
            for url, sent in (("/a", 1), ("/b", 1), ("/c", 1)):
                with pytest.raises(CallError) as raised:
                    await service.call(request("PUT", url))
                assert (raised.value.kind, raised.value.retry_after) == (ErrorClass.THROTTLED, 40.0)
                assert not raised.value.uncertain
                assert len(world.seen) == sent
            await clock.advance(40)
            assert (await service.call(request("GET", "/b"))).status == 200


async def test_a_429_of_a_resource_that_waits_for_another_pauses_nobody(clock: FakeClock) -> None:
    details = [{"code": "ReferencedResourceNotProvisioned", "message": "the subnet is not in Succeeded state"}]
    error = {"code": "RetryableError", "message": "A retryable error occurred.", "details": details}
    async with serving() as world:
        world.answers = [web.json_response({"error": error}, status=429)]
        async with Service(world.url, clock=clock, throttle=throttle(clock)) as service:
            with pytest.raises(CallError) as raised:
                await service.call(request("PUT", "/subscriptions/one/nic"))
            assert raised.value.kind is ErrorClass.DEPENDENCY
            assert (await service.call(request("PUT", "/subscriptions/one/other"))).status == 200


async def test_another_subscription_goes_on(clock: FakeClock) -> None:
    async with serving() as world:
        world.answers = [web.Response(status=429, headers={"Retry-After": "40"})]
        async with Service(world.url, clock=clock, throttle=throttle(clock)) as service:
            with pytest.raises(CallError):
                await service.call(request("PUT", "/subscriptions/ONE/x"))
            assert (await service.call(request("PUT", "/subscriptions/two/x"))).status == 200
            with pytest.raises(CallError, match="subscription one is free again in 40 s"):
                await service.call(request("GET", "/subscriptions/one/y"))


async def test_a_429_that_does_not_say_how_long_pauses_longer_each_time(clock: FakeClock) -> None:
    budgets, pauses = throttle(clock), []
    for _ in range(4):
        budgets.learn(request(), "s", {}, refused=True, wish=None)
        with pytest.raises(CallError) as raised:
            await budgets.enter(request(), "s")
        assert raised.value.retry_after is not None
        pauses.append(raised.value.retry_after)
        await clock.advance(raised.value.retry_after)
    assert pauses == [10, 20, 40, 80]


async def test_a_short_pause_is_waited_out(clock: FakeClock) -> None:
    budgets = throttle(clock)
    budgets.learn(request(), "s", {}, refused=True, wish=1.5)
    entering = asyncio.create_task(budgets.enter(request(), "s"))
    await clock.advance(1.4)
    assert not entering.done()
    await clock.advance(0.2)
    await entering


async def test_reads_writes_and_deletes_have_rates_of_their_own(clock: FakeClock) -> None:
    budgets = throttle(clock)
    for _ in range(2):
        await budgets.enter(request("PUT"), "s")
    third = asyncio.create_task(budgets.enter(request("PUT"), "s"))
    await budgets.enter(request("GET"), "s")
    await budgets.enter(request("DELETE"), "s")
    await clock.settle()
    assert not third.done()
    await clock.advance(0.5)
    await third


async def test_who_would_wait_for_too_long_is_told_and_takes_no_turn(clock: FakeClock) -> None:
    budgets = throttle(clock, writes=1)
    waiting = [asyncio.create_task(budgets.enter(request("PUT"), "s")) for _ in range(31)]
    await clock.settle()
    with pytest.raises(CallError) as raised:
        await budgets.enter(request("PUT"), "s")
    assert (raised.value.kind, raised.value.retry_after) == (ErrorClass.THROTTLED, 31)
    waiting[-1].cancel()
    await asyncio.gather(waiting[-1], return_exceptions=True)
    waiting.append(asyncio.create_task(budgets.enter(request("PUT"), "s")))
    await clock.advance(30)
    assert all(task.done() for task in waiting)


async def test_a_class_whose_allowance_runs_out_slows_down_before_a_429(clock: FakeClock) -> None:
    budgets = throttle(clock)
    budgets.learn(
        request("PUT"), "s", {"x-ms-ratelimit-remaining-subscription-global-writes": "0"}, refused=False, wish=None
    )
    with pytest.raises(CallError) as raised:
        await budgets.enter(request("PUT"), "s")
    assert raised.value.retry_after == 5
    await budgets.enter(request("GET"), "s")
    budgets.learn(
        request("GET"), "s", {"x-ms-ratelimit-remaining-subscription-global-reads": "5"}, refused=False, wish=None
    )
    slowed = asyncio.create_task(budgets.enter(request("GET"), "s"))
    await clock.advance(0.7)
    assert not slowed.done()
    await clock.advance(0.1)
    await slowed


async def test_a_pause_ends_within_an_hour_whatever_the_service_says(clock: FakeClock) -> None:
    budgets = throttle(clock)
    budgets.learn(request(), "s", {}, refused=True, wish=10.0**9)
    await clock.advance(3600)
    await budgets.enter(request(), "s")


async def test_many_scopes_are_forgotten_but_not_those_that_wait(clock: FakeClock) -> None:
    budgets = throttle(clock)
    budgets.learn(request(), "paused", {}, refused=True, wish=600)
    for number in range(3000):
        await budgets.enter(request(), f"scope {number}")
        await clock.advance(1)
        if number == 500:
            budgets.learn(request(), "paused", {}, refused=True, wish=3600)
    with pytest.raises(CallError):
        await budgets.enter(request(), "paused")


@pytest.mark.parametrize(
    ("url", "scope"),
    [
        ("https://management.azure.com:443/subscriptions/AB-1/resourceGroups/x", "subscription ab-1"),
        ("https://management.azure.com:443/providers/x", "management.azure.com:443"),
        ("http://localhost/1.0/profiles", "localhost"),
    ],
)
def test_scopes(url: str, scope: str) -> None:
    assert scope_of(url) == scope


def test_the_scarcest_limit_counts() -> None:
    headers = {
        "x-ms-ratelimit-remaining-a": "100",
        "x-ms-ratelimit-remaining-b": "7",
        "x-ms-ratelimit-remaining-c": "x",
    }
    assert remaining(headers) == (7, 5.0)
    assert remaining({}) == (None, 5.0)
    assert remaining({"ratelimit-remaining": "0", "ratelimit-reset": "30"}) == (0, 30.0)


def test_classes() -> None:
    assert [class_of(request(method)) for method in ("GET", "PUT", "POST", "DELETE")] == [
        "read",
        "write",
        "write",
        "delete",
    ]
