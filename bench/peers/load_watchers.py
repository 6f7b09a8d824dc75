"""The watchers of the load: each notes every event that it gets. Slow ones stop reading, are cut off, list and go on."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import random
import time
from array import array
from pathlib import Path

import msgspec
import orjson
import uvloop
from load_wire import Connection, Pace, Way
from load_writers import PARTS, Plan, hashed, last_place

TYPES = {"ADDED": 0, "MODIFIED": 1, "DELETED": 2}
PATIENCE = 120.0  # seconds after the last write for all events to come


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    name: str = ""
    namespace: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    data: dict[str, str] = {}
    code: int = 0


class _Event(msgspec.Struct):
    type: str
    object: _Object


class Segment(msgspec.Struct):
    """What was seen without a gap: from `since`, which is the revision of `listed` unless it was the beginning."""

    since: int
    listed: dict[int, int] | None  # the hash of each place, and its revision
    revisions: array[int]
    kinds: array[int]
    places: array[int]


class Watched(msgspec.Struct):
    """One watcher's story."""

    namespace: str
    part: str
    slow: bool
    segments: list[Segment]
    expired: int = 0  # told 410
    broken: int = 0  # cut off without a word
    ended: int = 0  # in good order, at its time
    disorder: list[str] = []  # bookmarks that lied, events that went back, errors


class Slow(Pace):
    """Reads well until `begin`; then stops for a while, again and again, until `end`."""

    def __init__(self, begin: float, end: float, stall: float) -> None:
        self._next, self._end, self._stall = begin, end, stall

    async def __call__(self, size: int) -> None:
        now = time.monotonic()
        if self._next <= now < self._end:
            await asyncio.sleep(min(self._stall, self._end - now))
            self._next = time.monotonic() + 5.0


def chosen(plan: Plan, number: int) -> tuple[str, str]:
    """The namespace and the part that a watcher watches; empty is all."""
    if number < plan.slow:
        return "busy", ""
    namespace = f"n-{number % plan.namespaces}"
    match number % 10:
        case 9:
            return "", str(number // 10 % PARTS)
        case 7 | 8:
            return namespace, str(number // 10 % PARTS)
        case 6 if number % 200 == 6:
            return "busy", ""
        case _:
            return namespace, ""


def watch(way: Way, plan: Plan, shard: range, since: int, begin: float, slow_from: float, out: Path) -> None:
    """A process: the watchers whose numbers are in `shard`."""
    uvloop.run(_watch(way, plan, shard, since, begin, slow_from, out))


async def _watch(way: Way, plan: Plan, shard: range, since: int, begin: float, slow_from: float, out: Path) -> None:
    context = way.tls()
    end = begin + plan.seconds
    lags: list[tuple[float, float]] = []
    watchers = [Watcher(way, context, plan, number, since, slow_from, end, lags) for number in shard]
    await asyncio.gather(*(watcher.run() for watcher in watchers))
    out.write_bytes(pickle.dumps(([watcher.told for watcher in watchers], lags)))  # noqa: ASYNC240 - nobody waits any more


class Watcher:
    def __init__(
        self, way: Way, context: object, plan: Plan, number: int, since: int, slow_from: float, end: float, lags: list
    ) -> None:
        namespace, part = chosen(plan, number)
        slow = number < plan.slow
        self.told = Watched(namespace, part, slow, [_segment(since, None)])
        self._connection = Connection(way, context, small=slow)  # type: ignore[arg-type]
        self._pace: Pace = Slow(slow_from, end, plan.stall) if slow else Pace()
        self._end, self._lags, self._at = end, lags, since
        self._decoder = msgspec.json.Decoder(_Event)
        self._dice = random.Random(number)
        self._goal = hashed(*last_place(plan, namespace, part))
        self._done = asyncio.Event()
        self._plan = plan
        where = f"/namespaces/{namespace}" if namespace else ""
        self._path = f"/api/v1{where}/configmaps?" + (f"labelSelector=part%3D{part}&" if part else "")

    async def run(self) -> None:
        await asyncio.sleep(self._dice.uniform(0, 2))  # not all dial at once
        reading = asyncio.create_task(self._read())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._end - time.monotonic() + PATIENCE):
                await self._done.wait()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        self._connection.close()

    async def _read(self) -> None:
        while True:
            seconds = int(self._dice.uniform(0.1, 0.5) * self._plan.seconds) + 1
            path = (
                f"{self._path}watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={self._at}"
            )
            try:
                async for line in self._connection.watch(path, self._pace):
                    if not self._note(line):
                        await self._relist()
                        break
                else:
                    self.told.ended += 1
            except (OSError, EOFError):
                self.told.broken += 1
                self._connection.close()
            await asyncio.sleep(self._dice.uniform(0, 0.2))

    def _note(self, line: bytes) -> bool:
        """False when the server says that the past is gone."""
        event = self._decoder.decode(line)
        now = time.monotonic()
        if event.type == "ERROR":
            self.told.expired += event.object.code == 410
            if event.object.code != 410:
                self.told.disorder.append(line[:300].decode(errors="replace"))
            return False
        meta = event.object.metadata
        revision = int(meta.resource_version)
        if revision < self._at or (revision == self._at and event.type != "BOOKMARK"):
            self.told.disorder.append(f"{event.type} {revision} after {self._at}")
        if event.type != "BOOKMARK":
            segment = self.told.segments[-1]
            segment.revisions.append(revision)
            segment.kinds.append(TYPES[event.type])
            segment.places.append(place := hashed(meta.namespace, meta.name))
            if place == self._goal:
                self._done.set()
            if not self.told.slow and event.type != "DELETED" and revision % 8 == 0:
                sent = int(event.object.data.get("sent", "0")) / 1e9
                if event.type == "MODIFIED" and now - sent < 60:
                    self._lags.append((now, now - sent))
        self._at = max(self._at, revision)
        return True

    async def _relist(self) -> None:
        self._connection.close()
        listed: dict[int, int] = {}
        code, body = await self._connection.call("GET", self._path)
        if code != 200:
            raise ConnectionError(f"list: {code}")
        page = orjson.loads(body)
        for item in page["items"]:
            meta = item["metadata"]
            listed[hashed(meta["namespace"], meta["name"])] = int(meta["resourceVersion"])
        self._at = int(page["metadata"]["resourceVersion"])
        self.told.segments.append(_segment(self._at, listed))
        if self._goal in listed:
            self._done.set()


def _segment(since: int, listed: dict[int, int] | None) -> Segment:
    return Segment(since, listed, array("q"), array("b"), array("Q"))
