"""Processes for work that would hold the event loop: parsing, matching, anything over 5 ms of CPU.

    workers = Workers(count=2, memory=512 << 20)
    packages = await workers.run(parse_sbom, document, timeout=30)     # parse_sbom is a function of a module
    await workers.close()

Flow: a free worker, or a new one, gets the function's name and the pickled arguments over a socket and answers with the
pickled result. A worker that was idle for long ends.

Guarantees: a job is held to its time (then its process is killed) and its memory; a job that crashes, hangs or is
cancelled takes only its own process with it; the function's exception is raised here, with the remote traceback as its
cause; workers die with this process, whatever kills it, and do not see Ctrl-C.

Assumptions: the function can be imported by its module's name or file; arguments and results can be pickled. Pass bytes
rather than large trees of objects: pickling those is done in this process.

Caveats: time counts from when a process is there, so the start of Python (tens of milliseconds) is in it. What a job
leaves behind (a global, a thread) stays in its process for the next one; `isolated=True` gives a job a process of its
own. This bounds resources; it is no sandbox for hostile code.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from trimtab.model.clock import Clock, SystemClock
from trimtab.runtime.deadline import within
from trimtab.runtime.workers import child

P = ParamSpec("P")
T = TypeVar("T")

MEMORY = 512 << 20
TIMEOUT = 60.0
IDLE = 60.0
LARGEST_MESSAGE = 256 << 20


class WorkerError(Exception):
    """A job without a result, for a reason that is not the function's own exception."""


class WorkerTimeout(WorkerError, TimeoutError):  # noqa: N818 - it reads as what happened
    """The job took too long, and was killed."""


class WorkerMemory(WorkerError):  # noqa: N818
    """The job wanted more memory than it may have."""


class WorkerCrashed(WorkerError):  # noqa: N818
    """The job's process ended. `signal` is what ended it, None when it left by itself with `code`."""

    def __init__(self, function: str, code: int) -> None:
        self.signal = signal.Signals(-code) if code < 0 else None
        self.code = code
        how = f"was ended by {self.signal.name}" if self.signal else f"left with code {code}"
        super().__init__(f"the process of {function} {how}")


class WorkerMessageTooLarge(WorkerError):  # noqa: N818
    """The arguments or the result are too large to be passed."""


class WorkerFailed(WorkerError):  # noqa: N818
    """The function raised what cannot be passed on; this is what it said."""


