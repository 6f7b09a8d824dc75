"""An operator under test as a process: what it uses, what it noted, and when it is at rest."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ledger import Ledger

from trimtab.testing.peer import ApiServer
from trimtab.testing.processes import PeerFailed, Process
from trimtab.testing.usage import cpu_seconds, family, resident_bytes

WORKERS = 8
WINDOW, QUIET = 0.5, 0.015  # at rest is who used at most so many seconds of a processor within the window


class Operator:
    """A running operator and its notes."""

    def __init__(self, process: Process, ledger: Ledger) -> None:
        self.process = process
        self.ledger = ledger

    def cpu(self) -> float:
        return cpu_seconds(family(self.process.pid))

    def memory(self) -> int:
        return resident_bytes(family(self.process.pid))

    def rest(self, *, reconciled: int = 0, calls: int = 0, within: float = 600.0) -> float:
        """Wait until it has done all and is quiet. Returns since when, on the wall clock."""
        samples = deque([(time.time(), self.cpu())])
        give_up = time.monotonic() + within
        while True:
            time.sleep(0.05)
            if not self.process.running or time.monotonic() > give_up:
                done = f"{len(self.ledger.starts())} of {reconciled} changes, {self.ledger.calls} of {calls} calls"
                raise PeerFailed(f"{self.process.name} did not come to rest: {done}\n{self.process.tail()}")
            samples.append((time.time(), self.cpu()))
            if samples[-1][0] - samples[0][0] < WINDOW:
                continue
            since, used = samples.popleft()
            quiet = samples[-1][1] - used <= QUIET
            if quiet and self.ledger.ready and self.ledger.calls >= calls and self.ledger.complete(reconciled):
                return since

    def collect(self) -> None:
        """Have it give back what nobody uses."""
        before = self.ledger.collections
        os.kill(self.process.pid, signal.SIGUSR1)
        self.process.wait_until(lambda: self.ledger.collections > before, within=60)


@contextlib.contextmanager
def operator(command: list[str], server: ApiServer, changes: int = 0) -> Iterator[Operator]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        ledger = Ledger.make(path, changes)
        arguments = [f"--kubeconfig={server.kubeconfig}", f"--ledger={path}", f"--workers={WORKERS}"]
        with Process([*command, *arguments], log=Path(folder) / "log") as process:
            yield Operator(process, ledger)


class _Served(NamedTuple):
    """A server that has the operator inside."""

    name: str
    url: str
    kubeconfig: Path
    process: Process

    @property
    def pids(self) -> dict[str, int]:
        return {"server": self.process.pid}

    def logs(self) -> str:
        return self.process.tail()

    def stop(self) -> None:
        self.process.stop()


@contextlib.contextmanager
def server_with_operator(command: list[str], folder: Path, changes: int) -> Iterator[tuple[ApiServer, Operator]]:
    """A program that serves the API and is the operator. It prints its URL and then its kubeconfig when it is ready."""
    log = folder / "log"
    ledger = Ledger.make(folder / "ledger", changes)
    arguments = [f"--data-dir={folder / 'data'}", f"--ledger={folder / 'ledger'}", f"--workers={WORKERS}"]
    with Process([*command, *arguments], log=log) as process:
        process.wait_until(lambda: len(log.read_text().splitlines()) >= 2, within=60)
        url, kubeconfig = log.read_text().splitlines()[:2]
        yield _Served("trimtab", url, Path(kubeconfig), process), Operator(process, ledger)
