"""What runs for months must not grow: controllers that come and go, and a watch that never ends."""

from __future__ import annotations

import asyncio
import gc
import random
import tracemalloc
from collections.abc import AsyncGenerator

from tests.runtime.widgets import Doer, Seen, Widget, define, running, until, widget
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query, Ref
from trimtab.client.transport import Call, Reply
from trimtab.model.clock import SystemClock
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Watch
from trimtab.runtime.index import Index
from trimtab.runtime.informers import Informers
from trimtab.runtime.limits import Backoff
from trimtab.runtime.manager import Manager
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import local_client
from trimtab.store.memory import MemoryStore

CYCLES = 200
EVENTS = 20_000
ENOUGH = 1_000  # objects that are alive, each with some hundred bytes


def alive() -> int:
    gc.collect()
    return len(gc.get_objects())


async def test_controllers_that_come_and_go_leave_nothing(client: ApiClient, namespace: str) -> None:
    await define(client)
    await client.create(widget("a", namespace))
    manager = Manager(client)
    stays = Doer(namespace, name="stays")
    manager.add(stays)

    async def cycle() -> None:
        goes = Doer(
            namespace,
            name="goes",
            owns=(ConfigMap,),
            indexes=(INDEX,),
            watches=(Watch(kind=ConfigMap, to=nobody, query=Query(namespace=namespace, labels="app=web")),),
        )
        manager.add(goes)
        await goes.seen.reach(1)
        await manager.remove(goes)

    async with running(manager):
        await stays.seen.reach(1)
        for _ in range(10):  # what is made once is made
            await cycle()
        tasks, informers, objects = len(asyncio.all_tasks()), len(list(manager.informers)), alive()
        for _ in range(CYCLES):
            await cycle()
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        assert len(list(manager.informers)) == informers == 1
        assert alive() - objects < ENOUGH


INDEX = Index("size", lambda found: [str(found.spec.size)])


def nobody(change: Change) -> tuple[Request, ...]:
    return ()


class Endless:
    """A server whose one watch brings so many changes of a few objects, then waits."""

    def __init__(self, events: int) -> None:
        self._events = events
        self.told = asyncio.Event()

    async def call(self, call: Call) -> Reply:
        raise AssertionError("everything comes through the watch")

    async def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        end = '{"k8s.io/initial-events-end":"true"}'
        yield f'{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"1","annotations":{end}}}}}}}'.encode()
        for number in range(2, self._events + 2):
            kind = ("ADDED", "MODIFIED", "MODIFIED", "DELETED")[(number - 2) // 50 % 4]
            metadata = f'{{"name":"o{number % 50}","namespace":"n","uid":"u{number}","resourceVersion":"{number}"}}'
            yield f'{{"type":"{kind}","object":{{"metadata":{metadata},"data":{{"x":"{"y" * 500}"}}}}}}'.encode()
            if number % 100 == 0:
                await asyncio.sleep(0)
        self.told.set()
        await asyncio.Event().wait()

    async def close(self) -> None: ...


async def test_a_watch_that_goes_on_and_on_keeps_its_size() -> None:
    seen = 0

    def count(change: Change) -> None:
        nonlocal seen
        seen += 1
        assert change.heads

    transport = Endless(EVENTS)
    informers = Informers(ApiClient(transport), clock=SystemClock(), chance=random.Random(1))
    tracemalloc.start()
    try:
        informer = informers.subscribe(ConfigMap, Query(), count, (Index("name", lambda found: [found.metadata.name]),))
        await until(lambda: seen > EVENTS // 10)
        before, _ = tracemalloc.get_traced_memory()
        await transport.told.wait()
        await until(lambda: seen == EVENTS)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        await informers.close()
    assert len(informer.cache) <= 50
    assert after - before < 200_000, "as much as the fifty objects that are there"


async def test_reconciles_of_objects_that_come_and_go_leave_nothing() -> None:
    """Queue, back-off, cache and what we wrote ourselves: all forget who is gone."""
    user = User("admin", groups=(MASTERS, "system:authenticated"))
    store = MemoryStore()
    server = Server(store)
    await server.start()
    client = local_client(server, user)
    await define(client)
    manager = Manager(client)
    gone: Seen[str] = Seen()

    async def come_and_go(doer: Doer, request: Request) -> None:
        found = await doer.client.find(Widget, request.name, request.namespace)
        if found is None:
            gone.append(request.name)
        elif doer.names.count(request.name) == 1:
            raise OSError("once")
        else:
            await doer.client.delete(Ref(Widget, request.name, request.namespace))

    doer = Doer("default", come_and_go)
    manager.add(doer)
    try:
        async with running(manager):
            for number in range(100):
                await client.create(widget(f"w{number}", "default"))
            await gone.until(lambda names: len(set(names)) == 100)
            (driver,) = manager._drivers.values()
            await until(lambda: not driver.queue._items)
            backoff = driver.queue._backoff
            assert isinstance(backoff, Backoff)
            assert not backoff._delays
            cache = next(manager.informers.of(Widget)).cache
            await until(lambda: not cache._gone)
            assert (len(cache), dict(cache._written)) == (0, {})
    finally:
        await server.stop()
        await store.close()