class RemoteTraceback(Exception):  # noqa: N818
    """Where in the worker the exception came from; it is the cause of that exception."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Workers:
    """A pool. Processes start when there is work and end when there was none for `idle` seconds."""

    def __init__(
        self,
        count: int | None = None,
        memory: int = MEMORY,
        *,
        timeout: float = TIMEOUT,
        idle: float = IDLE,
        largest_message: int = LARGEST_MESSAGE,
        clock: Clock | None = None,
    ) -> None:
        """`memory` is in bytes, for each job, beyond what a worker holds at rest."""
        self._memory, self._timeout, self._idle_time, self._largest = memory, timeout, idle, largest_message
        self._clock = clock or SystemClock()
        self._slots = asyncio.Semaphore(count or os.cpu_count() or 1)
        self._idle: dict[_Worker, asyncio.Task[None]] = {}
        self._busy: set[_Worker] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    async def run(
        self,
        fn: Callable[..., T],
        *args: Any,
        timeout: float | None = None,
        memory: int | None = None,
        isolated: bool = False,
        **kwargs: Any,
    ) -> T:
        """The function's result. `timeout` and `memory` are of this job; the pool's unless given."""
        limit = self._memory if memory is None else memory
        where = _where(fn)
        name = f"{where[0]}.{where[2]}"
        head = pickle.dumps((*where, limit, self._largest), protocol=5)
        arguments = pickle.dumps((args, kwargs), protocol=5)
        if len(arguments) > self._largest:
            raise WorkerMessageTooLarge(f"the arguments of {name} are over {self._largest} bytes")
        async with self._slots:
            if self._closed:
                raise RuntimeError("the workers are closed")
            worker = await self._taken(isolated)
            keep = False
            try:
                seconds = self._timeout if timeout is None else timeout
                answer = await within(self._clock, seconds, worker.ask(head, arguments, self._largest))
                if answer is None:
                    raise WorkerCrashed(name, await worker.process.wait())
                keep = answer[1:2] == child.FRESH and not isolated
            except TimeoutError:
                raise WorkerTimeout(f"{name} took over {seconds:g} s") from None
            finally:
                self._done(worker, keep=keep)
        return _result(name, answer, limit, self._largest)  # type: ignore[no-any-return]

    async def close(self) -> None:
        """End all processes, also those at work: their jobs fail as crashed."""
        self._closed = True
        for worker in (*self._idle, *self._busy):
            worker.kill()
        for worker in tuple(self._idle):
            self._idle.pop(worker).cancel()
            self._bury(worker)
        while self._busy or self._ending:
            await asyncio.gather(*self._ending, *(worker.process.wait() for worker in self._busy))
            await asyncio.sleep(0)  # those who wait for an answer see that there is none

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def processes(self) -> int:
        """How many there are, idle and busy."""
        return len(self._idle) + len(self._busy)

    async def _taken(self, isolated: bool) -> _Worker:
        while self._idle and not isolated:
            worker, bell = self._idle.popitem()  # the one that worked last: the others may come to their end
            bell.cancel()
            if worker.alive:
                self._busy.add(worker)
                return worker
            self._bury(worker)
        worker = await _start()
        self._busy.add(worker)
        return worker

    def _done(self, worker: _Worker, *, keep: bool) -> None:
        self._busy.discard(worker)
        if keep and not self._closed:
            self._idle[worker] = asyncio.create_task(self._rest(worker))
        else:
            self._bury(worker)

    async def _rest(self, worker: _Worker) -> None:
        await self._clock.sleep(self._idle_time)
        del self._idle[worker]
        self._bury(worker)

    def _bury(self, worker: _Worker) -> None:
        worker.kill()
        task = asyncio.create_task(worker.gone())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


class _Worker:
    """One process and the socket to it."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.process, self._reader, self._writer = process, reader, writer

    @property
    def alive(self) -> bool:
        return self.process.returncode is None and not self._reader.at_eof()

    async def ask(self, head: bytes, arguments: bytes, largest: int) -> bytes | None:
        """The answer; None when the process is gone, or no longer itself."""
        try:
            self.send(head)
            self.send(arguments)
            await self._writer.drain()
            header = await self._reader.readexactly(child.HEADER.size)
            (size,) = child.HEADER.unpack(header)
            if size > largest + child.SLACK:
                self.kill()
                return None
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def send(self, frame: bytes) -> None:
        self._writer.write(child.HEADER.pack(len(frame)))
        self._writer.write(frame)

    def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()

    async def gone(self) -> None:
        await self.process.wait()
        self._writer.close()


async def _start() -> _Worker:
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # the folder of the script holds modules with names of the standard library's
                str(Path(child.__file__)),
                str(theirs.fileno()),
                str(os.getpid()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C at the terminal is for the parent alone
            )
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=1 << 20)
    except BaseException:
        ours.close()
        raise
    worker = _Worker(process, reader, writer)
    worker.send(pickle.dumps(sys.path))
    return worker


def _where(fn: Callable[..., Any]) -> tuple[str, str, str]:
    """Module, file and name under which a child finds the function. TypeError when it cannot."""
    module, name = getattr(fn, "__module__", ""), getattr(fn, "__qualname__", "")
    holder = sys.modules.get(module)
    found: Any = holder
    for part in name.split("."):
        found = getattr(found, part, None)
    if holder is None or found is None or found != fn:
        raise TypeError(f"{fn!r} is not a function of a module, so that no other process can find it")
    file = getattr(holder, "__file__", None)
    if module == "__main__":
        sys.modules.setdefault(child.MAIN, holder)  # results may be of its classes
        module = child.MAIN if holder.__spec__ is None else holder.__spec__.name
    return module, os.path.abspath(file) if file else "", name


def _result(name: str, answer: bytes, memory: int, largest: int) -> Any:
    kind, payload = answer[:1], answer[2:]
    if kind == child.RESULT:
        return pickle.loads(payload)  # noqa: S301 - from our own child
    if kind == child.MEMORY:
        raise WorkerMemory(f"{name} wanted more than {memory} bytes of memory")
    if kind == child.LARGE:
        raise WorkerMessageTooLarge(f"the result of {name} has {payload.decode()} bytes, over {largest}")
    carried, text, trace = pickle.loads(payload)  # noqa: S301
    error = WorkerFailed(f"{name}: {text}") if carried is None else pickle.loads(carried)  # noqa: S301
    raise error from RemoteTraceback(trace)
