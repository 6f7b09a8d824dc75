"""An event loop whose time is virtual and whose order comes from a seed.

Flow: of all that is ready, one step at a time is chosen by a seeded random generator. When nothing is ready, time jumps to
the next timer. So an hour of back-off passes in a millisecond, and each seed is another order of events.

Guarantees: the same seed and the same program give the same steps. The choice is among lanes in the order of their
numbers, and a lane's number is made of names and counts alone: neither addresses nor PYTHONHASHSEED nor the order in which
a set woke its waiters have a say. Steps of one task keep their order, and so do plain callbacks among each other (asyncio
promises both; futures, locks, queues, time-outs and task groups need no more).

Assumptions: the program takes time from the loop (or from `LoopClock`), and randomness from a generator with a seed of its
own. It has no sockets, threads or subprocesses: those are refused; `asyncio.to_thread` runs its function at some step.

Caveats: asyncio itself always runs in order of readiness, so a program that counts on one `sleep(0)` being enough for
someone else to get ready may fail here and never elsewhere. It is fragile anyhow.

It stops a run that would never end: `Deadlock`, `Endless` virtual time, and `HotLoop` (many steps at one moment).
"""

from __future__ import annotations

import asyncio
import collections
import heapq
import random
import threading
import zlib
from bisect import insort
from collections.abc import Callable, Coroutine
from contextvars import Context
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeVar

from trimtab.testing.clock import START
from trimtab.testing.simulated_process import PROCESS, SimulatedProcess, State

T = TypeVar("T")
DAY = 86_400.0
STEPS_AT_ONE_MOMENT = 200_000
STEPS_TO_CLEAR_AWAY = 1_000_000
SHOWN = 12


class Stuck(RuntimeError):  # noqa: N818 - it reads as what happened
    """The run would never end. The message says who does what."""


class Deadlock(Stuck):
    """Nothing is ready, no timer is set, and the program still waits."""


class Endless(Stuck):
    """More virtual time has passed than the run may take."""


class HotLoop(Stuck):
    """Steps upon steps, and no time passes: somebody tries again without waiting."""


def run(work: Coroutine[Any, Any, T], *, seed: int | str, longest: float = DAY) -> T:
    """`asyncio.run` on a simulated loop."""
    loop = SimulatedLoop(seed, longest=longest)
    try:
        return loop.run_until_complete(work)
    finally:
        loop.clear_away()


