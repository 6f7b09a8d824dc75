"""What our routes do to requests, on real Envoy."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.systems.delivery.objects_kit import canary
from tests.systems.local.gateway_kit import Gateway, ask, client, gateway, scheme, server
from trimtab.systems.delivery.kinds.analysis import SessionAffinity
from trimtab.systems.delivery.objects.routing import Traffic, owned_virtual_service

__all__ = ["client", "gateway", "scheme", "server"]

AFFINITY = SessionAffinity(cookie_name="who", stable_cookie_name="who-not", path="/a%b")


@asynccontextmanager
async def routed(gateway: Gateway, traffic: Traffic) -> AsyncIterator[str]:
    """Where stable and canary answer by their names."""
    for name in ("web", "web-canary"):
        await gateway.service(name)
        await gateway.backend(name)
    async with gateway.working():
        url = await gateway.serving("web")
        await gateway.virtual_service("web", http(traffic))
        assert (await gateway.live("web"))["status"] == "True"
        yield url


def http(traffic: Traffic) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = owned_virtual_service(canary(), traffic)["spec"]["http"]
    return listed


async def visit(url: str, cookie: str = "") -> tuple[str, list[str]]:
    """Who answered, and the cookies that were set."""
    headers = {"Cookie": cookie} if cookie else {}
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.get(url, headers=headers) as answer,
    ):
        return await answer.text(), answer.headers.getall("Set-Cookie", [])


async def test_who_once_came_to_the_canary_comes_again_until_the_run_is_over(gateway: Gateway) -> None:
    traffic = Traffic(weight=50, affinity=AFFINITY, cookie="abc")
    async with routed(gateway, traffic) as url:
        seen: Counter[tuple[str, str]] = Counter()
        for _ in range(40):
            who, (cookie,) = await visit(url)
            seen[who, cookie] += 1
        assert set(seen) == {
            ("web", "who-not=abc; Max-Age=86400; Path=/a%b; HttpOnly"),
            ("web-canary", "who=abc; Max-Age=86400; Path=/a%b; HttpOnly"),
        }
        for cookie, who in (("a=b; who=abc; c=d", "web-canary"), ("who-not=abc", "web")):
            assert {(await visit(url, cookie))[0] for _ in range(10)} == {who}
        # Of a run before, or only alike.
        for cookie in ("who=old", "awho=abc", "who=abcd"):
            assert {(await visit(url, cookie))[0] for _ in range(30)} == {"web", "web-canary"}

        await gateway.route("web", http(Traffic(affinity=AFFINITY, cookie="abc")))
        assert (await gateway.live("web"))["status"] == "True"
        for name in ("who", "who-not"):
            assert await visit(url, f"{name}=abc") == ("web", [f"{name}=; Max-Age=0; Path=/a%b; HttpOnly"])
        assert await visit(url) == ("web", [])


async def test_a_b_sends_those_that_match_to_the_canary(gateway: Gateway) -> None:
    match = ({"headers": {"x-insider": {"exact": "yes"}}}, {"headers": {"cookie": {"regex": ".*beta=1.*"}}})
    async with routed(gateway, Traffic(weight=100, match=match)) as url:
        assert await ask(url, 5, {"x-insider": "yes"}) == {"200 web-canary": 5}
        assert await ask(url, 5, {"Cookie": "beta=1"}) == {"200 web-canary": 5}
        assert await ask(url, 5, {"x-insider": "no"}) == {"200 web": 5}
