"""A process in a session of its own, ours or adopted: its start, its signals and its end.

It does not end with us: its output goes to a file, its session is its own, and nothing of ours is inherited. Its end is
told by a pidfd, which works for a child and for one that an earlier life of ours started. When the leader ends, the rest
of its process group is killed, as a container ends with its first process. What has left the group is found by its
environment (`records.kill_rest`).

Caveat: of an adopted process the exit code is not known.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

UNKNOWN = 255  # the exit code of what ended unseen, as Kubernetes has it

_children: dict[int, subprocess.Popen[bytes]] = {}
"""Those that this process started and has not seen end, by pid."""


class Process:
    """One that runs. `ended` has its exit code; 128 and the signal's number when one killed it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(self._descriptor, self._end)

    def signal(self, number: int) -> None:
        """To the leader alone, as Kubernetes does. Nothing when it has ended."""
        if self._descriptor >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    def release(self) -> None:
        """Follow it no more; it goes on."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    async def end(self, grace: float) -> int:
        """SIGTERM, after `grace` seconds SIGKILL; the exit code."""
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace):
                return await asyncio.shield(self.ended)
        except TimeoutError:
            self.signal(signal.SIGKILL)
            return await asyncio.shield(self.ended)

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # before a child is waited for: so long its number stays its own
        self.release()
        if not self.ended.done():
            self.ended.set_result(reap(self.pid))


def spawn(command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> int:
    """Start it; the pid. OSError when there is no such program or folder. Takes a millisecond or two, and is not to be
    cut in two by a cancellation: so it runs where it is called."""
    with open(log, "ab", opener=_for_us_alone) as output:
        child = subprocess.Popen(  # noqa: S603 - the command of a Deployment is what this system is for
            tuple(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
    _children[child.pid] = child
    return child.pid


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def reap(pid: int) -> int:
    """The exit code of a process that has ended."""
    child = _children.get(pid)
    if child is None:
        return UNKNOWN
    code = child.poll()
    if code is None:
        return UNKNOWN
    del _children[pid]
    return code if code >= 0 else 128 - code


def follow(pid: int) -> Process | None:
    """A process that runs already; None when it has just ended."""
    try:
        return Process(pid)
    except (ProcessLookupError, OSError):
        reap(pid)
        return None


async def executed(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path, timeout: float
) -> tuple[int, bytes]:
    """Run a command to its end; its exit code and the beginning of what it said. It is killed with all that it started
    when it takes too long (TimeoutError). OSError."""
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout):
            said = b""
            assert child.stdout is not None  # noqa: S101 - a pipe was asked for
            while part := await child.stdout.read(65536):
                said = (said + part)[:SAID]
            return await child.wait(), said
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()


SAID = 1024  # bytes of a command's output that are kept
