"""A process that loses its lease in the midst of a sweep: not one write more, not even to close its books.

The lease is taken away at a chosen write, so each run is the same: whatever the loop wanted to write next is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.runtime.widgets import Tap, logged, until
from tests.systems.discovery.asked_runs import face
from tests.systems.discovery.station import Station
from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.client.transport import Call, Reply
from trimtab.lab.snmp import SnmpDevice
from trimtab.lab.ssh import SshDevice
from trimtab.model.clock import SystemClock
from trimtab.model.kubernetes import Event, Lease
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.changes import Request
from trimtab.runtime.election import Election
from trimtab.runtime.events import Recorder
from trimtab.runtime.guarded import Guarded
from trimtab.runtime.informers import Informers
from trimtab.storage.blobs import Digest, read
from trimtab.systems.discovery.keeper import Keeper
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.records import decode
from trimtab.testing.ports import free_ports


class Thief(Tap):
    """Calls `steal` when the write number `at` is sent. `after` has what is sent later; events are for everyone."""

    def __init__(self, client: ApiClient, at: int) -> None:
        super().__init__(client.transport)
        self.at, self.sent, self.stolen = at, 0, False
        self.after: list[str] = []
        self.steal: Callable[[], Awaitable[None]]

    async def call(self, call: Call) -> Reply:
        if not call.safe and "/events" not in call.path:
            self.sent += 1
            if self.stolen:
                self.after.append(f"{call.method} {call.path}")
            if self.sent == self.at:
                await self.steal()
                self.stolen = True
                await asyncio.get_running_loop().create_future()  # this write never arrives
        return await super().call(call)


@contextlib.asynccontextmanager
async def leading(station: Station, thief: Thief) -> AsyncIterator[Keeper]:
    """The keeper of a process that leads until the thief comes. Nobody tells it then: it must see for itself."""
    clock, client = SystemClock(), ApiClient(thief, station.client.scheme, namespace=station.namespace)
    election = Election(
        station.client,
        clock,
        name="leader",
        namespace=station.namespace,
        identity="this",
        duration=600.0,
        renew_deadline=500.0,
        retry=400.0,
    )

    async def steal() -> None:
        lease = await station.client.get(Lease, "leader", station.namespace)
        await station.client.patch(lease, lease.replace(spec=lease.spec.replace(holder_identity="another")))
        assert not await election.attempt()

    thief.steal = steal
    assert await election.attempt()
    informers = Informers(client, clock=clock, chance=random.Random(1), streams=True)
    async with Recorder(client, clock, component="discovery", chance=random.Random(1)) as events:
        controller = station.controller()
        controller.bind("discoveryrule", CachedClient(client, informers, Guarded(client, election)), clock, events)
        await controller.start()
        try:
            yield controller.keeper
        finally:
            await controller.stop()


WRITES = 13
"""Of the first run of the rule below: its own status, its ledger, two Targets."""


@pytest.mark.parametrize("at", range(2, WRITES + 1))
async def test_whenever_the_lease_goes_nothing_more_is_written(station: Station, at: int) -> None:
    ssh, snmp = free_ports(2)
    await station.secret("login", community="public", username="admin", password="right")
    await station.profile("ssh", "ssh", ssh)
    await station.profile("snmp", "snmp", snmp)
    await station.ranges("lab", "127.53.0.0/29")
    rule = await station.rule("lab", ("ssh", "snmp"), "login", period="1h")
    thief = Thief(station.client, at)
    async with (
        SshDevice(address="127.53.0.1", port=ssh, password="right"),
        SnmpDevice({"127.53.0.2": face(2)}, snmp),
        leading(station, thief) as keeper,
    ):
        with logged() as said:
            await keeper.keep_up(rule)
            loop = keeper.loops[Request(station.namespace, "lab")]
            await until(lambda: loop.ended)
    assert thief.after == []
    assert {line["event"] for line in said if line["log_level"] in ("error", "exception")} == set()
    left = await station.client.get(DiscoveryRule, "lab", station.namespace)
    assert [run.outcome for run in left.status.history or ()] in ([], ["Running"])
    events = await station.client.list(Event, Query(namespace=station.namespace))
    assert {event.reason for event in events.items} <= {"Discovered"}
    await station.blobs.collect(grace=0)
    if left.status.ledger:
        assert decode(await read(station.blobs, Digest(left.status.ledger), max_bytes=1 << 20))
