"""A server whose disk fails, whose clock is set, or whose watchers do not read: clear answers, nothing lost, and well again
when the cause is gone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.server.api import ADMIN, Api, config_map, running
from tests.server.test_expiry import EVENTS, event
from trimtab.server import broadcast
from trimtab.server.broadcast import Broadcast
from trimtab.server.door import Door
from trimtab.server.wire import Listener
from trimtab.store.contract import Batch, Entry, Key, Query, Unavailable, Unwritable, Write
from trimtab.store.memory import MemoryStore
from trimtab.testing.clock import FakeClock

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOUR = 3600.0


class Ailing(MemoryStore):
    """A store that fails as a disk does, while `failure` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: Unavailable | None = None
        self.unreadable = False

    @property
    def trouble(self) -> str:  # type: ignore[override]
        return str(self.failure or "")

    async def commit(self, write: Write) -> Entry:
        if self.failure is not None:
            raise self.failure
        return await super().commit(write)

    def changes(self, query: Query, after: int) -> Batch:
        if self.unreadable:
            raise Unavailable("the store cannot be read")
        return super().changes(query, after)


FULL = Unwritable("nothing was written: database or disk is full", full=True)


async def test_a_full_disk_is_a_507_that_says_so_and_reads_go_on() -> None:
    store = Ailing()
    async with running(store=store) as api:
        await api.post(MAPS, config_map("a"))
        store.failure = FULL
        refused = await api.post(MAPS, config_map("b"))
        assert (refused.code, refused.doc["kind"], refused.doc["reason"]) == (507, "Status", "InsufficientStorage")
        assert "disk of the server is full" in refused.doc["message"]
        assert (await api.get(f"{MAPS}/a")).code == 200
        assert (await api.get(MAPS)).code == 200
        store.failure = None
        assert (await api.post(MAPS, config_map("b"))).code == 201


async def test_a_disk_that_cannot_be_written_is_a_500_that_says_why() -> None:
    store = Ailing()
    async with running(store=store) as api:
        store.failure = Unwritable("nothing was written: attempt to write a readonly database", full=False)
        refused = await api.post(MAPS, config_map("b"))
        assert (refused.code, refused.doc["reason"]) == (500, "InternalError")
        assert "readonly database" in refused.doc["message"]


async def test_readiness_says_what_is_wrong_with_the_disk_and_liveness_is_left_alone() -> None:
    store = Ailing()
    async with running(store=store) as api:
        assert (await api.get("/readyz")).code == 200
        store.failure = FULL
        ready = await api.get("/readyz")
        assert ready.code == 500
        assert b"[-]store failed: nothing was written: database or disk is full" in ready.raw
        assert (await api.get("/readyz/store")).code == 500
        assert (await api.get("/livez")).code == 200
        assert b"trimtab_store_healthy 0" in (await api.get("/metrics")).raw
        store.failure = None
        assert (await api.get("/readyz")).code == 200


async def test_events_expire_after_a_time_in_which_the_disk_was_full() -> None:
    store, clock = Ailing(), FakeClock()
    async with running(store=store, clock=clock) as api:
        await api.post(EVENTS, event("old"))
        store.failure = FULL
        await clock.advance(2 * HOUR)
        assert (await api.get(f"{EVENTS}/old")).code == 200
        store.failure = None
        await clock.advance(60)
        assert (await api.get(f"{EVENTS}/old")).code == 404


async def test_a_namespace_that_ends_while_the_disk_is_full_is_gone_afterwards() -> None:
    store, clock = Ailing(), FakeClock()
    async with running(store=store, clock=clock) as api:
        await api.post("/api/v1/namespaces", {"metadata": {"name": "going"}})
        await clock.settle()
        await api.post("/api/v1/namespaces/going/configmaps", config_map("a"))
        await api.delete("/api/v1/namespaces/going")
        store.failure = FULL
        await clock.advance(5)
        assert (await api.get("/api/v1/namespaces/going")).code == 200
        store.failure = None
        await clock.advance(120)
        assert (await api.get("/api/v1/namespaces/going")).code == 404


async def test_a_definition_that_could_not_be_accepted_is_served_when_the_disk_is_well() -> None:
    store, clock = Ailing(), FakeClock()
    async with running(store=store, clock=clock) as api:
        made = asyncio.create_task(api.post(CRDS, lamps()))
        while not await store.count("customresourcedefinitions.apiextensions.k8s.io"):  # noqa: ASYNC110 - until it is there
            await asyncio.sleep(0)
        store.failure = FULL  # the object is there; its status is not
        await clock.advance(5)
        store.failure = None
        await clock.advance(5)
        assert (await made).code == 201
        assert (await api.get("/apis/example.com/v1/lamps")).code == 200


def lamps() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": "lamps.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def test_a_watch_that_cannot_read_the_log_is_told_so() -> None:
    store = Ailing()
    async with running(store=store) as api:
        since = (await api.post(MAPS, config_map("a"))).doc["metadata"]["resourceVersion"]
        await api.post(MAPS, config_map("b"))
        store.unreadable = True
        async with api.watch(f"{MAPS}?watch=true&resourceVersion={since}") as seen:
            error = await seen()
            assert (error["type"], error["object"]["code"]) == ("ERROR", 500)
            assert "cannot be read" in error["object"]["message"]


