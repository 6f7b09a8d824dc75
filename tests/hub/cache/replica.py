"""One replica of a hub as a process of its own: a cache over a table in PostgreSQL, and clients that write down what they see.

    python -m tests.hub.cache.replica NAME DATABASE-URL BUS-URL HISTORY-FILE LEASE

It ends at SIGTERM. Events are appended to the file as they happen, times by the clock that all processes share.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from tests.hub.cache.history import Event
from trimtab.hub.bus.contract import Bus
from trimtab.hub.cache.caches import Caches
from trimtab.hub.cache.fleet import Fleet
from trimtab.hub.cache.generations import revision_of
from trimtab.hub.cache.peers import Peers
from trimtab.hub.contract import ApplyOptions, Down, GetOptions, Hub, HubError, HubList, ListOptions, Missing
from trimtab.hub.proxies.cached import Cached

NAMES = ("a", "b", "c")
TABLES = """
CREATE TABLE revision (value bigint NOT NULL);
INSERT INTO revision VALUES (0);
CREATE TABLE resource (name text PRIMARY KEY, revision bigint NOT NULL);
"""


class Table:
    """An accessor: `resource` has what is, `revision` the sequence."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: Any = None

    async def get(self, name: str, options: GetOptions) -> Hub:
        revision = await self._ask("SELECT revision FROM resource WHERE name = $1", name)
        if not revision:
            raise Missing(name)
        return _document(name, revision[0]["revision"])

    async def list(self, options: ListOptions) -> HubList:
        rows = await self._ask(
            "SELECT name, revision, (SELECT value FROM revision) AS newest FROM resource ORDER BY name"
        )
        items = [_document(row["name"], row["revision"]) for row in rows]
        return HubList(items=items, revision=rows[0]["newest"] if rows else 0)

    async def apply(self, hub: Hub, options: ApplyOptions) -> Hub:
        name = hub["metadata"]["name"]
        rows = await self._ask(
            "WITH next AS (UPDATE revision SET value = value + 1 RETURNING value) "
            "INSERT INTO resource SELECT $1, value FROM next "
            "ON CONFLICT (name) DO UPDATE SET revision = EXCLUDED.revision RETURNING revision",
            name,
        )
        return _document(name, rows[0]["revision"])

    async def _ask(self, text: str, *args: object) -> Any:
        try:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(self._url, min_size=1, max_size=4, ssl=False)
            return await self._pool.fetch(text, *args)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
            # (The last: the server's farewell came while the driver began to speak.)
            raise Down(type(error).__name__) from None


def _document(name: str, revision: int) -> Hub:
    return {"metadata": {"name": name, "project": "p", "resourceVersion": str(revision)}, "spec": {"text": "x" * 500}}


class Client:
    def __init__(self, name: str, cached: Cached, file: Any) -> None:
        self._name = name
        self._cached = cached
        self._file = file
        self._chance = random.Random(name)

    async def live(self) -> None:
        while True:
            await asyncio.sleep(self._chance.choice((0, 0, 0.001, 0.005)))
            act = self._chance.choice((self._get,) * 12 + (self._list,) * 6 + (self._apply,))
            with contextlib.suppress(HubError):
                await act()

    async def _get(self) -> None:
        name, began = self._chance.choice(NAMES), time.monotonic()
        try:
            revision = revision_of(await self._cached.get(name, GetOptions(project="p")))
        except Missing:
            revision = 0
        self._record(Event("read", name, began, time.monotonic(), revision, self._name))

    async def _list(self) -> None:
        began = time.monotonic()
        page = await self._cached.list(ListOptions(all_projects=True))
        answered = time.monotonic()
        seen = {hub["metadata"]["name"]: revision_of(hub) for hub in page.items}
        for name in NAMES:
            self._record(Event("read", name, began, answered, seen.get(name, 0), self._name, "all"))

    async def _apply(self) -> None:
        name, began = self._chance.choice(NAMES), time.monotonic()
        applied = await self._cached.apply({"metadata": {"name": name}}, ApplyOptions(project="p"))
        self._record(Event("write", name, began, time.monotonic(), revision_of(applied), self._name, "apply"))

    def _record(self, event: Event) -> None:
        self._file.write(msgspec.json.encode(event) + b"\n")


async def main(name: str, database: str, bus_url: str, history: Path, lease: float) -> None:
    caches = Caches()
    cached = Cached(Table(database), "blueprints.infra", caches)
    fleet = Fleet(
        _bus(bus_url), caches, replica=name, lease=lease, peers=Peers(token=lambda: "the replicas' token", timeout=1.0)
    )
    await fleet.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with history.open("ab", buffering=0) as file:
        clients = [asyncio.create_task(Client(f"{name}/{number}", cached, file).live()) for number in range(3)]
        waiting = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait([*clients, waiting], return_when=asyncio.FIRST_COMPLETED)
        for task in itertools.chain(clients, [waiting]):
            task.cancel()
        for task in done:
            task.result()
        await asyncio.gather(*clients, waiting, return_exceptions=True)
    await fleet.stop()
    groups = [group.metrics for kind in caches.kinds.values() for group in (kind.get, kind.list)]
    names = ("gets", "hits", "loads", "deduplicated", "bypassed", "peer_loads", "peer_errors", "dropped_fills")
    print("METRICS", json.dumps({each: sum(getattr(group, each) for group in groups) for each in names}), flush=True)


def _bus(url: str) -> Bus:
    if url.startswith("nats:"):
        from trimtab.hub.bus.nats import NatsBus

        return NatsBus(url, timeout=1.0)
    from trimtab.hub.bus.postgres import PostgresBus

    return PostgresBus(url, timeout=1.0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), float(sys.argv[5])))
