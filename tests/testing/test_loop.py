"""The simulated loop: virtual time, order by seed, and asyncio's own promises kept."""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from trimtab.testing import loop as module
from trimtab.testing.clock import START
from trimtab.testing.loop import Deadlock, Endless, HotLoop, LoopClock, SimulatedLoop, run

SEEDS = range(60)
Program = Callable[[], Coroutine[Any, Any, Any]]


def traced(program: Program, seed: int) -> tuple[list[str], str]:
    loop = SimulatedLoop(seed, trace=True)
    try:
        loop.run_until_complete(program())
        assert loop.trace is not None
        return loop.trace, loop.fingerprint
    finally:
        loop.clear_away()


async def orders_of_three() -> str:
    order: list[str] = []

    async def worker(name: str) -> None:
        await asyncio.sleep(0)
        order.append(name)

    await asyncio.gather(*(worker(name) for name in "abc"))
    return "".join(order)


def test_time_is_virtual() -> None:
    async def nap() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(3600)
        return loop.time() - began

    assert run(nap(), seed=1) == 3600


def test_seeds_reach_every_order() -> None:
    found = {run(orders_of_three(), seed=seed) for seed in SEEDS}
    assert found == {"".join(order) for order in itertools.permutations("abc")}


def test_one_seed_gives_one_order_step_by_step() -> None:
    for seed in range(5):
        assert traced(busy, seed) == traced(busy, seed)


def test_two_seeds_differ() -> None:
    assert traced(busy, 1)[1] != traced(busy, 2)[1]


def test_the_order_in_which_a_set_wakes_its_waiters_does_not_matter() -> None:
    async def woken(order: list[int]) -> str:
        waiters: dict[int, asyncio.Future[None]] = {}
        said: list[str] = []

        async def wait(number: int) -> None:
            waiters[number] = asyncio.get_running_loop().create_future()
            await waiters[number]
            said.append(str(number))

        tasks = [asyncio.create_task(wait(number)) for number in range(4)]
        await asyncio.sleep(1)
        for number in order:
            waiters[number].set_result(None)
        await asyncio.gather(*tasks)
        return "".join(said)

    found = {run(woken(list(order)), seed=7) for order in itertools.permutations(range(4))}
    assert len(found) == 1


def test_the_seed_of_hashes_does_not_matter() -> None:
    program = (
        "import sys; sys.path.insert(0, '.')\n"
        "from tests.testing.test_loop import busy, traced\n"
        "print([traced(busy, seed)[1] for seed in range(3)])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(said) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_standard_library_promises_is_kept(seed: int) -> None:
    run(busy(), seed=seed)


def test_plain_callbacks_keep_their_order() -> None:
    async def called() -> list[int]:
        loop, order, done = asyncio.get_running_loop(), list[int](), asyncio.Event()
        for number in range(20):
            loop.call_soon(order.append, number)
        loop.call_soon(done.set)
        await done.wait()
        return order

    for seed in SEEDS:
        assert run(called(), seed=seed) == list(range(20))


def test_timers_of_one_moment_come_in_any_order() -> None:
    async def called() -> str:
        loop, order = asyncio.get_running_loop(), list[str]()
        for name in "ab":
            loop.call_later(5, order.append, name)
        await asyncio.sleep(6)
        return "".join(order)

    assert {run(called(), seed=seed) for seed in SEEDS} == {"ab", "ba"}


def test_a_deadlock_is_told_with_who_waits() -> None:
    async def stuck() -> None:
        await asyncio.create_task(asyncio.Event().wait(), name="the one that waits")

    with pytest.raises(Deadlock, match=r"(?s)seed 4.*the one that waits"):
        run(stuck(), seed=4)


def test_endless_time_is_told() -> None:
    async def ticking() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(60)

    with pytest.raises(Endless, match="still not done"):
        run(ticking(), seed=1, longest=3600)


def test_a_hot_loop_is_told_with_who_is_hot() -> None:
    async def hot() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.create_task(hot(), name="hothead")
        await asyncio.sleep(10)
        task.cancel()

    loop = SimulatedLoop(1, hottest=1000)
    with pytest.raises(HotLoop, match="hothead"):
        loop.run_until_complete(main())
    loop.clear_away()


def test_a_function_of_an_executor_runs_on_the_loop() -> None:
    async def outside() -> int:
        return await asyncio.to_thread(threading.get_ident)

    assert run(outside(), seed=1) == threading.get_ident()


def test_there_is_no_outside_world() -> None:
    async def connect() -> None:
        await asyncio.open_connection("127.0.0.1", 1)

    with pytest.raises(NotImplementedError, match="no outside world"):
        run(connect(), seed=1)

    async def listen() -> None:
        with socket.socket() as made:
            await asyncio.get_running_loop().sock_accept(made)

    with pytest.raises(NotImplementedError, match="sock_accept"):
        run(listen(), seed=1)


def test_nothing_comes_from_other_threads() -> None:
    problems: list[BaseException] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def elsewhere() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except RuntimeError as error:
                problems.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()

    run(main(), seed=1)
    assert "other threads" in str(problems[0])


def test_the_clock_of_a_loop_jumps_alone() -> None:
    async def watch() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        clock, other = LoopClock(loop), LoopClock(loop)
        await clock.sleep(90)
        clock.jump(-30)
        assert clock.monotonic() == other.monotonic() == 90
        assert clock.now() - START == timedelta(seconds=60)
        assert other.now() - START == timedelta(seconds=90)

    run(watch(), seed=1)


def test_what_still_runs_is_ended_at_the_close() -> None:
    ended: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            await asyncio.sleep(5)
        ended.append("stubborn")

    async def main() -> None:
        kept.append(asyncio.create_task(stubborn()))
        await asyncio.sleep(1)

    kept: list[asyncio.Task[None]] = []
    run(main(), seed=1)
    assert ended == ["stubborn"]


def test_unneeded_time_outs_do_not_pile_up() -> None:
    async def main() -> int:
        for _ in range(2000):
            async with asyncio.timeout(1000):
                await asyncio.sleep(0.001)
        return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]

    assert run(main(), seed=1) < 500


