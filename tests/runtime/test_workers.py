"""Work in other processes: held to its time and memory, and never in the way of other work."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import statistics
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvloop

from trimtab.runtime.workers.pool import (
    RemoteTraceback,
    WorkerCrashed,
    WorkerFailed,
    WorkerMemory,
    WorkerMessageTooLarge,
    Workers,
    WorkerTimeout,
)
from trimtab.testing.clock import FakeClock

MIB = 1 << 20


def double(number: int) -> int:
    return number * 2


def process_id() -> int:
    return os.getpid()


def echo(value: object) -> object:
    return value


def allocate(size: int) -> int:
    return len(bytearray(size))


def hang(pipe: str = "") -> None:
    if pipe:
        Path(pipe).write_text(str(os.getpid()))
    while True:
        time.sleep(60)


def burn(seconds: float) -> int:
    until, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        rounds += 1
    return rounds


def crash(number: int) -> None:
    os.kill(os.getpid(), number)


def read_nowhere() -> None:
    ctypes.string_at(0)


def leave(code: int) -> None:
    os._exit(code)


def fail(text: str) -> None:
    raise ValueError(text)


def stop_the_program() -> None:
    sys.exit(3)


class UnportableError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def fail_strangely() -> None:
    raise UnportableError(1, 2)


def keep(kept: list[bytearray] = []) -> int:  # noqa: B006 - it leaks on purpose
    kept.append(bytearray(40 * MIB))
    return os.getpid()


def print_something() -> str:
    print("noise", flush=True)
    return "done"


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    async with Workers(count=2, memory=128 * MIB) as made:
        yield made


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """Where a job says that it runs."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


async def test_a_function_runs_in_another_process(workers: Workers) -> None:
    assert await workers.run(double, 21) == 42
    assert await workers.run(process_id) != os.getpid()


async def test_a_worker_is_used_again(workers: Workers) -> None:
    assert await workers.run(process_id) == await workers.run(process_id)
    assert workers.processes == 1


async def test_an_isolated_job_has_a_process_of_its_own(workers: Workers) -> None:
    first = await workers.run(process_id)
    assert await workers.run(process_id, isolated=True) != first
    assert await workers.run(process_id) == first


async def test_no_more_processes_than_said(workers: Workers) -> None:
    ids = await asyncio.gather(*(workers.run(process_id) for _ in range(6)))
    assert len(set(ids)) <= 2


async def test_no_process_before_there_is_work(workers: Workers) -> None:
    assert workers.processes == 0


async def test_megabytes_go_through(workers: Workers) -> None:
    document = os.urandom(8 * MIB)
    assert await workers.run(echo, document) == document


async def test_a_job_over_its_time_is_killed(pipe: Path) -> None:
    clock = FakeClock()
    async with Workers(count=1, clock=clock) as workers:
        job = asyncio.create_task(workers.run(hang, str(pipe), timeout=5))
        number = await _started(pipe)
        await clock.advance(5.1)
        with pytest.raises(WorkerTimeout, match=r"hang took over 5 s"):
            await job
        await workers.close()
        assert not _alive(number)


async def test_after_a_timeout_there_is_a_new_worker(workers: Workers) -> None:
    with pytest.raises(WorkerTimeout):
        await workers.run(hang, timeout=0.05)
    assert await workers.run(double, 2) == 4


async def test_a_job_over_its_memory_fails_alone(workers: Workers) -> None:
    with pytest.raises(WorkerMemory, match=r"allocate wanted more than"):
        await workers.run(allocate, 500 * MIB)
    assert await workers.run(allocate, 50 * MIB) == 50 * MIB


async def test_a_job_may_have_more_memory_than_others(workers: Workers) -> None:
    assert await workers.run(allocate, 200 * MIB, memory=300 * MIB) == 200 * MIB


async def test_arguments_count_as_memory(workers: Workers) -> None:
    with pytest.raises(WorkerMemory):
        await workers.run(echo, list(range(2_000_000)), memory=16 * MIB)


async def test_a_worker_that_keeps_memory_is_replaced(workers: Workers) -> None:
    assert await workers.run(keep) != await workers.run(keep)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
async def test_a_crash_is_told_with_its_signal(workers: Workers, number: signal.Signals) -> None:
    with pytest.raises(WorkerCrashed, match=number.name) as raised:
        await workers.run(crash, number)
    assert raised.value.signal is number


async def test_a_crash_in_c_leaves_other_jobs_alone(workers: Workers) -> None:
    crashed, result = await asyncio.gather(workers.run(read_nowhere), workers.run(double, 4), return_exceptions=True)
    assert isinstance(crashed, WorkerCrashed)
    assert crashed.signal is signal.SIGSEGV
    assert result == 8


async def test_a_process_that_leaves_is_told_with_its_code(workers: Workers) -> None:
    with pytest.raises(WorkerCrashed, match=r"left with code 7"):
        await workers.run(leave, 7)


async def test_a_worker_that_died_while_idle_is_not_used(workers: Workers) -> None:
    number = await workers.run(process_id)
    os.kill(number, signal.SIGKILL)
    await next(iter(workers._idle)).process.wait()
    assert await workers.run(process_id) != number


async def test_the_functions_own_exception_is_raised_with_its_remote_traceback(workers: Workers) -> None:
    with pytest.raises(ValueError, match=r"^no such package$") as raised:
        await workers.run(fail, "no such package")
    assert isinstance(raised.value.__cause__, RemoteTraceback)
    assert "in fail" in str(raised.value.__cause__)


