"""The clients of the load: they fill the store, then change, delete, make, get and list, each its own objects at its own pace."""

from __future__ import annotations

import asyncio
import hashlib
import pickle
import random
import time
from array import array
from pathlib import Path

import msgspec
import orjson
import uvloop
from load_wire import Connection, Way

PARTS = 10
MERGE = "application/merge-patch+json"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much. Times are of the machine's monotonic clock."""

    clients: int
    watches: int
    slow: int
    objects: int
    namespaces: int
    rate: float  # operations a second, of all clients
    busy_share: float  # of the writes, that go to the namespace which slow readers watch
    busy_objects: int
    busy_bytes: int
    stall: float  # seconds that a slow reader does not read
    seconds: float

    def place(self, number: int) -> tuple[str, str]:
        """Namespace and name of an object."""
        if number < self.busy_objects:
            return "busy", f"b-{number}"
        return f"n-{number % self.namespaces}", f"o-{number}"


def marks(plan: Plan) -> list[tuple[str, str, str]]:
    """Namespace, name and part of what is made at the very end, in this order: each watcher knows its last event by it."""
    namespaces = ["busy", *(f"n-{number}" for number in range(plan.namespaces))]
    return [(namespace, f"end-{part}", str(part)) for namespace in namespaces for part in range(PARTS)]


def last_place(plan: Plan, namespace: str, part: str) -> tuple[str, str]:
    """The last mark that a watcher of this namespace and part (empty: all) sees."""
    return namespace or f"n-{plan.namespaces - 1}", f"end-{part or PARTS - 1}"


class Written(msgspec.Struct):
    """What a process of clients has to tell."""

    at: array[float]  # when each write was sent
    took: array[float]
    acknowledged: list[tuple[int, int]]  # revision and the hash of the place
    refused: list[str]


def hashed(namespace: str, name: str) -> int:
    """Eight bytes, so that 100,000 places have as many hashes."""
    return int.from_bytes(hashlib.blake2b(f"{namespace}/{name}".encode(), digest_size=8).digest())


def write(way: Way, plan: Plan, shard: range, fill: bool, begin: float, out: Path) -> None:
    """A process: the clients whose numbers are in `shard`."""
    uvloop.run(_write(way, plan, shard, fill, begin, out))


async def _write(way: Way, plan: Plan, shard: range, fill: bool, begin: float, out: Path) -> None:
    context = way.tls()
    written = Written(array("d"), array("d"), [], [])
    work = _fill if fill else _load
    await asyncio.gather(*(work(Client(way, context, plan, number, written), begin) for number in shard))
    out.write_bytes(pickle.dumps((written.at, written.took, written.acknowledged, written.refused)))  # noqa: ASYNC240 - nobody waits any more


class Client:
    def __init__(self, way: Way, context: object, plan: Plan, number: int, written: Written) -> None:
        self._connection = Connection(way, context)  # type: ignore[arg-type]
        self.plan, self.number, self._written = plan, number, written
        self.dice = random.Random(number)
        self.mine = range(number, plan.objects, plan.clients)
        self.busy = [each for each in self.mine if each < plan.busy_objects]

    def body(self, place: tuple[str, str], part: int) -> bytes:
        text = "x" * (self.plan.busy_bytes if place[0] == "busy" else 1000)
        meta = {"name": place[1], "labels": {"part": str(part)}}
        return orjson.dumps({"metadata": meta, "data": {"text": text, "sent": str(time.monotonic_ns())}})

    async def send(
        self, method: str, place: tuple[str, str], body: bytes = b"", media: str = "application/json"
    ) -> bool:
        path = f"/api/v1/namespaces/{place[0]}/configmaps" + ("" if method == "POST" else f"/{place[1]}")
        began = time.monotonic()
        code, answer = await self._connection.call(method, path, body, media)
        if method != "GET":
            self._written.at.append(began)
            self._written.took.append(time.monotonic() - began)
        if code not in (200, 201):
            self._written.refused.append(f"{method} {path}: {code} {answer[:200].decode(errors='replace')}")
            return False
        if method in ("POST", "PATCH"):
            revision = int(orjson.loads(answer)["metadata"]["resourceVersion"])
            self._written.acknowledged.append((revision, hashed(*place)))
        return True

    async def list(self, namespace: str) -> None:
        await self._connection.call("GET", f"/api/v1/namespaces/{namespace}/configmaps?limit=100")


async def _fill(client: Client, begin: float) -> None:
    for number in client.mine:
        place = client.plan.place(number)
        await client.send("POST", place, client.body(place, number % PARTS))


async def _load(client: Client, begin: float) -> None:
    plan, dice = client.plan, client.dice
    pause = plan.clients / plan.rate
    due = begin + dice.uniform(0, pause)
    while due < begin + plan.seconds:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        due += pause * dice.uniform(0.5, 1.5)
        busy = client.busy and dice.random() < plan.busy_share
        number = dice.choice(client.busy if busy else client.mine)
        place, turn = plan.place(number), dice.random()
        if busy or turn < 0.65:
            change: dict[str, object] = {"data": {"sent": str(time.monotonic_ns())}}
            if dice.random() < 0.2:
                change["metadata"] = {"labels": {"part": str(dice.randrange(PARTS))}}
            await client.send("PATCH", place, orjson.dumps(change), MERGE)
        elif turn < 0.75:
            await client.send("DELETE", place)
            await client.send("POST", place, client.body(place, dice.randrange(PARTS)))
        elif turn < 0.97:
            await client.send("GET", place)
        else:
            await client.list(place[0])
