"""Two rules that find one device at the same moment settle one after the other: it has one Target. On both servers."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from tests.runtime.widgets import Tap, running
from tests.systems.discovery.asked_runs import face, until_ended
from tests.systems.discovery.station import Station
from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply
from trimtab.lab.snmp import SnmpDevice
from trimtab.runtime.manager import Manager
from trimtab.runtime.tasks import ended
from trimtab.systems.discovery import keeper, sweeping
from trimtab.systems.discovery.kinds import AddressEntry, DefaultSchema, TargetConnection, TargetTemplate
from trimtab.systems.discovery.tools import Turns
from trimtab.testing.ports import free_ports


class Seen:
    """What the second of the two does while the first one writes: it waits for its turn, or writes as well."""

    def __init__(self) -> None:
        self.waits, self.writes = asyncio.Event(), asyncio.Event()
        self.first = ""

    async def either(self) -> None:
        tasks = [asyncio.create_task(event.wait()) for event in (self.waits, self.writes)]
        try:
            async with asyncio.timeout(30):
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            self.first = "writes" if self.writes.is_set() else "waits"
        finally:
            await ended(*tasks)


class FirstWaits(Tap):
    """Holds the first Target on its way to the server until the other rule has been seen."""

    def __init__(self, client: ApiClient, seen: Seen) -> None:
        super().__init__(client.transport)
        self._seen, self._first = seen, True

    async def call(self, call: Call) -> Reply:
        if call.method == "POST" and call.path.endswith("/targets"):
            if self._first:
                self._first = False
                await self._seen.either()
            else:
                self._seen.writes.set()
        return await super().call(call)


def told(seen: Seen) -> type[Turns]:
    """Turns that tell when somebody waits for one."""

    class Told(asyncio.Lock):
        async def acquire(self) -> Literal[True]:
            if self.locked():
                seen.waits.set()
            return await super().acquire()

    class Watched(Turns):
        def of(self, namespace: str) -> asyncio.Lock:
            return self._locks.setdefault(namespace, Told())

    return Watched


@pytest.mark.parametrize("found", ["at the end of a sweep", "during a sweep", "without a probe"])
async def test_a_device_that_two_rules_find_at_once_has_one_target(
    station: Station, monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    (port,) = free_ports(1)
    seen = Seen()
    monkeypatch.setattr(keeper, "Turns", told(seen))
    client = ApiClient(FirstWaits(station.client, seen), station.client.scheme, namespace=station.client.namespace)
    manager = Manager(client)
    manager.add(station.controller())
    if found == "during a sweep":
        monkeypatch.setattr(sweeping, "CHECKPOINT", 0.05)
    async with SnmpDevice({f"127.54.0.{n}": face(1) for n in range(1, 15)}, port), running(manager):
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        for name in ("lab", "other"):
            await add_rule(station, name, found)
        for name in ("lab", "other"):
            await until_ended(station, lambda rule: True, name)
        targets = await station.targets()
    assert seen.first == "waits"
    assert len(targets) == 1


async def add_rule(station: Station, name: str, found: str) -> None:
    """Each calls the device by a name of its own, so that no server keeps them apart."""
    template = TargetTemplate(name_template=f"{name}-device")
    if found == "without a probe":
        schema = DefaultSchema(provider="x", version="1")
        await station.ranges(name, addresses=(AddressEntry(address="127.54.0.1"),), default_schema=schema)
        offers = (TargetConnection(connection_profile="snmp", credentials="login"),)
        await station.rule(name, (), "login", period="1h", target_template=template, connections=offers)
    else:
        await station.ranges(name, "127.54.0.0/28")
        rate = 20 if found == "during a sweep" else 20_000
        await station.rule(name, ("snmp",), "login", period="1h", target_template=template, packets_per_second=rate)
