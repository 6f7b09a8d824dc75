"""What a user sees of the data plane: requests go where VirtualServices say, on real Envoy."""

from __future__ import annotations

import aiohttp

from tests.systems.local.gateway_kit import Gateway, ask, client, gateway, scheme, to
from trimtab.model.istio import VirtualService

__all__ = ["client", "gateway", "scheme"]


async def test_a_service_answers_at_its_own_address(gateway: Gateway) -> None:
    await gateway.service("web")
    await gateway.backend("web")
    async with gateway.working():
        url = await gateway.serving("web")
        assert await ask(url, 3) == {"200 web": 3}


async def test_weights_share_requests_and_are_said_to_be_live(gateway: Gateway) -> None:
    for name in ("web", "web-canary"):
        await gateway.service(name)
        await gateway.backend(name)
    async with gateway.working():
        url = await gateway.serving("web")
        await gateway.virtual_service("web", [to(("web", 0), ("web-canary", 100))])
        assert (await gateway.live("web"))["status"] == "True"
        assert await ask(url, 5) == {"200 web-canary": 5}
        await gateway.route("web", [to(("web", 100), ("web-canary", 0))])
        assert (await gateway.live("web"))["status"] == "True"
        assert await ask(url, 5) == {"200 web": 5}
        ingress = (await gateway.published())["ingress"]
        assert await ask(f"http://{ingress}", 2, {"Host": "web.shop.svc.cluster.local"}) == {"200 web": 2}
        assert await ask(f"http://{ingress}", 1, {"Host": "other.example"}) == {"404 ": 1}


async def test_a_header_or_a_cookie_chooses_the_version_and_a_destination_sets_one(gateway: Gateway) -> None:
    for name in ("web", "web-canary"):
        await gateway.service(name)
        await gateway.backend(name)
    cookie = {"response": {"add": {"Set-Cookie": "version=canary; Path=/; Max-Age=60"}}}
    shared = to(("web", 0), ("web-canary", 100))
    shared["route"][1]["headers"] = cookie
    http = [
        {"match": [{"headers": {"x-canary": {"exact": "insider"}}}], **to(("web-canary", 100))},
        {"match": [{"headers": {"cookie": {"regex": ".*version=canary.*"}}}], **to(("web-canary", 100))},
        {"match": [{"uri": {"prefix": "/new"}}], **shared},
        to(("web", 100)),
    ]
    async with gateway.working():
        url = await gateway.serving("web")
        await gateway.virtual_service("web", http)
        assert (await gateway.live("web"))["status"] == "True"
        assert await ask(url) == {"200 web": 1}
        assert await ask(url, headers={"x-canary": "insider"}) == {"200 web-canary": 1}
        assert await ask(url, headers={"Cookie": "a=b; version=canary"}) == {"200 web-canary": 1}
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.get(f"{url}/new") as got,
        ):
            assert got.headers.getall("Set-Cookie") == ["version=canary; Path=/; Max-Age=60"]


async def test_mirrored_requests_reach_the_canary_and_are_counted_for_it(gateway: Gateway) -> None:
    for name in ("web", "web-canary"):
        await gateway.service(name)
    await gateway.backend("web")
    canary = await gateway.backend("web-canary")
    async with gateway.working() as controller:
        url = await gateway.serving("web")
        await gateway.virtual_service("web", [to(("web", 100), mirror={"host": "web-canary"})])
        assert (await gateway.live("web"))["status"] == "True"
        assert await ask(url, 20) == {"200 web": 20}
        counted = 'reporter="destination",destination_workload="web-canary"'
        text = ""
        while f"{counted}" not in text or len(canary.heads) < 20:
            text = (await controller.metrics()).decode()
        assert sum("-shadow" in head for head in canary.heads) == 20


async def test_routes_that_are_not_understood_leave_those_before_in_force(gateway: Gateway) -> None:
    for name in ("web", "api"):
        await gateway.service(name)
        await gateway.backend(name)
    async with gateway.working():
        url = await gateway.serving("web")
        await gateway.virtual_service("web", [to(("web", 100))])
        await gateway.live("web")
        await gateway.route("web", [to(("web", 0), ("api", 0))])
        bad = await gateway.live("web")
        assert (bad["status"], "all 0" in bad["message"]) == ("False", True)
        assert await ask(url) == {"200 web": 1}
        await gateway.virtual_service("api", [to(("web", 100))])
        assert (await gateway.live("api"))["status"] == "True"
        assert await ask(await gateway.serving("api")) == {"200 web": 1}


async def test_routes_that_envoy_refuses_are_kept_apart_with_its_words(gateway: Gateway) -> None:
    for name in ("web", "api"):
        await gateway.service(name)
        await gateway.backend(name)
    async with gateway.working():
        url = await gateway.serving("web")
        await gateway.virtual_service("web", [to(("web", 100))])
        await gateway.live("web")
        headers = {"request": {"set": {"x-odd": "%NO_SUCH_COMMAND%"}}}
        await gateway.route("web", [to(("api", 100), headers=headers)])
        bad = await gateway.live("web")
        assert (bad["status"], "NO_SUCH_COMMAND" in bad["message"]) == ("False", True)
        assert await ask(url) == {"200 web": 1}
        await gateway.virtual_service("api", [to(("web", 100))])
        assert (await gateway.live("api"))["status"] == "True"
        await gateway.route("web", [to(("api", 100))])
        assert (await gateway.live("web"))["status"] == "True"
        found = await gateway.client.get(VirtualService, "web", "shop")
        assert "validationMessages" not in found.status
        assert await ask(url) == {"200 api": 1}


async def test_pods_that_are_not_ready_or_go_get_no_requests(gateway: Gateway) -> None:
    await gateway.service("web")
    one = await gateway.backend("web", "one", version="one")
    await gateway.backend("web", "two", version="two", ready=False)
    async with gateway.working():
        url = await gateway.serving("web")
        assert set(await ask(url, 10)) == {"200 one"}
        await gateway.state("two", gateway.backends[1].address, True)
        while "200 two" not in await ask(url, 4):
            pass
        await gateway.state("one", one.address, False)
        while "200 one" in await ask(url, 4):
            pass
        await gateway.gone("two")
        while set(await ask(url, 2)) != {"503 no healthy upstream"}:
            pass
