"""One hub on a database that others share, as a process: letters behind a unix socket, the cache and its fleet on the same
PostgreSQL, or on NATS.

    python -m tests.hub.aggregated.replica NAME DATABASE-URL BUS-URL SOCKET LEASE
"""

from __future__ import annotations

import asyncio
import signal
import sys

from tests.hub.aggregated.letters import Letter
from tests.server.api import ADMIN
from trimtab.hub.bus.nats import NatsBus
from trimtab.hub.bus.postgres import PostgresBus
from trimtab.hub.cache.caches import Caches
from trimtab.hub.cache.fleet import Fleet
from trimtab.hub.cache.peers import Peers
from trimtab.hub.compose import mounted
from trimtab.hub.storage.postgres import PostgresStorage
from trimtab.model.hub import HubKind
from trimtab.server.core import Server
from trimtab.server.door import Door
from trimtab.server.wire import Listener
from trimtab.store.memory import MemoryStore


async def main(name: str, database: str, bus: str, socket: str, lease: float) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = Server(MemoryStore())
    await server.start()
    caches = Caches()
    peers = Peers(token=lambda: "the replicas' token", timeout=1.0)
    heard = (NatsBus if bus.startswith("nats:") else PostgresBus)(bus, timeout=1.0)
    fleet = Fleet(heard, caches, replica=name, lease=lease, peers=peers)
    await fleet.start()
    storage = PostgresStorage(database, timeout=5.0)
    async with mounted(server, (HubKind(cls=Letter),), storage, caches=caches):
        listener = Listener(Door(server, None, local=ADMIN))
        await listener.listen_unix(socket)
        print("READY", flush=True)
        await stop.wait()
        groups = [kind.get.metrics for kind in caches.kinds.values()] + [
            kind.list.metrics for kind in caches.kinds.values()
        ]
        print("HITS", sum(group.hits for group in groups), "OF", sum(group.gets for group in groups), flush=True)
        await listener.close()
    await fleet.stop()
    await server.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5])))
