"""What a user sees of the data plane: requests go where VirtualServices say, on real Envoy."""

from __future__ import annotations

import asyncio

import aiohttp

from tests.systems.local.gateway_kit import PORT, Gateway, ask, client, condition, gateway, scheme, server, to
from trimtab.model.istio import DestinationRule, VirtualService
from trimtab.model.kubernetes import Service
from trimtab.systems.local.gateway.addresses import ENDPOINTS

__all__ = ["client", "gateway", "scheme", "server"]


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


async def test_what_a_header_must_not_be_holds_also_where_it_is_missing(gateway: Gateway) -> None:
    await gateway.service("web")
    await gateway.backend("web")
    http = [
        {
            "match": [{"withoutHeaders": {"x-bot": {"exact": "yes"}}}],
            "directResponse": {"status": 200, "body": {"string": "man"}},
        },
        {"directResponse": {"status": 200, "body": {"string": "bot"}}},
    ]
    await gateway.virtual_service("web", http)
    async with gateway.working():
        url = await gateway.serving("web")
        await gateway.live("web")
        assert await ask(url) == {"200 man": 1}
        assert await ask(url, headers={"x-bot": "no"}) == {"200 man": 1}
        assert await ask(url, headers={"x-bot": "yes"}) == {"200 bot": 1}


async def test_rewrites_redirects_faults_and_headers_do_what_they_say(gateway: Gateway) -> None:
    await gateway.service("web")
    backend = await gateway.backend("web")
    http = [
        {
            "match": [{"uri": {"prefix": "/api"}}],
            "rewrite": {"uri": "/"},
            **to(("web", 1), headers={"request": {"set": {"x-via": "us"}}}),
        },
        {"match": [{"uri": {"exact": "/old"}}], "redirect": {"uri": "/new", "redirectCode": 308}},
        {"match": [{"uri": {"exact": "/broken"}}], "fault": {"abort": {"httpStatus": 418}}, **to(("web", 1))},
        to(("web", 1)),
    ]
    await gateway.virtual_service("web", http)
    async with gateway.working():
        url = await gateway.serving("web")
        assert (await gateway.live("web"))["status"] == "True"
        assert await ask(f"{url}/api/items") == {"200 web": 1}
        assert backend.heads[-1].startswith("GET /items HTTP/1.1")
        assert "x-via: us" in backend.heads[-1]
        async with aiohttp.ClientSession() as session, session.get(f"{url}/old", allow_redirects=False) as got:
            assert (got.status, got.headers["location"].endswith("/new")) == (308, True)
        assert list(await ask(f"{url}/broken")) == ["418 fault filter abort"]


async def test_a_port_that_does_not_say_what_it_speaks_carries_requests_and_anything_else(gateway: Gateway) -> None:
    await gateway.service("web", ports=[{"port": 80, "targetPort": PORT}])
    await gateway.backend("web")
    async with gateway.working():
        url = await gateway.serving("web")
        assert await ask(url) == {"200 web": 1}
        reader, writer = await asyncio.open_connection(url.removeprefix("http://"), 80)
        writer.write(b"\x00\x01 not a request\r\n\r\n")
        assert (await reader.read(100)).startswith(b"HTTP/1.1 200")  # the pod answers whatever it is told
        writer.close()
        await writer.wait_closed()


async def test_a_destination_rule_that_is_no_good_is_told_so_and_the_service_goes_on(gateway: Gateway) -> None:
    await gateway.service("web")
    await gateway.backend("web")
    async with gateway.working():
        url = await gateway.serving("web")
        policy = {"loadBalancer": {"consistentHash": {"httpHeaderName": "x"}}}
        await gateway.create(
            "DestinationRule", "web", {"host": "web", "trafficPolicy": policy}, "networking.istio.io/v1"
        )
        found = await gateway.until(DestinationRule, "web", lambda each: bool(each.status))
        assert condition(found)["status"] == "False"
        assert "consistentHash" in condition(found)["message"]
        assert await ask(url) == {"200 web": 1}


async def test_all_pods_that_answer_are_named_however_many_they_are(gateway: Gateway) -> None:
    await gateway.service("web")
    for number in range(1, 31):
        await gateway.pod("web", f"web-{number}", f"127.98.0.{number}")
    async with gateway.working():
        found = await gateway.until(
            Service, "web", lambda each: (each.metadata.annotations or {}).get(ENDPOINTS, "").count(",") == 29
        )
        named = found.metadata.annotations[ENDPOINTS].split(",")
        assert set(named) == {f"127.98.0.{number}:{PORT}" for number in range(1, 31)}


async def test_names_as_long_as_they_can_be_break_nothing(gateway: Gateway) -> None:
    await gateway.service("web")
    await gateway.backend("web")
    async with gateway.working():
        await gateway.virtual_service("v" * 253, [to(("web", 100))], hosts=["web"])
        assert (await gateway.live("v" * 253))["status"] == "True"
        assert await ask(await gateway.serving("web")) == {"200 web": 1}


async def test_a_host_that_is_none_is_not_given_to_envoy(gateway: Gateway) -> None:
    await gateway.service("web")
    async with gateway.working():
        bad = {"headers": {"request": {"set": {"Host": "a b\r\nX: y"}}}}
        await gateway.virtual_service("web", [to(("web", 100), **bad)])
        found = await gateway.live("web")
        assert found["status"] == "False"
        assert "spec.http[0].headers.request.set.Host: is no host" in found["message"]
