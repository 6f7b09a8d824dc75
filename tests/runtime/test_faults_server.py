"""A manager against `trimtab up` in a process of its own, while that dies, hangs, refuses and forgets.

After each fault the world is compared with the declared one: every widget has its ConfigMap, those that were deleted have
none, and nobody does anything any more.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from msgspec import UNSET

from tests.runtime.faults_proxy import FaultProxy
from tests.runtime.widgets import PATIENCE, Seen, Tap, Widget, WidgetSpec, define, running, until, widget
from trimtab.client.api import ApiClient
from trimtab.client.config import load, unix
from trimtab.client.http import HttpTransport, Limits
from trimtab.client.protocol import Client, Query, Ref
from trimtab.model import kubernetes
from trimtab.model.clock import SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Namespace
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme
from trimtab.runtime.changes import Change, Request
from trimtab.runtime.controller import Controller, Result, Watch
from trimtab.runtime.election import Election
from trimtab.runtime.manager import Manager
from trimtab.store.sqlite import SqliteStore
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports

pytestmark = pytest.mark.slow

NAMESPACE = "faults"
HELD = "runtime.example.com/keeper"
KEPT = Query(namespace=NAMESPACE, labels="kept=yes")
QUIET = 0.5


class Keeper(Controller[Widget]):
    """A ConfigMap for each widget, which the server's own garbage collection knows nothing of."""

    query = Query(namespace=NAMESPACE)
    watches = (Watch(kind=ConfigMap, to=lambda change: kept_for(change), query=Query(namespace=NAMESPACE)),)

    def __init__(self) -> None:
        self.seen: Seen[Request] = Seen()

    async def reconcile(self, request: Request) -> Result | None:
        self.seen.append(request)
        found = await self.client.find(Widget, request.name, NAMESPACE)
        kept = await self.client.find(ConfigMap, request.name, NAMESPACE)
        if found is None or found.metadata.deletion_timestamp is not UNSET:
            if kept is not None:
                await _delete(self.client, request.name)
            if found is not None and found.metadata.finalizers:
                await self.client.patch(found, found.replace(metadata=_with_finalizers(found, ())))
            return None
        if not found.metadata.finalizers:
            found = await self.client.patch(found, found.replace(metadata=_with_finalizers(found, (HELD,))))
        wanted = {"size": str(found.spec.size)}
        if kept is None:
            metadata = ObjectMeta(name=request.name, namespace=NAMESPACE, labels={"kept": "yes"})
            await self.client.create(ConfigMap(metadata=metadata, data=wanted))
        elif kept.data != wanted:
            await self.client.patch(kept, kept.replace(data=wanted))
        return None


async def _delete(client: Client, name: str) -> None:
    try:
        await client.delete(Ref(ConfigMap, name, NAMESPACE))
    except StatusError as error:
        if error.code != 404:
            raise


def kept_for(change: Change) -> tuple[Request, ...]:
    """Others have ConfigMaps too."""
    kept = any(head is not None and (head.labels or {}).get("kept") for head in change.heads)
    return (change.request,) if kept else ()


def _with_finalizers(found: Widget, finalizers: tuple[str, ...]) -> ObjectMeta:
    return msgspec.structs.replace(found.metadata, finalizers=finalizers)