async def test_all_who_follow_a_broadcast_are_told_when_it_fails() -> None:
    class Failing:
        def event(self, change: object) -> bytes:
            raise ValueError("a mistake")

        def idle(self, revision: int) -> bytes:
            return b""

        def failure(self, error: Exception) -> bytes:
            return b"failed"

    class Noting:
        def __init__(self) -> None:
            self.ended: list[bytes] = []

        def feed(self, framed: bytes) -> None:
            raise AssertionError("nothing can be framed")

        def end(self, framed: bytes) -> None:
            self.ended.append(framed)

    store, sink = MemoryStore(), Noting()
    running_ = Broadcast(store, Query(resource="configmaps"), Failing(), 60.0, lambda: None)
    running_.attach(sink, 0)
    await store.commit(Write(key=Key("configmaps", "default", "a"), head=b"", tail=b""))
    async with asyncio.timeout(5):
        while not sink.ended:  # noqa: ASYNC110 - a sink does not wait
            await asyncio.sleep(0)
    assert sink.ended == [b"failed"]


async def test_a_reader_in_this_process_that_does_not_keep_up_is_expired(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "MAX_UNREAD", 4000)
    since = (await api.get(MAPS)).doc["metadata"]["resourceVersion"]
    async with api.watch(f"{MAPS}?watch=true&resourceVersion={since}") as seen:
        await api.post(MAPS, config_map("behind"))
        await seen()
        waiting = asyncio.create_task(seen())
        while not api.server.broadcasts.watchers().get("configmaps"):  # noqa: ASYNC110 - it has caught up then
            await asyncio.sleep(0)
        await api.post(MAPS, config_map("first"))
        await waiting  # from now on it reads no more
        for number in range(20):
            await api.post(MAPS, config_map(f"more-{number}"))
            for _ in range(10):  # each change on its own
                await asyncio.sleep(0)
        names = []
        while (told := await seen())["type"] == "ADDED":
            names.append(told["object"]["metadata"]["name"])
        assert names == [f"more-{number}" for number in range(len(names))]
        assert (told["type"], told["object"]["code"], told["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert api.server.broadcasts.terminated == {"configmaps": 1}


@pytest.mark.parametrize("hours", [-5, 5])
async def test_a_clock_that_is_set_takes_no_event_away_and_keeps_none_for_ever(hours: int) -> None:
    clock = FakeClock()
    async with running(clock=clock) as api:
        await api.post(EVENTS, event("kept"))
        clock.jump(hours * HOUR)
        await clock.advance(0.5 * HOUR)
        assert (await api.get(f"{EVENTS}/kept")).code == 200
        await clock.advance(0.6 * HOUR)
        assert (await api.get(f"{EVENTS}/kept")).code == 404


@pytest.mark.parametrize("hours", [-5, 5])
async def test_what_is_made_has_the_time_that_the_clock_shows(hours: int) -> None:
    clock = FakeClock()
    async with running(clock=clock) as api:
        first = (await api.post(MAPS, config_map("a"))).doc["metadata"]
        clock.jump(hours * HOUR)
        second = (await api.post(MAPS, config_map("b"))).doc["metadata"]
        assert second["creationTimestamp"] == clock.now().strftime("%Y-%m-%dT%H:%M:%SZ") != first["creationTimestamp"]
        assert int(second["resourceVersion"]) > int(first["resourceVersion"])


async def test_a_watcher_that_does_not_read_is_cut_off_with_410_and_the_others_get_all(tmp_path: Path) -> None:
    """It may read what it was given, in order, and is then told to list again."""
    async with running() as api:
        since = (await api.get(MAPS)).doc["metadata"]["resourceVersion"].encode()
        listener = Listener(Door(api.server, None, local=ADMIN))
        await listener.listen_unix(str(tmp_path / "s"))
        slow, slow_writer = await _watching(str(tmp_path / "s"), since)
        good, good_writer = await _watching(str(tmp_path / "s"), since)
        try:
            await api.post(MAPS, config_map("kube-first"))
            while api.server.broadcasts.watchers().get("configmaps") != 2:  # noqa: ASYNC110 - both have caught up then
                await asyncio.sleep(0)
            reading = asyncio.create_task(_names(good, 30))
            text = "x" * 500_000
            for number in range(30):
                assert (await api.post(MAPS, {**config_map(f"m-{number:02}"), "data": {"text": text}})).code == 201
                await asyncio.sleep(0.01)
            assert await asyncio.wait_for(reading, 20) == [f"m-{number:02}" for number in range(30)]
            assert api.server.broadcasts.terminated == {"configmaps": 1}
            seen = await asyncio.wait_for(_names(slow, 31), 20)
            assert seen[:-1] == [f"m-{number:02}" for number in range(len(seen) - 1)]
            assert seen[-1] == "410 Expired"
        finally:
            slow_writer.close()
            good_writer.close()
            await listener.close()


async def _watching(address: str, since: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(address, limit=64 * 1024)
    writer.write(b"GET %b?watch=true&resourceVersion=%b HTTP/1.1\r\nhost: x\r\n\r\n" % (MAPS.encode(), since))
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def _names(reader: asyncio.StreamReader, count: int) -> list[str]:
    """The names of so many events, or up to an ERROR, which is told by its code and reason."""
    names: list[str] = []
    while len(names) < count:
        size = int(await reader.readuntil(b"\r\n"), 16)
        for line in (await reader.readexactly(size + 2)).strip().splitlines():
            event_ = orjson.loads(line)
            if event_["type"] == "ERROR":
                return [*names, f"{event_['object']['code']} {event_['object']['reason']}"]
            if not event_["object"]["metadata"]["name"].startswith("kube-"):
                names.append(event_["object"]["metadata"]["name"])
    return names
