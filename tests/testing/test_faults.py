"""What goes wrong on a faulty transport, and that the server's side of it is as it is said to be."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

import pytest

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Event, EventType, Query
from trimtab.client.transport import Call, Silent, Unreachable
from trimtab.model import kubernetes
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme
from trimtab.server.auth.identity import MASTERS, User
from trimtab.server.core import Server
from trimtab.server.local import LocalTransport
from trimtab.store.memory import MemoryStore
from trimtab.testing.faults import OF_WATCHES, USUAL, Chance, Crashed, Fault, FaultyTransport, Script, Strike, fits
from trimtab.testing.loop import LoopClock, SimulatedLoop, run

ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))
INACTIVITY = 150.0


class Bench:
    """A server, a client that always works, and one that does not."""

    def __init__(self, strikes: Mapping[int, Fault | Strike]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.clock = LoopClock(loop)
        self.server = Server(MemoryStore(), clock=self.clock)
        scheme = kubernetes.register(Scheme())
        inner = LocalTransport(self.server, ADMIN)
        self.sound = ApiClient(inner, scheme)
        self.faulty = FaultyTransport(inner, Script(strikes), self.clock)
        self.client = ApiClient(self.faulty, scheme, inactivity=INACTIVITY)

    async def names(self) -> list[str]:
        found = await self.sound.list(ConfigMap, Query(namespace="default"))
        return [item.name for item in found.items if item.name != "kube-root-ca.crt"]

    async def seen(self, since: str, enough: int = 1000) -> list[str]:
        """The names that a watch brings, until it ends or there are enough."""
        names: list[str] = []
        watch = self.client.watch(ConfigMap, Query(namespace="default"), since)
        try:
            async for event in watch:
                names.append(_name(event))
                if len(names) >= enough:
                    break
        finally:
            await watch.aclose()
        return names


def _name(event: Event[ConfigMap]) -> str:
    return "bookmark" if event.type is EventType.BOOKMARK or event.object is None else event.object.name


def config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"))


def on(strikes: Mapping[int, Fault | Strike], test: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        bench = Bench(strikes)
        await bench.server.start()
        try:
            await test(bench)
        finally:
            await bench.server.stop()

    run(main(), seed=1)


@pytest.mark.parametrize(
    ("fault", "raised", "code", "done"),
    [
        (Fault.UNREACHABLE, Unreachable, 0, False),
        (Fault.LOST_REQUEST, Silent, 0, False),
        (Fault.LOST_ANSWER, Silent, 0, True),
        (Fault.THROTTLED, StatusError, 429, False),
        (Fault.INTERNAL, StatusError, 500, False),
        (Fault.UNAVAILABLE, StatusError, 503, False),
        (Fault.CRASH, Crashed, 0, False),
        (Fault.CRASH_AFTER, Crashed, 0, True),
    ],
)
def test_a_write_that_fails_took_effect_or_not(
    fault: Fault, raised: type[BaseException], code: int, done: bool
) -> None:
    async def test(bench: Bench) -> None:
        with pytest.raises(raised) as caught:
            await bench.client.create(config_map("written"))
        assert getattr(caught.value, "code", 0) == code
        assert await bench.names() == (["written"] if done else [])

    on({1: fault}, test)


def test_a_conflict_is_what_a_server_would_say() -> None:
    async def test(bench: Bench) -> None:
        made = await bench.client.create(config_map("fought-over"))
        with pytest.raises(StatusError) as caught:
            await bench.client.patch(made, ConfigMap(metadata=made.metadata, data={"a": "b"}))
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")

    on({2: Fault.CONFLICT}, test)


def test_a_throttled_call_is_told_when_to_come_again() -> None:
    async def test(bench: Bench) -> None:
        with pytest.raises(StatusError) as caught:
            await bench.client.create(config_map("hasty"))
        assert caught.value.retry_after == 7

    on({1: Strike(Fault.THROTTLED, seconds=7)}, test)


def test_a_slow_call_takes_its_time() -> None:
    async def test(bench: Bench) -> None:
        began = bench.clock.monotonic()
        await bench.client.create(config_map("slow"))
        assert bench.clock.monotonic() - began == 20

    on({1: Strike(Fault.SLOW, seconds=20)}, test)


def test_nothing_reaches_the_server_after_a_crash() -> None:
    async def test(bench: Bench) -> None:
        watching = asyncio.create_task(bench.seen("0"))
        await asyncio.sleep(1)
        with pytest.raises(Crashed):
            await bench.client.create(config_map("first"))
        with pytest.raises(Crashed):
            await bench.client.create(config_map("second"))
        await bench.sound.create(config_map("other"))
        with pytest.raises(Crashed):
            await watching
        assert await bench.names() == ["other"]

    on({2: Fault.CRASH}, test)


async def three(bench: Bench) -> str:
    """Three config maps, and the revision before them."""
    revision = (await bench.sound.list(ConfigMap)).revision
    for name in "abc":
        await bench.sound.create(config_map(name))
    return revision


def test_a_watch_that_ends_says_nothing() -> None:
    async def test(bench: Bench) -> None:
        assert await bench.seen(await three(bench)) == ["a", "b"]

    on({1: Strike(Fault.ENDED, after=2)}, test)


def test_a_watch_that_breaks_says_so() -> None:
    async def test(bench: Bench) -> None:
        with pytest.raises(Unreachable):
            await bench.seen(await three(bench))

    on({1: Strike(Fault.BROKEN, after=2)}, test)


def test_a_watch_that_hangs_ends_at_the_inactivity_time_out() -> None:
    async def test(bench: Bench) -> None:
        since, began = await three(bench), bench.clock.monotonic()
        with pytest.raises(Silent):
            await bench.seen(since)
        assert bench.clock.monotonic() - began == INACTIVITY

    on({1: Strike(Fault.HANGING, after=1)}, test)


def test_a_watch_may_be_gone_in_the_stream() -> None:
    async def test(bench: Bench) -> None:
        with pytest.raises(StatusError) as caught:
            await bench.seen(await three(bench))
        assert (caught.value.code, caught.value.reason) == (410, "Expired")

    on({1: Strike(Fault.GONE, after=1)}, test)


def test_without_bookmarks_a_quiet_watch_is_a_silent_one() -> None:
    async def test(bench: Bench) -> None:
        revision = (await bench.sound.list(ConfigMap)).revision
        with pytest.raises(Silent):
            await bench.seen(revision)

    on({1: Fault.NO_BOOKMARKS}, test)


def test_events_may_be_late_but_keep_their_order() -> None:
    async def test(bench: Bench) -> None:
        since, began = await three(bench), bench.clock.monotonic()
        assert await bench.seen(since, 3) == ["a", "b", "c"]
        assert bench.clock.monotonic() - began == 30

    on({1: Strike(Fault.LATE, after=1, seconds=30)}, test)


def test_a_resumed_watch_may_repeat_its_last_events() -> None:
    async def test(bench: Bench) -> None:
        since = await three(bench)
        assert await bench.seen(since) == ["a", "b"]
        known = await bench.sound.get(ConfigMap, "b", "default")
        assert await bench.seen(str(known.metadata.resource_version), 3) == ["a", "b", "c"]

    on({1: Strike(Fault.ENDED, after=2), 2: Strike(Fault.REPEATED, after=2)}, test)


def test_a_watch_after_a_new_list_repeats_nothing() -> None:
    async def test(bench: Bench) -> None:
        since = await three(bench)
        await bench.seen(since)
        revision = (await bench.sound.list(ConfigMap)).revision
        await bench.sound.create(config_map("d"))
        assert await bench.seen(revision, 1) == ["d"]

    on({1: Strike(Fault.ENDED, after=2), 2: Strike(Fault.REPEATED, after=2)}, test)


def test_calm_disarms_the_faults_of_open_watches() -> None:
    async def test(bench: Bench) -> None:
        revision = (await bench.sound.list(ConfigMap)).revision
        watching = asyncio.create_task(bench.seen(revision, 3))
        await asyncio.sleep(1)
        bench.faulty.calm()
        for name in "abc":
            await bench.sound.create(config_map(name))
        assert await watching == ["a", "b", "c"]

    on({1: Strike(Fault.BROKEN, after=1)}, test)


def test_chance_gives_each_fault_its_rate_where_it_makes_sense() -> None:
    write, watch = Call(method="PATCH", path="/x"), Call(method="GET", path="/x")
    plan, found = Chance(random.Random(1)), Counter[Fault]()
    for number in range(20_000):
        for call, watching in ((write, False), (watch, True)):
            strike = plan.strike(number, call, watching)
            if strike is not None:
                assert fits(strike.fault, call, watch=watching)
                found[strike.fault] += 1
    for fault in (Fault.LOST_ANSWER, Fault.CONFLICT, *OF_WATCHES & USUAL.keys()):
        assert found[fault] / 20_000 == pytest.approx(USUAL[fault], rel=0.2)


def test_one_seed_is_one_plan() -> None:
    def drawn(seed: int) -> list[Strike | None]:
        plan = Chance(random.Random(seed))
        return [plan.strike(number, Call(method="POST", path="/x"), False) for number in range(200)]

    assert drawn(1) == drawn(1) != drawn(2)


def test_reads_are_never_struck_by_what_only_writes_suffer() -> None:
    read = Call(method="GET", path="/x")
    struck = [
        fault for fault in (Fault.CONFLICT, Fault.LOST_ANSWER, Fault.CRASH_AFTER) if fits(fault, read, watch=False)
    ]
    assert struck == []
