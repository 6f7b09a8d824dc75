"""Replicas that ask each other over HTTP: who owns a key reads it for all, and whoever does not get an answer reads itself."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

import aiohttp
import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.cache.service import Service, document
from trimtab.hub.bus.local import LocalBus
from trimtab.hub.cache.caches import Caches, Question
from trimtab.hub.cache.fleet import Fleet
from trimtab.hub.cache.keys import owner
from trimtab.hub.cache.lru import Entry
from trimtab.hub.cache.peers import MAX_QUESTION, Peers
from trimtab.hub.contract import ApplyOptions, Down, GetOptions, ListOptions, Missing
from trimtab.hub.proxies.cached import Cached

TYPE = "blueprints.infra"
GET = GetOptions(project="p")
LIST = ListOptions(project="p")
APPLY = ApplyOptions(project="p")
LEASE = 6.0


class Hub:
    """Three replicas on one service."""

    def __init__(self) -> None:
        self.bus = LocalBus()
        self.service = Service()
        self.caches = [Caches() for _ in range(3)]
        self.cached = [Cached(self.service, TYPE, caches) for caches in self.caches]
        self.peers = [Peers(token=lambda: "secret", timeout=1.0) for _ in range(3)]
        self.fleets = [
            Fleet(self.bus, caches, replica=f"r{number}", peers=self.peers[number], lease=LEASE)
            for number, caches in enumerate(self.caches)
        ]

    async def start(self) -> None:
        for fleet in self.fleets:
            await fleet.start()
            await fleet.joined()
        async with asyncio.timeout(LEASE / 2):
            while any(len(fleet.replicas) < 3 for fleet in self.fleets):  # noqa: ASYNC110 - beats are on their way
                await asyncio.sleep(0)
        for fleet in self.fleets:
            fleet._membership.began -= LEASE  # it listens for long, so its writes need not wait
        await self.cached[0].apply(document("first"), APPLY)

    async def stop(self) -> None:
        for fleet in self.fleets:
            await fleet.stop()

    def total(self, name: str) -> int:
        groups = [group for caches in self.caches for kind in caches.kinds.values() for group in (kind.get, kind.list)]
        return sum(getattr(group.metrics, name) for group in groups)


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    hub = Hub()
    await hub.start()
    yield hub
    await hub.stop()


@pytest.mark.row(34)
@pytest.mark.row(35)
async def test_a_key_is_read_once_for_all_replicas(hub: Hub) -> None:
    for number in range(20):
        await hub.cached[0].apply(document(f"n{number}"), APPLY)
    found = await asyncio.gather(*(cached.get(f"n{number}", GET) for cached in hub.cached for number in range(20)))
    assert len(found) == 60
    assert hub.service.gets == 20
    assert hub.total("peer_loads") == 40
    assert all(caches.kinds[TYPE].get.metrics.peer_served for caches in hub.caches)  # each owns some
    await asyncio.gather(*(cached.get(f"n{number}", GET) for cached in hub.cached for number in range(20)))
    assert hub.total("peer_loads") == 40  # what others own is kept, too


@pytest.mark.row(35)
@pytest.mark.row(36)
async def test_what_was_kept_of_anothers_is_forgotten_with_a_write(hub: Hub) -> None:
    for value in range(5):
        await hub.cached[value % 3].apply(document("a", value), APPLY)
        for cached in hub.cached:
            assert (await cached.get("a", GET))["spec"]["v"] == value
            assert (await cached.list(LIST)).items[0]["spec"]["v"] == value


@pytest.mark.row(33)
async def test_what_is_not_there_is_not_there_for_all(hub: Hub) -> None:
    for cached in hub.cached:
        with pytest.raises(Missing, match="nobody is not there"):
            await cached.get("nobody", GET)
    assert hub.service.gets == 1


@pytest.mark.row(35)
async def test_when_the_owner_cannot_be_asked_everyone_reads_for_itself(hub: Hub) -> None:
    for number in range(10):
        await hub.cached[0].apply(document(f"n{number}"), APPLY)
    await hub.peers[2].stop()
    for number in range(10):
        for cached in hub.cached[:2]:
            assert (await cached.get(f"n{number}", GET))["metadata"]["name"] == f"n{number}"
    assert hub.total("peer_errors") > 0


@pytest.mark.row(35)
async def test_an_owner_without_a_lease_does_not_answer(hub: Hub) -> None:
    for number in range(10):
        await hub.cached[0].apply(document(f"n{number}"), APPLY)
    hub.fleets[1]._leaving = True
    for number in range(10):
        await hub.cached[0].get(f"n{number}", GET)
    assert hub.caches[1].kinds[TYPE].get.metrics.peer_served == 0


async def test_a_failure_of_the_service_is_told_by_who_asked(hub: Hub) -> None:
    async def pause(where: str) -> None:
        if where == "before get":
            raise Down("the service is away")

    hub.service.pause = pause
    for cached in hub.cached:
        with pytest.raises(Down, match="the service is away"):
            await cached.get("a", GET)


async def test_a_list_that_is_too_old_for_one_is_read_anew_by_the_owner(hub: Hub) -> None:
    for cached in hub.cached:
        await cached.list(LIST)
    hub.service.revision += 50
    hub.service.forget()
    for cached in hub.cached:
        await cached.horizon()
        assert (await cached.list(LIST)).revision == hub.service.revision


async def test_without_the_token_nothing_is_answered(hub: Hub) -> None:
    question = msgspec.msgpack.encode(Question(TYPE, "first", GET.key()))
    async with aiohttp.ClientSession() as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer "}):
            async with client.post(f"{hub.peers[0].address}/cache", data=question, headers=headers) as response:
                assert response.status == 401
                assert await response.read() == b""


async def test_questions_are_bounded_and_checked(hub: Hub) -> None:
    headers = {"Authorization": "Bearer secret"}
    async with aiohttp.ClientSession() as client:
        url = f"{hub.peers[0].address}/cache"
        async with client.post(url, data=bytes(MAX_QUESTION + 1), headers=headers) as response:
            assert response.status == 413
        async with client.post(url, data=b"nonsense", headers=headers) as response:
            assert response.status == 400
        unknown = msgspec.msgpack.encode(Question("other.type", "a", b"{}", session=hub.fleets[0]._membership.session))
        async with client.post(url, data=unknown, headers=headers) as response:
            assert response.status == 409
        wrong = Question(TYPE, "a", b"{", session=hub.fleets[0]._membership.session, beat=0)
        async with client.post(url, data=msgspec.msgpack.encode(wrong), headers=headers) as response:
            assert response.status == 400


async def test_a_token_goes_to_other_machines_over_tls_only() -> None:
    peers = Peers(token=lambda: "secret")
    assert not peers.usable("http://192.0.2.1:8080")
    assert peers.usable("https://192.0.2.1:8080")
    assert peers.usable("http://127.0.0.1:8080")
    assert not peers.usable("")
    with pytest.raises(ValueError, match="over TLS"):
        Peers(token=lambda: "secret", host="0.0.0.0")
    Peers(token=lambda: "secret", host="0.0.0.0", server_tls=ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))


async def test_an_answer_that_is_none_is_not_believed() -> None:
    async def nonsense(question: Question) -> Entry | None:
        return None

    one, two = Peers(token=lambda: "secret"), Peers(token=lambda: "secret")
    await one.start(nonsense)
    await two.start(nonsense)
    try:
        assert await one.ask(two.address, Question(TYPE, "a", b"{}")) is None
        await two.stop()
        assert await one.ask(two.address, Question(TYPE, "a", b"{}")) is None
        assert not one.usable(two.address)  # for a moment
    finally:
        await one.stop()


@pytest.mark.row(35)
@given(replicas=st.sets(st.text("abc123", min_size=1, max_size=8), min_size=2, max_size=6), keys=st.sets(st.binary()))
def test_a_replica_that_goes_moves_only_its_own_keys(replicas: set[str], keys: set[bytes]) -> None:
    gone = min(replicas)
    for key in keys:
        before = owner(key, sorted(replicas))
        assert before == owner(key, sorted(replicas, reverse=True))
        if before != gone:
            assert owner(key, sorted(replicas - {gone})) == before


@pytest.mark.row(35)
def test_keys_are_spread_evenly() -> None:
    owned = [owner(str(number).encode(), ["one", "two", "three"]) for number in range(3000)]
    assert all(800 < owned.count(name) < 1200 for name in ("one", "two", "three"))
    assert owner(b"key", []) == ""


async def test_a_token_of_any_bytes_is_refused_quietly(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    host, _, port = hub.peers[0].address.removeprefix("http://").partition(":")
    for token in (b"\xff\xfe", "é".encode(), b"\x80" * 100):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /cache HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token)
        writer.write(b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 401 ")
        writer.close()
    assert not caplog.records


async def test_while_there_is_no_token_nobody_gets_in() -> None:
    peers = Peers(token=lambda: "")

    async def serve(question: Question) -> Entry | None:
        return Entry(b"secret")

    await peers.start(serve)
    question = msgspec.msgpack.encode(Question(TYPE, "a", GET.key()))
    async with aiohttp.ClientSession() as client:
        for headers in ({}, {"Authorization": ""}, {"Authorization": "Bearer "}):
            async with client.post(f"{peers.address}/cache", data=question, headers=headers) as response:
                assert response.status == 401
    await peers.stop()


async def test_a_question_is_not_carried_elsewhere() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        if request.path == "/cache":
            return web.Response(status=307, headers={"Location": "/elsewhere"})
        return web.Response(body=msgspec.msgpack.encode(Entry(b"forged")))

    app = web.Application()
    app.router.add_post("/{any}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    peers = Peers(token=lambda: "secret")

    async def nothing(question: Question) -> Entry | None:
        return None

    await peers.start(nothing)
    assert await peers.ask(f"http://127.0.0.1:{runner.addresses[0][1]}", Question(TYPE, "a", GET.key())) is None
    assert asked == ["/cache"]
    await peers.stop()
    await runner.cleanup()