def test_the_module_says_what_it_is_for() -> None:
    assert "PYTHONHASHSEED" in (module.__doc__ or "")


async def busy() -> None:
    """Uses what asyncio has, and checks what it promises whatever the order."""
    async with asyncio.timeout(10_000), asyncio.TaskGroup() as group:
        for part in (queue, lock, semaphore, condition, groups, time_outs, gathering, shielding, generators, barrier):
            group.create_task(part())


async def queue() -> None:
    """Nothing is lost, and what one producer puts comes out in its order."""
    line: asyncio.Queue[tuple[str, int]] = asyncio.Queue(maxsize=2)
    seen: list[tuple[str, int]] = []

    async def produce(name: str) -> None:
        for number in range(10):
            await line.put((name, number))

    async def consume() -> None:
        while True:
            seen.append(await line.get())
            await asyncio.sleep(0)
            line.task_done()

    consumer = asyncio.create_task(consume())
    await asyncio.gather(*(produce(name) for name in "xyz"))
    await line.join()
    consumer.cancel()
    for name in "xyz":
        assert [number for who, number in seen if who == name] == list(range(10))


async def lock() -> None:
    """One at a time, also when waiters are cancelled."""
    guard, inside = asyncio.Lock(), 0

    async def enter() -> None:
        nonlocal inside
        async with guard:
            inside += 1
            assert inside == 1
            await asyncio.sleep(0)
            inside -= 1

    tasks = [asyncio.create_task(enter()) for _ in range(8)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not guard.locked()


async def semaphore() -> None:
    gate, inside, done = asyncio.Semaphore(2), 0, 0

    async def enter() -> None:
        nonlocal inside, done
        async with gate:
            inside += 1
            assert inside <= 2
            await asyncio.sleep(0.5)
            inside -= 1
            done += 1

    await asyncio.gather(*(enter() for _ in range(7)))
    assert done == 7


async def condition() -> None:
    changed, value = asyncio.Condition(), 0

    async def wait_for(wanted: int) -> None:
        async with changed:
            await changed.wait_for(lambda: value >= wanted)

    tasks = [asyncio.create_task(wait_for(number)) for number in (1, 2, 3)]
    for _ in range(3):
        async with changed:
            value += 1
            changed.notify_all()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)


async def groups() -> None:
    """A failure cancels the others, and comes alone."""
    ended: list[str] = []

    async def other(name: str) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(name)

    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(other("a"))
            group.create_task(other("b"))
            group.create_task(fail())
    except* ValueError as caught:
        assert len(caught.exceptions) == 1  # noqa: PT017
    assert sorted(ended) == ["a", "b"]


async def time_outs() -> None:
    """They come at their time, never after the end of what they guard, and nest."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(50):
            try:
                async with asyncio.timeout(5):
                    await asyncio.Event().wait()
            except TimeoutError:
                assert loop.time() == began + 5
            await asyncio.Event().wait()
    except TimeoutError:
        assert loop.time() == began + 50
    for seconds in (0, 0.001, 3):
        try:
            async with asyncio.timeout(seconds):
                await asyncio.sleep(seconds)
        except TimeoutError:
            pass
    await asyncio.sleep(10)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert await asyncio.wait_for(asyncio.sleep(1, "done"), 2) == "done"
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 2)
    except TimeoutError:
        return
    raise AssertionError


async def gathering() -> None:
    results = await asyncio.gather(*(asyncio.sleep(9 - number, number) for number in range(9)))
    assert results == list(range(9))
    done, pending = await asyncio.wait(
        [asyncio.create_task(asyncio.sleep(seconds)) for seconds in (1, 5)], return_when=asyncio.FIRST_COMPLETED
    )
    assert (len(done), len(pending)) == (1, 1)
    await asyncio.wait(pending)


async def shielding() -> None:
    inner = asyncio.create_task(asyncio.sleep(5, "kept"))
    try:
        async with asyncio.timeout(1):
            await asyncio.shield(inner)
    except TimeoutError:
        assert await inner == "kept"


async def generators() -> None:
    closed: list[bool] = []

    async def count() -> Any:
        try:
            for number in itertools.count():
                await asyncio.sleep(0)
                yield number
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    numbers = count()
    async for number in numbers:
        if number == 3:
            break
    await numbers.aclose()
    assert closed == [True]


async def barrier() -> None:
    gate = asyncio.Barrier(3)
    assert sorted(await asyncio.gather(*(gate.wait() for _ in range(3)))) == [0, 1, 2]