class SimulatedLoop(asyncio.BaseEventLoop):
    """Deterministic, without the outside world. See the module for the contract."""

    _ready: list[tuple[int, int, asyncio.Handle]]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(
        self, seed: int | str, *, longest: float = DAY, hottest: int = STEPS_AT_ONE_MOMENT, trace: bool = False
    ) -> None:
        """`trace` keeps a line for each step in `self.trace`."""
        super().__init__()
        self.seed = seed
        self.steps = 0
        self.trace: list[str] | None = [] if trace else None
        self.spun = ""
        """Where a step was that did not end; set by `watchdog`."""
        self._random = random.Random(f"schedule {seed}")  # noqa: S311 - texts are hashed the same way everywhere
        self._now = 0.0
        self._longest = longest
        self._hottest = hottest
        self._moment_began = 0  # the step
        self._mark = 0
        self._ready = []  # sorted by lane, then by arrival
        self._arrivals = 0
        self._waiting: list[tuple[SimulatedProcess, asyncio.Handle]] = []  # steps of stalled processes
        self._newborn: list[tuple[_Task, asyncio.Handle]] = []
        self._born: collections.Counter[tuple[int, str]] = collections.Counter()
        self._cancelled_timers = 0
        self._clearing = False

    def time(self) -> float:
        return self._now

    @property
    def fingerprint(self) -> str:
        """Equal for two runs that took the same steps at the same times."""
        return f"{self.steps}-{self._mark & 0xFFFFFFFF:08x}"

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        self._check_closed()  # type: ignore[attr-defined]
        handle = asyncio.Handle(callback, args, self, context)
        task = getattr(callback, "__self__", None)
        if type(task) is not _Task:
            self._add(0, handle)
        elif task.lane:
            self._add(task.lane, handle)
        else:
            self._newborn.append((task, handle))
        return handle

    def create_task(  # type: ignore[override]
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        self._check_closed()  # type: ignore[attr-defined]
        return _Task(coro, self, name, context)

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if self._thread_id not in (None, threading.get_ident()):  # type: ignore[attr-defined]
            raise RuntimeError("a simulated loop takes nothing from other threads: no seed decides when they come")
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Runs the function on the loop, at a step of its own. It must not wait for anything but itself."""

        async def at_some_step() -> T:
            return func(*args)

        return self.create_task(at_some_step(), name=f"executor {getattr(func, '__qualname__', '')}")

    def clear_away(self) -> None:
        """End what still runs, the dead too, and close. Failures of the dead interest nobody."""
        self._clearing = True
        self._moment_began, self._hottest = self.steps, STEPS_TO_CLEAR_AWAY
        self._longest = self._now + DAY
        self.wake_stalled()
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: getattr(task, "lane", 0))
        self.set_exception_handler(lambda loop, context: None)
        try:
            for task in tasks:
                task.cancel()
            if tasks:
                self.run_until_complete(_ended(tasks))
            self.run_until_complete(self.shutdown_asyncgens())
        except Stuck:
            pass  # it does not want to end; the verdict about the run is not changed by that
        finally:
            for task in asyncio.all_tasks(self):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
            self.close()

    def wake_stalled(self) -> None:
        """To be called after a process was resumed."""
        held, self._waiting = self._waiting, []
        for process, handle in held:
            if process.state is State.RUNNING or self._clearing:
                task = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
                self._add(task.lane if type(task) is _Task else 0, handle)
            else:
                self._waiting.append((process, handle))

    def _name_newborn(self) -> None:
        """Give lanes to the tasks that the last step has made. Only now they have the names that they were given."""
        for task, handle in self._newborn:
            name = task.get_name()
            count = self._born[task.parent, name]
            self._born[task.parent, name] = count + 1
            if name == task.unnamed:
                task.set_name(f"{name}-{count}")
            task.lane = zlib.crc32(f"{task.parent}/{name}/{count}".encode()) | 1  # never 0, the lane of plain callbacks
            self._add(task.lane, handle)
        self._newborn.clear()

    def _add(self, lane: int, handle: asyncio.Handle) -> None:
        self._arrivals += 1
        insort(self._ready, (lane, self._arrivals, handle))

    def _run_once(self) -> None:
        """One step. (`run_forever` calls it until the loop is stopped.)"""
        if self._newborn:
            self._name_newborn()
        ready = self._ready
        while not ready:
            self._pass_time()
        index = int(self._random.random() * len(ready))
        lane = ready[index][0]
        while index and ready[index - 1][0] == lane:  # the first of its lane
            index -= 1
        handle = ready.pop(index)[2]
        if handle._cancelled:
            return
        process = handle._context.get(PROCESS)  # type: ignore[attr-defined]
        if process is not None and not self._clearing and not process.may_step():
            self._waiting.append((process, handle))
            return
        self.steps += 1
        self._mark = hash((self._mark, lane, self._now))  # of numbers: the same in every run
        if self.trace is not None:
            self.trace.append(f"{self._now:.6f} {_name(handle)}")
        handle._run()
        if self.steps - self._moment_began > self._hottest:
            self._too_hot()
        if self.spun and not self._clearing:
            raise HotLoop(f"a step ran on without ever waiting, after {self._so_far()}; it was here:\n{self.spun}")

    def _pass_time(self) -> None:
        """Go to the next timer, and make ready all that are due then."""
        timers = self._scheduled
        while timers and timers[0]._cancelled:
            heapq.heappop(timers)._scheduled = False  # type: ignore[attr-defined]
        if not timers:
            raise Deadlock(f"nothing is ready and no timer is set, after {self._so_far()}{self._who_waits()}")
        when = timers[0].when()
        if when > self._now:
            self._now = when
            self._moment_began = self.steps
        if self._now > self._longest:
            raise Endless(f"still not done after {self._so_far()}{self._who_waits()}")
        while timers and timers[0].when() <= self._now:
            timer = heapq.heappop(timers)
            timer._scheduled = False  # type: ignore[attr-defined]
            if not timer._cancelled:
                self._add(self._random.getrandbits(32), timer)  # asyncio gives timers of one moment no order

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by a timer that is cancelled. Time-outs that were not needed would fill the heap."""
        self._cancelled_timers += 1
        if self._cancelled_timers > 100 and self._cancelled_timers * 2 > len(self._scheduled):
            self._scheduled = [timer for timer in self._scheduled if not timer._cancelled]
            heapq.heapify(self._scheduled)
            self._cancelled_timers = 0

    def _too_hot(self) -> NoReturn:
        names = collections.Counter(_name(handle) for _, _, handle in self._ready)
        busy = "".join(f"\n  {name}" for name, _ in names.most_common(SHOWN))
        self._moment_began = self.steps
        raise HotLoop(f"{self._hottest} steps and no time passes, after {self._so_far()}; ready are{busy or ' none'}")

    def _so_far(self) -> str:
        return f"{self.steps} steps and {self._now:g} s of seed {self.seed!r}"

    def _who_waits(self) -> str:
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        lines = [f"\n  {task.get_name()} {_where(task)}" for task in tasks]
        more = f"\n  and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        return "; these wait:" + "".join(lines[:SHOWN]) + more


class LoopClock:
    """The `Clock` of a simulated loop. Each process may have one of its own, since wall clocks disagree and jump."""

    def __init__(self, loop: SimulatedLoop, start: datetime = START) -> None:
        self._loop = loop
        self._start = start
        self._jumped = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time() + self._jumped)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, forward or back."""
        self._jumped += seconds


class _Task(asyncio.Task[Any]):
    """A task with a lane. One that is not named gets the name of its coroutine and a count, the same in every run."""

    def __init__(self, coro: Any, loop: SimulatedLoop, name: str | None, context: Context | None) -> None:
        self.lane = 0
        parent = asyncio.current_task(loop)
        self.parent: int = parent.lane if type(parent) is _Task else 0
        self.unnamed = str(getattr(coro, "__qualname__", "task"))
        super().__init__(coro, loop=loop, name=name or self.unnamed, context=context)


async def _ended(tasks: list[asyncio.Task[Any]]) -> None:
    """Some catch their cancellation once, or clean up; none gets more than a few chances."""
    for _ in range(3):
        _, left = await asyncio.wait(tasks, timeout=60)
        if not left:
            break
        for task in sorted(left, key=lambda task: getattr(task, "lane", 0)):
            task.cancel()
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # looked at, so that nobody complains


def _name(handle: asyncio.Handle) -> str:
    callback: Any = handle._callback  # type: ignore[attr-defined]
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return task.get_name()
    return str(getattr(callback, "__qualname__", type(callback).__name__))


def _where(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=None)
    return " in ".join(f"{frame.f_code.co_name}:{frame.f_lineno}" for frame in reversed(frames)) or "(not begun)"


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(self: SimulatedLoop, *args: object, **options: object) -> NoReturn:
        raise NotImplementedError(
            f"a simulated loop has no outside world, so no {name}; give the program something in memory"
        )

    return refuse


for _outside in (
    *("add_reader", "add_writer", "add_signal_handler", "getaddrinfo", "getnameinfo", "start_tls", "sendfile"),
    *("create_connection", "create_server", "create_datagram_endpoint", "create_unix_connection", "create_unix_server"),
    *("sock_recv", "sock_recv_into", "sock_sendall", "sock_connect", "sock_accept", "connect_accepted_socket"),
    *("connect_read_pipe", "connect_write_pipe", "subprocess_shell", "subprocess_exec"),
):
    setattr(SimulatedLoop, _outside, _refusal(_outside))
