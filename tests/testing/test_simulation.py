"""Simulations: what the weather does, that calm ends it, and that a seed repeats everything."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time

import pytest

from trimtab.client.protocol import Query, Ref
from trimtab.client.transport import Unreachable
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import ConfigMap, Namespace
from trimtab.model.objectmeta import ObjectMeta, OwnerReference
from trimtab.testing.simulated_process import State
from trimtab.testing.simulation import Simulation, replay, simulate
from trimtab.testing.world import CALM, Host, Restless, Weather, World


def config_map(name: str, namespace: str = "default", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data=data)


async def copier(host: Host) -> None:
    """A careful little controller: every `source-…` gets a `copy-…` with its data."""
    while True:
        try:
            for source in (await host.client.list(ConfigMap, Query(namespace="default"))).items:
                if source.name.startswith("source-"):
                    copy = config_map(source.name.replace("source", "copy"), **(source.data or {}))
                    await changed(host, copy)
        except (StatusError, OSError, TimeoutError) as error:
            host.world.note(f"{host.process.name}: {error!r}")
        await host.clock.sleep(7)


async def changed(host: Host, wanted: ConfigMap) -> None:
    try:
        found = await host.client.get(ConfigMap, wanted.name, wanted.namespace)
    except StatusError as error:
        if error.code != 404:
            raise
        await host.client.create(wanted)
        return
    if found.data != wanted.data:
        await host.client.patch(found, found.replace(data=wanted.data))


async def copying(world: World) -> None:
    world.start("copier", copier)
    for number in range(8):
        await world.client.create(config_map(f"source-{number}", number=str(number)))
        await world.some_time()
    await world.calm()
    for number in range(8):
        copy = await world.client.get(ConfigMap, f"copy-{number}", "default")
        assert copy.data == {"number": str(number)}


@simulate(schedules=20)
async def test_what_is_careful_survives_the_storm(world: World) -> None:
    await copying(world)


def test_a_seed_repeats_every_step() -> None:
    first, second = replay(5, copying), replay(5, copying)
    assert first.trace == second.trace
    assert first.story == second.story
    assert first.fingerprint == Simulation(5).run(copying).fingerprint


def test_another_seed_is_another_story() -> None:
    assert len({Simulation(seed).run(copying).fingerprint for seed in range(5)}) == 5


def test_hashes_of_texts_have_no_say() -> None:
    program = (
        "import sys; sys.path.insert(0, '.')\n"
        "from tests.testing.test_simulation import *\n"
        "print([Simulation(seed).run(copying).fingerprint for seed in range(4)])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(said) == 1


def test_a_schedule_is_quick() -> None:
    Simulation("warm").run(copying)
    began = time.process_time()
    for seed in range(5):
        Simulation(seed).run(copying)
    assert (time.process_time() - began) / 5 < 0.2


def test_a_process_that_crashes_starts_again_from_nothing() -> None:
    async def test(world: World) -> None:
        starts: list[int] = []

        async def counting(host: Host) -> None:
            starts.append(host.incarnation)
            await asyncio.Event().wait()

        world.start("counting", counting)
        await asyncio.sleep(1)
        before = world.host("counting").process
        world.crash("counting")
        await asyncio.sleep(1)
        assert before.state is State.RUNNING, "it dies at its next step, and it takes none"
        before.kill()
        await asyncio.sleep(10)
        assert starts == [1, 2]

    succeeds(test)


def test_a_request_of_the_dead_may_still_arrive() -> None:
    async def test(world: World) -> None:
        async def writer(host: Host) -> None:
            await host.client.create(config_map("last-words"))
            raise AssertionError("it never learns of the answer")

        world.start("writer", writer)
        while not world.network._waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.0001)
        world.host("writer").process.kill()
        await asyncio.sleep(0.5)
        assert await world.client.get(ConfigMap, "last-words", "default")

    succeeds(test)


def test_a_stalled_process_does_not_write() -> None:
    async def test(world: World) -> None:
        async def ticking(host: Host) -> None:
            for number in range(10):
                await host.client.create(config_map(f"tick-{number}"))
                await host.clock.sleep(1)
            await asyncio.Event().wait()

        world.start("ticking", ticking)
        await asyncio.sleep(2.5)
        before = world.store.revision
        await world.stall("ticking", 60)
        assert world.store.revision == before
        await asyncio.sleep(20)
        assert await world.client.get(ConfigMap, "tick-9", "default")

    succeeds(test)


def test_the_server_forgets_nothing_over_an_outage_and_watches_break() -> None:
    async def test(world: World) -> None:
        await world.client.create(config_map("kept"))
        told: list[type[BaseException]] = []

        async def watcher(host: Host) -> None:
            try:
                async for _ in host.client.watch(ConfigMap, Query(), "0"):
                    pass
            except Unreachable as error:
                told.append(type(error))
            await asyncio.Event().wait()

        world.start("watcher", watcher)
        await asyncio.sleep(1)
        await world.outage(5)
        assert await world.client.get(ConfigMap, "kept", "default")
        assert told == [Unreachable]

    succeeds(test)


def test_a_user_waits_for_a_server_that_is_down() -> None:
    async def test(world: World) -> None:
        outage = asyncio.create_task(world.outage(5))
        await asyncio.sleep(1)
        await world.client.create(config_map("patient"))
        assert world.loop.time() >= 5
        await outage

    succeeds(test)


def test_the_server_collects_garbage_and_namespaces_in_virtual_time() -> None:
    async def test(world: World) -> None:
        owner = await world.client.create(config_map("owner"))
        reference = OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=str(owner.metadata.uid))
        owned = ConfigMap(metadata=ObjectMeta(name="owned", namespace="default", owner_references=(reference,)))
        await world.client.create(owned)
        await world.client.create(Namespace(metadata=ObjectMeta(name="short-lived")))
        await world.client.create(config_map("inside", "short-lived"))

        await world.client.delete(Ref(ConfigMap, "owner", "default"))
        await world.client.delete(Ref(Namespace, "short-lived"))
        await world.calm()

        names = [item.name for item in (await world.client.list(ConfigMap)).items]
        assert "owned" not in names
        assert "inside" not in names
        assert "short-lived" not in [item.name for item in (await world.client.list(Namespace)).items]

    for seed in range(10):
        succeeds(test, seed)


def test_who_keeps_writing_is_named() -> None:
    async def test(world: World) -> None:
        async def restless(host: Host) -> None:
            count = 0
            await host.client.create(config_map("moved"))
            while True:
                count += 1
                found = await host.client.get(ConfigMap, "moved", "default")
                await host.client.patch(found, found.replace(data={"count": str(count)}))
                await host.clock.sleep(30)

        world.start("restless", restless)
        await world.calm(patience=600)

    error = Simulation(1, weather=CALM).run(test).error
    assert isinstance(error, Restless)
    assert "restless/1 PATCH /api/v1/namespaces/default/configmaps/moved" in str(error)


def test_two_who_undo_each_other_are_found_out_soon() -> None:
    async def fighter(host: Host) -> None:
        while True:
            found = await host.client.get(ConfigMap, "fought-over", "default")
            with contextlib.suppress(StatusError):
                await host.client.patch(found, found.replace(data={"owner": host.name}))

    async def test(world: World) -> None:
        await world.client.create(config_map("fought-over"))
        world.start("red", fighter)
        world.start("blue", fighter)
        await world.calm()

    error = Simulation(1, weather=CALM).run(test).error
    assert isinstance(error, Restless)
    assert "red/1 PATCH" in str(error)
    assert "blue/1 PATCH" in str(error)


def test_who_ends_although_all_is_well_is_named() -> None:
    async def test(world: World) -> None:
        async def broken(host: Host) -> None:
            await host.clock.sleep(30)
            raise ValueError("no such thing")

        world.start("broken", broken)
        await world.calm(quiet=600)

    error = Simulation(1, weather=CALM).run(test).error
    assert isinstance(error, Restless)
    assert "no such thing" in str(error)


def test_a_failure_tells_its_seed_and_its_story() -> None:
    @simulate(schedules=3, weather=CALM)
    async def check(world: World) -> None:
        world.note("once upon a time")
        assert world.seed != 2

    with pytest.raises(AssertionError) as caught:
        check()
    told = "\n".join(caught.value.__notes__)
    assert "TRIMTAB_SEED=2 repeats it step by step" in told
    assert "once upon a time" in told


def test_one_seed_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[object] = []

    @simulate(schedules=3, weather=CALM)
    async def check(world: World) -> None:
        seeds.append(world.seed)

    monkeypatch.setenv("TRIMTAB_SEED", "17")
    check()
    assert seeds == [17]


def test_a_program_that_escapes_the_seed_is_told_of() -> None:
    runs = 0

    @simulate(schedules=1, weather=CALM)
    async def check(world: World) -> None:
        nonlocal runs
        runs += 1
        await asyncio.sleep(runs)
        raise AssertionError

    with pytest.raises(AssertionError) as caught:
        check()
    assert "went another way" in caught.value.__notes__[-1]


@pytest.mark.parametrize("number", [1, 2])
@simulate(schedules=1, weather=CALM)
async def test_fixtures_and_parameters_come_after_the_world(world: World, number: int) -> None:
    assert world.seed == 0
    assert number in (1, 2)


def succeeds(test: object, seed: int = 1, weather: Weather = CALM) -> None:
    outcome = Simulation(seed, weather=weather).run(test)  # type: ignore[arg-type]
    if outcome.error is not None:
        raise outcome.error