class World:
    """A server, its administrator, a proxy, and the transport of the manager that goes through it."""

    def __init__(self, folder: Path, home: str, port: int) -> None:
        self._folder, self._home, self._port = folder, home, port
        self.server = self._start()

    def _start(self) -> TrimtabServer:
        return TrimtabServer(self._folder, flags=("--port", str(self._port), "--systems", "none"))

    async def __aenter__(self) -> World:
        socket = self._folder / "data" / "trimtab.sock"
        self.admin = ApiClient(HttpTransport(unix(socket)), _scheme())
        if self._home == "unix":
            listen = self._folder / "proxy.sock"
            self.proxy = FaultProxy(socket, listen)
            await self.proxy.__aenter__()
            self._config = unix(listen)
        else:
            self.proxy = FaultProxy(self._port)
            await self.proxy.__aenter__()
            config = load(self.server.kubeconfig)
            assert urlsplit(config.server).port == self._port
            self._config = msgspec.structs.replace(config, server=f"https://127.0.0.1:{self.proxy.port}")
        await self.admin.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        await define(self.admin)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.proxy.__aexit__(None, None, None)
        await self.admin.close()
        for pid in self.server.pids.values():
            os.kill(pid, signal.SIGCONT)
        self.server.stop()

    def client(self, *, inactivity: float = 150.0, patience: float = 60.0) -> tuple[ApiClient, Tap]:
        """A client through the proxy, and what it asks for."""
        tap = Tap(HttpTransport(self._config, limits=Limits(connect=patience, request=patience)))
        return ApiClient(tap, _scheme(), inactivity=inactivity), tap

    @property
    def pid(self) -> int:
        return self.server.pids["server"]

    def kill(self) -> None:
        self.server.kill()

    async def start_again(self) -> None:
        self.server = await asyncio.to_thread(self._start)

    async def forget_the_past(self) -> None:
        """Compact all that happened, in the store of a server that is down."""
        store = await SqliteStore.open(self._folder / "data" / "store.db")
        await store.compact(store.revision)
        await store.close()

    # --- what users do --------------------------------------------------------------------------------------------

    async def declare(self, *names: str, size: int = 1) -> None:
        for name in names:
            await self.admin.create(widget(name, NAMESPACE, size))

    async def resize(self, name: str, size: int) -> None:
        for _ in range(20):
            found = await self.admin.get(Widget, name, NAMESPACE)
            try:
                await self.admin.patch(found, found.replace(spec=WidgetSpec(size=size)))
                return
            except StatusError as error:
                if error.code != 409:
                    raise

    async def withdraw(self, *names: str) -> None:
        for name in names:
            await self.admin.delete(Ref(Widget, name, NAMESPACE))

    async def spoil(self, name: str) -> None:
        """Take away what the controller made, if it has."""
        await _delete(self.admin, name)

    # --- the checker ----------------------------------------------------------------------------------------------

    async def converges(self, names: set[str]) -> None:
        """Until the world is as declared; `names` says which widgets there are to be."""
        async with asyncio.timeout(PATIENCE):
            while (why := await self._difference(names)) is not None:
                self.why = why
                await asyncio.sleep(0.05)

    async def _difference(self, names: set[str]) -> str | None:
        widgets = (await self.admin.list(Widget, Query(namespace=NAMESPACE))).items
        kept = (await self.admin.list(ConfigMap, KEPT)).items
        declared = {found.name: {"size": str(found.spec.size)} for found in widgets}
        if set(declared) != names:
            return f"widgets are {sorted(declared)}"
        there = {found.name: found.data for found in kept}
        return None if there == declared else f"{there} is not {declared}"

    async def rests(self, tap: Tap) -> None:
        """Nothing is written and nothing is listed any more."""
        tap.calls.clear()
        await asyncio.sleep(QUIET)
        assert [call for call in tap.writes if "/events" not in call.path] == []
        assert _lists(tap) == []
        assert len(tap.calls) <= 4, "a watch may be resumed, not again and again"


def _scheme() -> Scheme:
    scheme = kubernetes.register(Scheme())
    scheme.register(Widget)
    return scheme


