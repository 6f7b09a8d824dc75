"""A peer as a child process: its output goes to a file, and it never outlives us.

On Linux the kernel kills the child when the thread that started it ends, however it ends, so start a process from a
thread that lives as long as it should (the main one, in tests). Elsewhere `stop` is all there is.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_PR_SET_PDEATHSIG = 1


class PeerFailed(Exception):  # noqa: N818 - it reads as what happened
    """The process ended, or was not ready in time; the message ends with the tail of its log."""


class Process:
    """Runs from construction until `stop`; `log` is the file with all that it printed."""

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = Path(command[0]).name
        self.log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(  # noqa: S603 - the command is ours
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if env is None else {**os.environ, **env},
                start_new_session=True,  # Ctrl-C goes to the test run, which then stops its peers in order
                preexec_fn=_end_with_parent(os.getpid()) if sys.platform == "linux" else None,
            )
        self.pid = self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def wait_until(self, ready: Callable[[], bool], *, within: float) -> None:
        """Asks until `ready` says yes; raises when the process ends first or the time is over."""
        deadline = time.monotonic() + within
        while not ready():
            if not self.running:
                raise PeerFailed(f"{self.name} ended with code {self._popen.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise PeerFailed(f"{self.name} was not ready within {within:g} s:\n{self.tail()}")
            time.sleep(0.02)

    def stop(self, *, grace: float = 10.0) -> None:
        """Asks it to end, and ends it when it has not done so within the grace period."""
        self._popen.terminate()
        try:
            self._popen.wait(grace)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()

    def kill(self) -> None:
        """Ends it at once, as a power cut would."""
        self._popen.kill()
        self._popen.wait()

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _end_with_parent(parent: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None)  # loaded before the fork: the child may only make system calls

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended between the fork and the request
            os._exit(1)

    return ask
