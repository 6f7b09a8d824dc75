"""Controllers together: what they share, how they come and go, who acts, and how all of it ends."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import pytest

from tests.runtime.widgets import (
    PATIENCE,
    Doer,
    Maker,
    Tap,
    Widget,
    WidgetSpec,
    define,
    logged,
    running,
    tapped,
    until,
    until_found,
    until_gone,
    widget,
)
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Named, Query, Ref
from trimtab.model.clock import SystemClock
from trimtab.model.crd import crd
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Lease
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec
from trimtab.runtime.changes import Request
from trimtab.runtime.controller import Controller
from trimtab.runtime.election import Election
from trimtab.runtime.manager import Manager
from trimtab.runtime.metrics import ControllerMetrics, Metrics
from trimtab.testing.clock import FakeClock


@pytest.fixture(autouse=True)
async def _defined(client: ApiClient) -> None:
    await define(client)


class NeverSpec(Spec):
    size: int = 1


class Never(Resource, group="never.example.com", version="v1", plural="nevers"):
    """A kind that no server serves, unless a test defines it."""

    spec: NeverSpec = NeverSpec()


class Nevers(Controller[Never]):
    def __init__(self) -> None:
        self.seen: list[Request] = []

    async def reconcile(self, request: Request) -> None:
        self.seen.append(request)


def tasks_of_ours() -> set[str]:
    words = ("informer ", "widget worker", "controller ", "workqueue ")
    return {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(words)}


# --- sharing -------------------------------------------------------------------------------------------------------


async def test_many_controllers_share_one_list_watch_for_each_kind(client: ApiClient, namespace: str) -> None:
    reached, tap = tapped(client)
    manager = Manager(reached)
    doers = [Doer(namespace, name=f"doer-{number}", owns=(ConfigMap,)) for number in range(5)]
    for doer in doers:
        manager.add(doer)
    async with running(manager):
        await client.create(widget("a", namespace))
        for doer in doers:
            await doer.seen.reach(1)
        late = Doer(namespace, name="late", owns=(ConfigMap,))
        manager.add(late)
        await late.seen.reach(1)
    assert (len(tap.watches("widgets")), len(tap.watches("configmaps"))) == (1, 1)
    assert tap.reads("") == []


async def test_two_controllers_of_one_name_are_refused(client: ApiClient, namespace: str) -> None:
    manager = Manager(client)
    manager.add(Doer(namespace))
    with pytest.raises(ValueError, match='there is a controller "widget" already'):
        manager.add(Doer(namespace))


# --- coming and going ----------------------------------------------------------------------------------------------


async def test_a_controller_comes_and_goes_while_others_run(client: ApiClient, namespace: str) -> None:
    manager = Manager(client)
    stays, goes = Doer(namespace, name="stays"), Doer(namespace, name="goes", owns=(ConfigMap,))
    manager.add(stays)
    async with running(manager):
        await client.create(widget("a", namespace))
        await stays.seen.reach(1)
        manager.add(goes)
        await goes.seen.reach(1)
        await manager.remove(goes)
        assert [informer.query for informer in manager.informers] == [stays.query], "only its own kind is left"
        await client.create(widget("b", namespace))
        await stays.seen.reach(2)
        assert goes.names == ["a"]
        manager.add(goes)
        await goes.seen.until(lambda seen: sorted(goes.names) == ["a", "a", "b"])


async def test_a_controller_that_goes_is_cut_off_and_told(client: ApiClient, namespace: str) -> None:
    ended: list[str] = []

    class Slow(Doer):
        async def reconcile(self, request: Request) -> None:
            self.seen.append(request)
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("reconcile")

        async def stop(self) -> None:
            ended.append("stop")

    manager = Manager(client)
    slow = Slow(namespace)
    manager.add(slow)
    async with running(manager):
        await client.create(widget("a", namespace))
        await slow.seen.reach(1)
        await manager.remove(slow)
        assert ended == ["reconcile", "stop"]
        assert tasks_of_ours() == set()


async def test_a_controller_may_end_itself(client: ApiClient, namespace: str) -> None:
    async def leave(doer: Doer, request: Request) -> None:
        await manager.remove(doer)

    manager = Manager(client)
    doer = Doer(namespace, leave)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("a", namespace))
        await doer.seen.reach(1)
        await until(lambda: tasks_of_ours() == set())
        assert list(manager.informers) == []
        assert len(doer.seen) == 1


async def test_a_kind_that_is_not_served_holds_up_only_its_own_controller(client: ApiClient, namespace: str) -> None:
    client.scheme.register(Never)
    clock = FakeClock()
    manager = Manager(client, clock=clock)
    nevers, doer = Nevers(), Doer(namespace)
    manager.add(nevers)
    manager.add(doer)
    definition = Ref(Named("apiextensions.k8s.io/v1", "CustomResourceDefinition"), crd(Never)["metadata"]["name"])
    async with running(manager):
        await client.create(widget("a", namespace))
        await doer.seen.reach(1)
        await until(lambda: clock.pending)
        with pytest.raises(RuntimeError, match="waits for Never, which is not served here"):
            manager.check_ready()
        await define(client, Never)
        await client.create(Never(metadata=ObjectMeta(name="late", namespace=namespace)))
        await clock.advance(60)
        await until(lambda: nevers.seen == [Request(namespace, "late")])
        manager.check_ready()
        await client.delete(definition)
        await until_gone(client, definition.kind, definition.name, "")
        await client.create(widget("b", namespace))
        await doer.seen.until(lambda seen: "b" in doer.names)


# --- the end -------------------------------------------------------------------------------------------------------


async def test_a_reconcile_that_runs_may_finish_and_none_begins(client: ApiClient, namespace: str) -> None:
    go, finished = asyncio.Event(), []

    async def slow(doer: Doer, request: Request) -> None:
        await go.wait()
        await doer.client.create(ConfigMap(metadata=ObjectMeta(name=request.name, namespace=namespace)))
        finished.append(request.name)

    manager = Manager(client)
    doer = Doer(namespace, slow, concurrency=1)
    manager.add(doer)
    stop = asyncio.Event()
    task = asyncio.create_task(manager.run(stop))
    await client.create(widget("a", namespace))
    await doer.seen.reach(1)
    await client.create(widget("b", namespace))
    await until(lambda: any(e.name == "b" for i in manager.informers for e in i.cache.entries()))
    stop.set()
    await asyncio.sleep(0)
    go.set()
    async with asyncio.timeout(PATIENCE):
        await task
    assert finished == ["a"]
    assert await client.get(ConfigMap, "a", namespace)
    assert tasks_of_ours() == set()


async def test_a_reconcile_that_does_not_finish_is_cut_off(client: ApiClient, namespace: str) -> None:
    cut = []

    async def hang(doer: Doer, request: Request) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.append(request.name)
            raise

    manager = Manager(client, grace=0.05)
    doer = Doer(namespace, hang)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("a", namespace))
        await doer.seen.reach(1)
    assert cut == ["a"]
    assert tasks_of_ours() == set()


async def test_a_reconcile_that_swallows_the_end_does_not_begin_another(client: ApiClient, namespace: str) -> None:
    async def swallow(doer: Doer, request: Request) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    manager = Manager(client, grace=0.05)
    doer = Doer(namespace, swallow, concurrency=1)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("a", namespace))
        await client.create(widget("b", namespace))
        await doer.seen.reach(1)
    assert len(doer.seen) == 1
    assert tasks_of_ours() == set()


async def test_a_reconcile_that_never_ends_is_left_behind_and_named(
    client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.runtime.driver.CUT", 0.05)
    free = asyncio.Event()

    async def stubborn(doer: Doer, request: Request) -> None:
        while not free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await free.wait()

    manager = Manager(client, grace=0.05)
    doer = Doer(namespace, stubborn)
    manager.add(doer)
    with logged() as logs:
        async with running(manager):
            await client.create(widget("a", namespace))
            await doer.seen.reach(1)
    assert "reconciles do not end although they are cancelled" in [line["event"] for line in logs]
    free.set()
    await until(lambda: tasks_of_ours() == set())


async def test_the_end_does_not_wait_for_a_kind_that_is_not_served(client: ApiClient, namespace: str) -> None:
    client.scheme.register(Never)
    manager = Manager(client, grace=3600)
    manager.add(Nevers())
    async with running(manager):
        await until(lambda: any(informer.problem for informer in manager.informers))


async def test_a_manager_that_is_cancelled_leaves_nothing_running(client: ApiClient, namespace: str) -> None:
    async def hang(doer: Doer, request: Request) -> None:
        await asyncio.Event().wait()

    manager = Manager(client)
    doer = Doer(namespace, hang)
    manager.add(doer)
    task = asyncio.create_task(manager.run())
    await client.create(widget("a", namespace))
    await doer.seen.reach(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tasks_of_ours() == set()


async def test_a_manager_runs_again_after_its_end(client: ApiClient, namespace: str) -> None:
    manager = Manager(client)
    doer = Doer(namespace)
    manager.add(doer)
    async with running(manager):
        await client.create(widget("a", namespace))
        await doer.seen.reach(1)
        with pytest.raises(RuntimeError, match="runs already"):
            await manager.run()
    with pytest.raises(RuntimeError, match="is not running"):
        manager.check_ready()
    async with running(manager):
        await doer.seen.reach(2)


class Miscounting(Metrics):
    """Fails where the driver expects no failure."""

    def controller(self, name: str, max_concurrent: int = 1) -> ControllerMetrics:
        class Broken(ControllerMetrics):
            def reconciled(self, result: str, seconds: float) -> None:
                raise AssertionError("a bug")

        return Broken()


@pytest.mark.parametrize("where", ["worker", "informer"])
async def test_a_mistake_of_the_runtime_ends_the_run_with_it(client: ApiClient, namespace: str, where: str) -> None:
    reached, tap = tapped(client)
    manager = Manager(reached, metrics=Miscounting() if where == "worker" else None)
    doer = Doer(namespace)
    manager.add(doer)
    task = asyncio.create_task(manager.run())
    await until(lambda: manager.synced)
    if where == "informer":
        tap.mistake = AssertionError("a bug")
    await client.create(widget("a", namespace))
    with pytest.raises(AssertionError, match="a bug"):
        async with asyncio.timeout(PATIENCE):
            await task
    assert tasks_of_ours() == set()


# --- leadership ----------------------------------------------------------------------------------------------------


class Replica:
    """A manager that takes part in an election, and a tap on what it writes."""

    def __init__(self, client: ApiClient, namespace: str, identity: str, controller: Controller[Any]) -> None:
        reached, self.tap = tapped(client)
        self.election = Election(
            lease_client(client, self),
            SystemClock(),
            name="leader",
            namespace=namespace,
            identity=identity,
            duration=1.5,
            renew_deadline=1.0,
            retry=0.1,
            random=random.Random(1),
        )
        self.cut_off = False
        self.manager = Manager(reached, election=self.election, grace=5)
        self.manager.add(controller)


def lease_client(client: ApiClient, replica: Replica) -> ApiClient:
    class Cuttable(Tap):
        async def call(self, call: Any) -> Any:
            if replica.cut_off:
                raise StatusError(503, "ServiceUnavailable", "cut off by the test")
            return await super().call(call)

    return ApiClient(Cuttable(client.transport), client.scheme)


async def test_a_standby_is_warm_and_does_nothing(client: ApiClient, namespace: str) -> None:
    leader = Replica(client, namespace, "leader", Maker(namespace))
    maker = Maker(namespace)
    standby = Replica(client, namespace, "standby", maker)
    async with running(leader.manager):
        await leader.election.elected.wait()
        async with running(standby.manager):
            for number in range(3):
                await client.create(widget(f"w{number}", namespace))
            for number in range(3):
                await until_found(client, ConfigMap, f"w{number}", namespace, lambda found: True)
            await until(lambda: standby.manager.synced)
            (driver,) = standby.manager._drivers.values()
            await until(lambda: len(driver.queue) == 3)
            standby.manager.check_ready()
            assert maker.seen == []
            assert standby.tap.writes == []
    assert not (await client.get(Lease, "leader", namespace)).spec.holder_identity


async def test_who_loses_the_lease_stops_at_once_writes_nothing_more_and_goes_on_when_it_is_back(
    client: ApiClient, namespace: str
) -> None:
    cut: list[str] = []
    outcomes: list[type[BaseException] | None] = []

    async def slow(doer: Doer, request: Request) -> None:
        found = await doer.client.find(Widget, request.name, namespace)
        if found is None or found.spec.size > 1:
            return
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.append(request.name)
            try:  # even in cleaning up
                await doer.client.create(ConfigMap(metadata=ObjectMeta(name="late", namespace=namespace)))
                outcomes.append(None)
            except Exception as error:
                outcomes.append(type(error))
            raise

    doer = Doer(namespace, slow)
    replica = Replica(client, namespace, "one", doer)
    async with running(replica.manager):
        made = await client.create(widget("a", namespace))
        await doer.seen.reach(1)
        replica.cut_off = True
        async with asyncio.timeout(PATIENCE):
            await replica.election.lost.wait()
        await until(lambda: cut)
        await until(lambda: outcomes)
        assert [error and error.__name__ for error in outcomes] == ["NotLeading"]
        assert replica.tap.writes == []
        count = len(doer.seen)
        await client.patch(made, made.replace(spec=WidgetSpec(size=2)))
        await client.create(widget("b", namespace, 2))
        await until(lambda: len(replica.manager.informers.following(Widget)[0].cache) == 2)
        assert len(doer.seen) == count, "nothing is done while it does not lead"
        replica.cut_off = False
        await doer.seen.until(lambda seen: {"a", "b"} <= set(doer.names[count:]))


async def test_who_loses_the_lease_is_told_to_pause_and_starts_only_once(client: ApiClient, namespace: str) -> None:
    said: list[str] = []

    class Busy(Doer):
        async def start(self) -> None:
            said.append("start")

        async def pause(self) -> None:
            said.append("pause")

        async def stop(self) -> None:
            said.append("stop")

    async def nothing(doer: Doer, request: Request) -> None:
        pass

    doer = Busy(namespace, nothing)
    replica = Replica(client, namespace, "one", doer)
    async with running(replica.manager):
        await client.create(widget("a", namespace))
        await doer.seen.reach(1)
        replica.cut_off = True
        await until(lambda: said == ["start", "pause"])
        replica.cut_off = False
        await doer.seen.reach(2)
    assert said == ["start", "pause", "pause", "stop"]


async def test_a_reconcile_that_outlives_its_lease_keeps_its_object_to_itself(
    client: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.runtime.driver.CUT", 0.05)
    free, at_work = asyncio.Event(), []

    async def stubborn(doer: Doer, request: Request) -> None:
        assert request.name not in at_work
        at_work.append(request.name)
        while request.name == "a" and not free.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await free.wait()
        at_work.remove(request.name)

    doer = Doer(namespace, stubborn)
    replica = Replica(client, namespace, "one", doer)
    async with running(replica.manager):
        await client.create(widget("a", namespace))
        await doer.seen.reach(1)
        replica.cut_off = True
        async with asyncio.timeout(PATIENCE):
            await replica.election.lost.wait()
            replica.cut_off = False
            await replica.election.elected.wait()
        await client.create(widget("b", namespace))
        await doer.seen.until(lambda seen: "b" in doer.names)
        assert at_work == ["a"]
        assert doer.names.count("a") == 1
        free.set()
        await doer.seen.until(lambda seen: doer.names.count("a") == 2)


async def test_the_next_leader_finishes_what_the_last_began(client: ApiClient, namespace: str) -> None:
    first, second = (Replica(client, namespace, identity, Maker(namespace)) for identity in ("first", "second"))
    async with running(first.manager):
        await first.election.elected.wait()
        async with running(second.manager):
            await client.create(widget("a", namespace))
            await until_found(client, ConfigMap, "a", namespace, lambda found: True)
            first.cut_off = True
            await first.election.lost.wait()
            await client.create(widget("b", namespace))
            await until_found(client, ConfigMap, "b", namespace, lambda found: True)
            assert second.election.leading()
            assert not first.election.leading()


async def test_a_standby_ends_when_it_is_told_to(client: ApiClient, namespace: str) -> None:
    leader = Replica(client, namespace, "leader", Maker(namespace))
    standby = Replica(client, namespace, "standby", Maker(namespace))
    async with running(leader.manager):
        await leader.election.elected.wait()
        async with running(standby.manager):
            await until(lambda: standby.manager.synced)
        assert leader.election.leading()
        assert (await client.get(Lease, "leader", namespace)).spec.holder_identity == "leader"


async def test_finalizers_that_hold_are_seen_by_a_leader(client: ApiClient, namespace: str) -> None:
    """A guarded client tells what a deletion leaves."""
    held: list[Any] = []

    async def remove(doer: Doer, request: Request) -> None:
        held.append(await doer.client.delete(Ref(Widget, request.name, namespace)))
        held.append(await doer.client.find(Widget, request.name, namespace))
        doer.kind_done.set()  # type: ignore[attr-defined]

    doer = Doer(namespace, remove, kind_done=asyncio.Event())
    replica = Replica(client, namespace, "one", doer)
    async with running(replica.manager):
        made = await client.create(widget("a", namespace, finalizers=("runtime.example.com/held",)))
        async with asyncio.timeout(PATIENCE):
            await doer.kind_done.wait()  # type: ignore[attr-defined]
    assert [found.metadata.uid for found in held[:2]] == [made.metadata.uid] * 2


async def test_a_query_is_where_a_controller_looks(client: ApiClient, namespace: str) -> None:
    manager = Manager(client)
    doer = Doer(namespace, query=Query(namespace=namespace, labels="app=web"))
    manager.add(doer)
    async with running(manager):
        await client.create(widget("a", namespace))
        await client.create(widget("b", namespace, labels={"app": "web"}))
        await doer.seen.reach(1)
    assert doer.names == ["b"]
