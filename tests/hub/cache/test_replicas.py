"""Three replicas as processes, on a real bus: one is killed, one stands still for a while, the bus starts anew. No read that
began after an acknowledged write shows what was before it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import msgspec
import pytest

from tests.hub.cache.history import Event, violations
from tests.hub.cache.replica import TABLES
from tests.needs import lacks
from trimtab.testing.nats import NatsMissing, NatsServer
from trimtab.testing.postgres import PostgresMissing, PostgresServer
from trimtab.testing.processes import Process

LEASE = 1.0
ROOT = Path(__file__).parents[3]


class Replicas:
    """Three processes, and what their clients have seen so far."""

    def __init__(self, folder: Path, database: str, bus: str) -> None:
        self._folder = folder
        self.running: dict[str, Process] = {}
        for name in ("one", "two", "three"):
            command = [sys.executable, "-m", "tests.hub.cache.replica", name, database, bus, str(self._file(name))]
            self.running[name] = Process(
                [*command, str(LEASE)],
                log=folder / f"{name}.log",
                env={"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
            )

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.history"

    def history(self) -> list[Event]:
        lines = b"".join(self._lines(name) for name in ("one", "two", "three")).splitlines()
        return [msgspec.json.decode(line, type=Event) for line in lines]

    def _lines(self, name: str) -> bytes:
        """Whole ones: a process may have been killed within one."""
        data = self._file(name).read_bytes() if self._file(name).exists() else b""
        return data[: data.rfind(b"\n") + 1]

    def count(self, name: str, op: str = "write") -> int:
        return self._lines(name).count(f'["{op}"'.encode())

    def progress(self, *names: str, writes: int = 25, within: float = 40.0) -> None:
        """Each of these has written so often again."""
        wanted = {name: self.count(name) + writes for name in names}
        for name in names:
            self.running[name].wait_until(_reached(self, name, wanted[name]), within=within)

    def signal(self, name: str, number: signal.Signals) -> None:
        os.kill(self.running[name].pid, number)

    def stop(self) -> None:
        for process in self.running.values():
            if process.running:
                os.kill(process.pid, signal.SIGCONT)
                process.stop(grace=20)

    def metrics(self, name: str) -> dict[str, int]:
        (line,) = [line for line in self.running[name].tail(5).splitlines() if line.startswith("METRICS")]
        numbers: dict[str, int] = json.loads(line.removeprefix("METRICS"))
        return numbers


def _reached(replicas: Replicas, name: str, wanted: int) -> Callable[[], bool]:
    return lambda: replicas.count(name) >= wanted


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer()
    except PostgresMissing as missing:
        lacks(str(missing))
    with server:
        asyncio.run(_make_tables(server.url))
        yield server


async def _make_tables(url: str) -> None:
    connection = await asyncpg.connect(url, ssl=False)
    await connection.execute(TABLES)
    await connection.close()


@pytest.fixture(params=["postgres", "nats"])
def bus(
    request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path: Path
) -> Iterator[PostgresServer | NatsServer]:
    if request.param == "postgres":
        yield postgres
        return
    try:
        server = NatsServer(tmp_path)
    except NatsMissing as missing:
        lacks(str(missing))
    with server:
        yield server


@pytest.fixture
def replicas(postgres: PostgresServer, bus: PostgresServer | NatsServer, tmp_path: Path) -> Iterator[Replicas]:
    replicas = Replicas(tmp_path, postgres.url, bus.url)
    try:
        replicas.progress("one", "two", "three")
        yield replicas
    finally:
        replicas.stop()


@pytest.mark.slow
@pytest.mark.row(34)
@pytest.mark.row(35)
@pytest.mark.row(36)
@pytest.mark.row(38)
def test_no_replica_shows_what_was_before_an_acknowledged_write(
    replicas: Replicas, bus: PostgresServer | NatsServer
) -> None:
    replicas.progress("one", "two", "three", writes=100)

    replicas.signal("two", signal.SIGSTOP)
    replicas.progress("one", "three")  # so its lease has ended
    replicas.signal("two", signal.SIGCONT)
    replicas.progress("one", "two", "three")

    killed = time.monotonic()
    replicas.running["three"].kill()
    replicas.progress("one", "two")

    bus.kill()
    bus.restart()
    replicas.progress("one", "two")
    replicas.stop()

    history = replicas.history()
    assert list(violations(history)) == []
    stalls = sorted((e.answered - e.began for e in history if e.op == "write" and e.answered), reverse=True)
    after = min(e.answered for e in history if e.op == "write" and e.answered and e.began > killed)
    for name in ("one", "two"):
        numbers = replicas.metrics(name)
        print(name, numbers)
        assert numbers["hits"] > numbers["gets"] * 0.2
        assert numbers["peer_loads"] > 0
    print(f"{len(history)} events, writes p50 {stalls[len(stalls) // 2] * 1e3:.1f} ms, longest {stalls[:3]}")
    print(f"first write after the kill took until {after - killed:.2f} s after it")
