"""Three hubs on one PostgreSQL, asked over HTTP while everything under them breaks: the database dies in the midst of applies,
connections are cut, a hub stands still, a hub is killed. All that was asked and answered is written down, and must be a
history of one hub that never forgot.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import orjson
import pytest

from tests.hub.cache.history import Event, violations
from tests.needs import lacks
from trimtab.client.config import unix
from trimtab.client.http import HttpTransport, Limits
from trimtab.client.retry import Policy
from trimtab.client.transport import Call
from trimtab.model.errors import StatusError
from trimtab.testing.nats import NatsMissing, NatsServer
from trimtab.testing.postgres import PostgresMissing, PostgresServer
from trimtab.testing.processes import Process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

URL = "/apis/letters.trimtab.dev/v1/namespaces/default/letters"
ROOT = Path(__file__).parents[3]
COUNTERS = ("a", "b", "c")
LEASE = 1.0
UNSURE = (StatusError, OSError, TimeoutError)


class Replica:
    def __init__(self, folder: Path, name: str, database: str, bus: str) -> None:
        self._folder, self._name = folder, name
        self._socket = folder / f"{name}.sock"
        self.transport = HttpTransport(
            unix(str(self._socket)), limits=Limits(connect=2, request=30), policy=Policy(attempts=1)
        )
        self._command = [sys.executable, "-m", "tests.hub.aggregated.replica", name, database, bus, str(self._socket)]
        self.start()

    def start(self) -> None:
        self._socket.unlink(missing_ok=True)
        log = self._folder / f"{self._name}.log"
        ready = log.read_text().count("READY") if log.exists() else 0
        self.process = Process(
            [*self._command, str(LEASE)], log=log, env={"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
        )
        self.process.wait_until(lambda: log.read_text().count("READY") > ready, within=60)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    async def send(self, method: str, path: str, document: Any = None, **query: str) -> Any:
        body = b"" if document is None else orjson.dumps(document)
        reply = await self.transport.call(Call(method=method, path=path, body=body, query=query))
        return orjson.loads(reply.body)

    async def hits(self) -> float:
        """Reads that its cache has answered."""
        reply = await self.transport.call(Call(method="GET", path="/metrics", accept="text/plain"))
        lines = reply.body.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("trimtab_hub_cache_hits_total{"))

    async def stop(self) -> None:
        await self.transport.close()
        self.signal(signal.SIGCONT)
        self.process.stop(grace=20)


class Notebook:
    """What was asked and answered."""

    def __init__(self) -> None:
        self.history: list[Event] = []
        self.made: dict[str, str] = {}  # acknowledged creates: name → text
        self.gone: set[str] = set()  # acknowledged deletes
        self.added: Counter[str] = Counter()  # acknowledged increments
        self.unsure: Counter[str] = Counter()
        self.published: dict[str, str] = {}  # acknowledged versions → text
        self.seen: dict[int, tuple[str, str]] = {}  # revision → name, text
        self.broken: list[str] = []
        self.acknowledged = 0
        self.more = asyncio.Event()

    def saw(self, document: Any) -> int:
        """A revision is of one state of one object, whoever shows it."""
        metadata = document["metadata"]
        revision, what = int(metadata["resourceVersion"]), (metadata["name"], document["spec"].get("text", ""))
        if self.seen.setdefault(revision, what) != what:
            self.broken.append(f"revision {revision} is {what} and {self.seen[revision]}")
        return revision

    def wrote(self) -> None:
        self.acknowledged += 1
        self.more.set()

    async def progress(self, count: int = 40, within: float = 60.0) -> None:
        wanted = self.acknowledged + count
        async with asyncio.timeout(within):
            while self.acknowledged < wanted:
                self.more.clear()
                await self.more.wait()


def letter(name: str, text: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    spec = {"text": text, **spec}
    return {"apiVersion": "letters.trimtab.dev/v1", "kind": "Letter", "metadata": metadata, "spec": spec}


class Client:
    def __init__(self, number: int, replicas: tuple[Replica, ...], notes: Notebook) -> None:
        self._name = f"client {number}"
        self._replicas = replicas
        self._notes = notes
        self._chance = random.Random(number)
        self._number = 0
        self.over = False

    async def live(self) -> None:
        """Until it is over; what was begun is waited for, since what nobody waits for may still happen."""
        acts = (self._get,) * 8 + (self._list,) * 4 + (self._add,) * 3 + (self._make, self._publish, self._delete)
        while not self.over:
            await asyncio.sleep(self._chance.choice((0, 0.001, 0.01)))
            with contextlib.suppress(*UNSURE):
                await self._chance.choice(acts)(self._chance.choice(self._replicas))

    async def _get(self, replica: Replica) -> None:
        name, began = self._chance.choice(COUNTERS), time.monotonic()
        revision = self._notes.saw(await replica.send("GET", f"{URL}/{name}"))
        self._record("read", name, began, revision)

    async def _list(self, replica: Replica) -> None:
        """Sees every acknowledged create and every increment."""
        made, gone, began = dict(self._notes.made), set(self._notes.gone), time.monotonic()
        listed = {each["metadata"]["name"]: each for each in (await replica.send("GET", URL))["items"]}
        for name in COUNTERS:
            self._record("read", name, began, self._notes.saw(listed[name]), "list")
        for name in made.keys() - listed.keys() - self._notes.gone:
            if not name.startswith("leaving"):
                self._notes.broken.append(f"{name} was made before, and not listed")
        self._notes.broken += [f"{name} was deleted before, and listed" for name in gone & listed.keys()]

    async def _add(self, replica: Replica) -> None:
        """Reads here, writes there: a lost update would show in the number."""
        name, began = self._chance.choice(COUNTERS), time.monotonic()
        document = await replica.send("GET", f"{URL}/{name}")
        document["spec"]["text"] = str(int(document["spec"]["text"]) + 1)
        other = self._chance.choice(self._replicas)
        try:
            done = await other.send("PUT", f"{URL}/{name}", document)
        except StatusError as error:
            self._notes.unsure[name] += error.code != 409
            raise
        except UNSURE:
            self._notes.unsure[name] += 1
            raise
        self._notes.added[name] += 1
        self._record("write", name, began, self._notes.saw(done))
        self._notes.wrote()

    async def _make(self, replica: Replica) -> None:
        self._number += 1
        name = f"n-{self._name[7:]}-{self._number}"
        made = await replica.send("POST", URL, letter(name, name))
        self._notes.made[name] = made["spec"]["text"]
        self._notes.wrote()

    async def _delete(self, replica: Replica) -> None:
        """Made here, deleted there."""
        self._number += 1
        name = f"leaving-{self._name[7:]}-{self._number}"
        await replica.send("POST", URL, letter(name, name))
        await self._chance.choice(self._replicas).send("DELETE", f"{URL}/{name}")
        self._notes.gone.add(name)
        self._notes.wrote()

    async def _publish(self, replica: Replica) -> None:
        """A row and a snapshot: both, or neither."""
        self._number += 1
        version = f"v{self._name[7:]}-{self._number}"
        document = await replica.send("GET", f"{URL}/book")
        document["spec"] |= {"version": version, "text": f"text of {version}"}
        await self._chance.choice(self._replicas).send("PUT", f"{URL}/book", document)
        self._notes.published[version] = f"text of {version}"
        self._notes.wrote()

    def _record(self, op: str, key: str, began: float, revision: int, kind: str = "get") -> None:
        self._notes.history.append(Event(op, key, began, time.monotonic(), revision, self._name, kind))


@contextlib.asynccontextmanager
async def at_work(count: int, first: int, replicas: tuple[Replica, ...], notes: Notebook) -> AsyncIterator[None]:
    clients = [Client(first + number, replicas, notes) for number in range(count)]
    tasks = [asyncio.create_task(client.live()) for client in clients]
    try:
        yield
    finally:
        for client in clients:
            client.over = True
        async with asyncio.timeout(90):
            await asyncio.gather(*tasks)


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer()
    except PostgresMissing as missing:
        lacks(str(missing))
    with server:
        yield server


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServer]:
    try:
        server = NatsServer(tmp_path)
    except NatsMissing as missing:
        lacks(str(missing))
    with server:
        yield server


@pytest.fixture
async def replicas(
    request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path: Path
) -> AsyncIterator[tuple[Replica, ...]]:
    """They hear each other by the database, or as the test says."""
    bus = request.getfixturevalue(getattr(request, "param", "postgres"))
    async with contextlib.AsyncExitStack() as stack:
        made = []
        for name in ("one", "two", "three"):
            made.append(Replica(tmp_path, name, postgres.url, bus.url))
            stack.push_async_callback(made[-1].stop)
        yield tuple(made)


@pytest.fixture
async def notes(replicas: tuple[Replica, ...]) -> AsyncIterator[Notebook]:
    """Clients at work on all."""
    notes = Notebook()
    for name in COUNTERS:
        await replicas[0].send("POST", URL, letter(name, "0"))
    await replicas[0].send("POST", URL, letter("book", ""))
    async with at_work(8, 0, replicas, notes):
        await notes.progress()
        yield notes
    await check(replicas, notes)


async def check(replicas: tuple[Replica, ...], notes: Notebook) -> None:
    assert list(violations(notes.history)) == []
    assert notes.broken == []
    shown = []
    for replica in replicas:
        async with asyncio.timeout(60):
            while True:
                try:
                    listed = (await replica.send("GET", URL))["items"]
                    break
                except UNSURE:
                    await asyncio.sleep(0.1)
        shown.append({each["metadata"]["name"]: each for each in listed})
        for name in (*COUNTERS, "book"):
            assert await replica.send("GET", f"{URL}/{name}") == shown[-1][name]
    assert shown == shown[:1] * len(replicas)
    assert all([await replica.hits() > 0 for replica in replicas])
    assert {name: shown[0][name]["spec"]["text"] for name in notes.made} == notes.made
    assert not notes.gone & shown[0].keys()
    for name in COUNTERS:
        count = int(shown[0][name]["spec"]["text"])
        assert notes.added[name] <= count <= notes.added[name] + notes.unsure[name], name
    versions = [each["version"] for each in (await replicas[0].send("GET", f"{URL}/book/versions"))["items"]]
    assert set(notes.published) <= set(versions)
    for version in versions:
        published = await replicas[-1].send("GET", f"{URL}/book", version=version)
        assert published["spec"]["text"] == f"text of {version}"
    assert shown[0]["book"]["spec"]["version"] == versions[0]
    print(
        f"{len(notes.history)} reads and writes, {notes.acknowledged} acknowledged, {sum(notes.unsure.values())} unsure"
    )


@pytest.mark.row(30)
@pytest.mark.row(34)
@pytest.mark.row(36)
async def test_a_database_that_dies_in_the_midst_of_applies_loses_nothing(
    postgres: PostgresServer, notes: Notebook
) -> None:
    for _ in range(3):
        postgres.kill()
        postgres.restart()
        await notes.progress()
    connection = await asyncpg.connect(postgres.url, ssl=False)
    for _ in range(20):
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND backend_type = 'client backend' AND random() < 0.3"
        )
        await notes.progress(5)
    await connection.close()


@pytest.mark.row(34)
@pytest.mark.row(36)
@pytest.mark.parametrize("replicas", ["postgres", "nats"], indirect=True)
async def test_a_hub_that_stands_still_shows_nothing_old_and_holds_up_nobody_for_long(
    replicas: tuple[Replica, ...], notes: Notebook
) -> None:
    for first, stopped in zip((100, 200, 300), replicas, strict=True):
        others = tuple(each for each in replicas if each is not stopped)
        stopped.signal(signal.SIGSTOP)
        async with at_work(2, first, others, notes):
            await notes.progress(20)
        stopped.signal(signal.SIGCONT)
        await notes.progress()


@pytest.mark.row(34)
@pytest.mark.row(38)
async def test_a_hub_that_is_killed_and_comes_back_has_forgotten_nothing(
    replicas: tuple[Replica, ...], notes: Notebook
) -> None:
    for replica in (*replicas, replicas[0]):
        replica.process.kill()
        await notes.progress(10)
        replica.start()
        await notes.progress()