async def test_a_worker_survives_an_exception(workers: Workers) -> None:
    number = await workers.run(process_id)
    with pytest.raises(ValueError, match="x"):
        await workers.run(fail, "x")
    assert await workers.run(process_id) == number


async def test_an_exception_that_cannot_travel_is_told(workers: Workers) -> None:
    with pytest.raises(WorkerFailed, match=r"UnportableError: 1 and 2"):
        await workers.run(fail_strangely)


async def test_a_job_cannot_stop_the_program(workers: Workers) -> None:
    with pytest.raises(WorkerFailed, match=r"SystemExit: 3"):
        await workers.run(stop_the_program)


async def test_a_result_that_cannot_be_pickled_is_told(workers: Workers) -> None:
    with pytest.raises(TypeError, match="pickle"):
        await workers.run(threading.Lock)


async def test_a_result_over_the_bound_is_refused() -> None:
    async with Workers(count=1, largest_message=1000) as workers:
        with pytest.raises(WorkerMessageTooLarge, match=r"result of .*\.bytes .* over 1000"):
            await workers.run(bytes, 2000)
        assert await workers.run(double, 1) == 2


async def test_arguments_over_the_bound_are_refused() -> None:
    async with Workers(count=1, largest_message=1000) as workers:
        with pytest.raises(WorkerMessageTooLarge, match="arguments"):
            await workers.run(echo, b"x" * 2000)
        assert workers.processes == 0


async def test_a_function_without_a_module_is_refused_at_once(workers: Workers) -> None:
    with pytest.raises(TypeError, match="is not a function of a module"):
        await workers.run(lambda: 1)
    assert workers.processes == 0


async def test_a_cancelled_job_is_killed(workers: Workers, pipe: Path) -> None:
    job = asyncio.create_task(workers.run(hang, str(pipe)))
    number = await _started(pipe)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    await asyncio.gather(*workers._ending)
    assert not _alive(number)
    assert await workers.run(double, 1) == 2


async def test_close_ends_jobs_at_work(pipe: Path) -> None:
    workers = Workers(count=1)
    job = asyncio.create_task(workers.run(hang, str(pipe)))
    number = await _started(pipe)
    await workers.close()
    assert not _alive(number)
    with pytest.raises(WorkerCrashed):
        await job
    with pytest.raises(RuntimeError, match="closed"):
        await workers.run(double, 1)


async def test_a_worker_ends_that_was_idle_for_long() -> None:
    clock = FakeClock()
    async with Workers(count=1, idle=30, clock=clock) as workers:
        await workers.run(double, 1)
        await clock.advance(29)
        assert workers.processes == 1
        await clock.advance(2)
        assert workers.processes == 0


async def test_ctrl_c_is_not_for_workers(workers: Workers) -> None:
    number = await workers.run(process_id)
    os.kill(number, signal.SIGINT)
    assert await workers.run(process_id) == number
    assert os.getsid(number) != os.getsid(0)


def test_they_work_on_uvloop() -> None:
    async def jobs() -> tuple[int, bool]:
        async with Workers(count=2) as workers:
            results = await asyncio.gather(workers.run(double, 4), workers.run(leave, 1), return_exceptions=True)
            return results[0], isinstance(results[1], WorkerCrashed)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(jobs()) == (8, True)


async def test_what_a_job_prints_goes_nowhere(workers: Workers, capfd: pytest.CaptureFixture[str]) -> None:
    assert await workers.run(print_something) == "done"
    assert "noise" not in "".join(capfd.readouterr())


async def test_the_event_loop_is_free_while_four_jobs_burn() -> None:
    late: list[float] = []

    async def watch() -> None:
        while True:
            asked = time.perf_counter()
            await asyncio.sleep(0.002)
            late.append(time.perf_counter() - asked - 0.002)

    async with Workers(count=4) as workers:
        await asyncio.gather(*(workers.run(double, n) for n in range(4)))
        watching = asyncio.create_task(watch())
        await asyncio.gather(*(workers.run(burn, 0.3) for _ in range(4)))
        watching.cancel()
    assert statistics.median(late) < 0.05, "a loop that is held is late by the length of a job"
    assert len(late) > 3


async def test_workers_die_with_a_parent_that_is_killed(tmp_path: Path, pipe: Path) -> None:
    script = tmp_path / "my_operator.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import asyncio
            from tests.runtime.test_workers import hang
            from trimtab.runtime.workers import Workers

            asyncio.run(Workers(count=1).run(hang, {str(pipe)!r}))
            """
        )
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, script, env=_environment())
    try:
        descriptor = os.pidfd_open(await _started(pipe))
    finally:
        parent.kill()
        await parent.wait()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), 10)
    finally:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)


@pytest.mark.parametrize("how", ["file", "module"])
def test_functions_of_the_main_module_run(tmp_path: Path, how: str) -> None:
    (tmp_path / "my_operator.py").write_text(
        textwrap.dedent(
            """
            import asyncio
            from dataclasses import dataclass
            from trimtab.runtime.workers import Workers

            @dataclass
            class Found:
                name: str

            def look(name):
                return Found(name)

            async def main():
                async with Workers(count=1) as workers:
                    print(await workers.run(look, "openssl"))

            if __name__ == "__main__":
                asyncio.run(main())
            """
        )
    )
    command = ["-m", "my_operator"] if how == "module" else ["my_operator.py"]
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "Found(name='openssl')\n", done.stderr


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


async def _started(pipe: Path) -> int:
    """The process that runs `hang`, as soon as it does."""
    return int(await asyncio.to_thread(pipe.read_text))


def _alive(number: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, 0)
        return True
    return False