@pytest.fixture(params=["https", "unix"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    folder = Path(tempfile.mkdtemp(prefix="tt-"))  # short: it is part of the path of a socket
    try:
        async with World(folder, request.param, free_ports(1)[0]) as made:
            yield made
    finally:
        shutil.rmtree(folder)


def names(first: int, last: int) -> list[str]:
    return [f"w{number}" for number in range(first, last)]


async def test_a_server_that_is_killed_and_starts_again_costs_nothing(world: World) -> None:
    client, tap = world.client()
    manager, keeper = Manager(client), Keeper()
    manager.add(keeper)
    async with running(manager):
        await world.declare(*names(0, 20))
        await keeper.seen.reach(5)
        world.kill()  # in the midst of it
        await world.start_again()
        await world.declare(*names(20, 25))
        await world.withdraw(*names(0, 5))
        await world.resize("w10", 7)
        await world.spoil("w11")
        await world.converges(set(names(5, 25)))
        await world.rests(tap)
    await client.close()


async def test_what_happened_while_a_server_forgot_the_past_is_found_by_a_new_list(world: World) -> None:
    client, tap = world.client()
    manager, keeper = Manager(client), Keeper()
    manager.add(keeper)
    async with running(manager):
        await world.declare(*names(0, 10))
        await world.converges(set(names(0, 10)))
        world.proxy.refuse()
        await world.withdraw(*names(0, 3))
        await world.declare(*names(10, 13))
        await world.resize("w5", 9)
        await world.spoil("w6")
        world.kill()
        await world.forget_the_past()
        await world.start_again()
        lists = len(_lists(tap))
        world.proxy.heal()
        await world.converges(set(names(3, 13)))
        assert len(_lists(tap)) > lists, "410: the watches could not go on"
        await world.rests(tap)
    await client.close()


async def test_watches_that_drop_go_on_where_they_were(world: World) -> None:
    client, tap = world.client()
    manager, keeper = Manager(client), Keeper()
    manager.add(keeper)
    async with running(manager):
        await until(lambda: manager.synced)
        lists = len(_lists(tap))
        for turn in range(8):
            await world.declare(*names(turn * 3, turn * 3 + 3))
            world.proxy.cut()
            await world.withdraw(f"w{turn * 3}")
            world.proxy.cut()
        await world.converges({name for name in names(0, 24) if int(name[1:]) % 3})
        assert len(_lists(tap)) == lists, "nothing was listed again"
        await world.rests(tap)
    await client.close()


@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.parametrize("world", ["unix"], indirect=True)
async def test_a_server_that_refuses_everything_is_asked_patiently(world: World, code: int) -> None:
    client, tap = world.client()
    manager, keeper = Manager(client), Keeper()
    manager.add(keeper)
    async with running(manager):
        await world.declare(*names(0, 5))
        await world.converges(set(names(0, 5)))
        before = world.proxy.connections
        world.proxy.answer(code, *(["Retry-After: 1"] if code == 429 else []))
        await world.withdraw("w0")
        await world.declare(*names(5, 8))
        await world.spoil("w2")
        await asyncio.sleep(1.2)
        assert 0 < world.proxy.connections - before < 20, "no hot loop"
        world.proxy.heal()
        await world.converges(set(names(1, 8)))
        await world.rests(tap)
    await client.close()


async def test_a_server_that_hangs_is_left_for_a_new_connection(world: World) -> None:
    client, tap = world.client(inactivity=1.0, patience=1.0)
    manager, keeper = Manager(client), Keeper()
    manager.add(keeper)
    async with running(manager):
        await world.declare(*names(0, 10))
        await keeper.seen.reach(3)
        os.kill(world.pid, signal.SIGSTOP)
        await asyncio.sleep(2.0)  # longer than anyone waits for an answer
        os.kill(world.pid, signal.SIGCONT)
        await world.withdraw(*names(0, 3))
        await world.declare(*names(10, 12))
        await world.converges(set(names(3, 12)))
        await world.rests(tap)
    await client.close()


async def test_a_connection_that_is_dead_and_does_not_know_is_noticed(world: World) -> None:
    """The zombie of a watch: the server lives and changes, and nothing comes through."""
    client, _ = world.client(inactivity=1.0, patience=1.0)
    manager, keeper = Manager(client), Keeper()
    manager.add(keeper)
    async with running(manager):
        await world.declare(*names(0, 5))
        await world.converges(set(names(0, 5)))
        world.proxy.hang()
        await world.withdraw(*names(0, 2))
        await world.declare(*names(5, 7))
        informers = list(manager.informers)
        await until(lambda: all(informer.problem for informer in informers))
        world.proxy.heal()
        await world.converges(set(names(2, 7)))
    await client.close()


@pytest.mark.parametrize("world", ["unix"], indirect=True)
async def test_a_manager_may_start_before_its_server_and_stop_after_it(world: World) -> None:
    client, _ = world.client()
    world.proxy.refuse()
    await world.declare(*names(0, 3))
    manager, keeper = Manager(client), Keeper()
    manager.add(keeper)
    async with running(manager):
        await until(lambda: [bool(informer.problem) for informer in manager.informers] == [True, True])
        with pytest.raises(RuntimeError, match="waits for Widget: "):
            manager.check_ready()
        world.proxy.heal()
        await world.converges(set(names(0, 3)))
        world.kill()
    assert not manager.synced
    await client.close()
    await world.start_again()


class Jumping(SystemClock):
    """The machine's clock, with a wall clock that someone sets."""

    def __init__(self) -> None:
        self.offset = timedelta()

    def now(self) -> datetime:
        return super().now() + self.offset


@pytest.mark.parametrize("world", ["unix"], indirect=True)
async def test_a_wall_clock_that_jumps_is_of_no_matter(world: World) -> None:
    client, tap = world.client()
    clock = Jumping()
    election = Election(
        client,
        clock,
        name="keeper",
        namespace=NAMESPACE,
        identity="one",
        retry=0.05,  # a renewal or two after each jump
        random=random.Random(1),
    )
    manager, keeper = Manager(client, clock=clock, election=election), Keeper()
    manager.add(keeper)
    async with running(manager):
        await election.elected.wait()
        for turn, hours in enumerate((24, -48, 8760, -8760)):
            clock.offset += timedelta(hours=hours)
            await world.declare(*names(turn * 2, turn * 2 + 2))
            await world.withdraw(f"w{turn * 2}")
            await world.converges({f"w{number}" for number in range(1, turn * 2 + 2, 2)})
            assert election.leading()
        assert election.term == 0, "the lease never changed hands"
        assert not election.lost.is_set()
        others = [call for call in tap.writes if "/leases/" not in call.path]
        assert len(others) < 60
    await client.close()


def _lists(tap: Tap) -> list[object]:
    """Requests for a whole state, streamed or paged."""
    return [call for call in tap.calls if "sendInitialEvents" in call.query or "limit" in call.query]
