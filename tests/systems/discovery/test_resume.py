"""A sweep that the end of its process cut off goes on where it was, under the same id. On both servers."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Collection
from typing import Any

import pytest
from msgspec import UNSET

from tests.systems.discovery.station import Station, ended, is_ready
from trimtab.client.protocol import Query
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import Fault as SshFault
from trimtab.model.duration import Duration
from trimtab.model.kubernetes import Event
from trimtab.storage.blobs import Digest, read
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleIPRange, Fading, PrefixEntry, Target
from trimtab.systems.discovery.ledger.records import Ledger, decode
from trimtab.testing.ports import free_ports

pytestmark = pytest.mark.slow

PREFIX = ipaddress.ip_network("127.40.0.0/22")
ADDRESSES = [str(address) for address in PREFIX.hosts()]
RATE = 200
PATIENCE = Duration("1s")
"""The devices are played by this very process, which may be busy."""
FADING = Fading(lost_after_misses=1, lost_after=Duration("0s"), max_loss_percent=100)


class Wire:
    """A device at every 32nd address. `datagrams` counts what came for each address, whoever is there."""

    def __init__(self) -> None:
        self.datagrams: Counter[str] = Counter()
        self.faces = {address: _face(number) for number, address in enumerate(ADDRESSES[::32], 1)}

    def __call__(self, address: str) -> Personality | None:
        self.datagrams[address] += 1
        return self.faces.get(address)


def _face(number: int) -> Personality:
    return Personality(name=f"switch-{number}", engine_id=bytes.fromhex(f"80001f8805{number:012x}cc"))


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def port() -> int:
    (port,) = free_ports(1)
    return port


async def begin(station: Station, port: int) -> None:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port, probe_timeout=PATIENCE)
    await station.ranges("lab", str(PREFIX))
    await station.rule("lab", ("snmp",), "login", period="1h", packets_per_second=RATE, fading=FADING)


async def cut_off(station: Station, port: int) -> tuple[DiscoveryRule, Ledger]:
    """A controller that ends in the middle of its first sweep, when there is a Target; what it left."""
    async with station.working():
        await begin(station, port)
        await station.until_any(Target, Query(namespace=station.namespace), is_ready)
    rule = await station.client.get(DiscoveryRule, "lab", station.namespace)
    ledger = await ledger_of(station, rule)
    assert ledger.run == rule.status.history[0].id
    assert rule.status.history[0].outcome == "Running"
    assert 0 < ledger.position < len(ADDRESSES)
    return rule, ledger


async def ledger_of(station: Station, rule: DiscoveryRule) -> Ledger:
    return decode(await read(station.blobs, Digest(rule.status.ledger), max_bytes=1 << 20))


async def told(station: Station, reason: str) -> Event:
    found: Event = await station.until_any(
        Event, Query(namespace=station.namespace), lambda event: event.reason == reason
    )
    return found


def phases(targets: dict[str, Any]) -> dict[str, tuple[Any, bool]]:
    return {name: (target.status.phase, is_ready(target)) for name, target in targets.items()}


async def test_it_goes_on_from_its_position(station: Station, wire: Wire, port: int) -> None:
    async with SnmpDevice(wire, port, listen="0.0.0.0"):
        before, _ = await cut_off(station, port)
        async with station.working():
            rule = await station.until(DiscoveryRule, "lab", ended)
    (run,) = rule.status.history
    assert (run.id, run.outcome, run.reason) == (before.status.history[0].id, "Succeeded", "Swept")
    assert set(wire.datagrams) == set(ADDRESSES)
    repeated = [address for address in ADDRESSES if address not in wire.faces and wire.datagrams[address] > 1]
    assert len(repeated) <= RATE * (PATIENCE.seconds + 1)  # those that could still have answered when it was stopped
    assert (rule.status.entries[0].found, rule.status.targets.ready) == (len(wire.faces), len(wire.faces))


async def test_what_was_found_before_is_there_and_well(station: Station, wire: Wire, port: int) -> None:
    async with SnmpDevice(wire, port, listen="0.0.0.0"):
        await cut_off(station, port)
        early = {name: target for name, target in (await station.targets()).items() if is_ready(target)}
        async with station.working():
            await station.until(DiscoveryRule, "lab", is_ready)
        targets = await station.targets()
    assert 0 < len(early) < len(wire.faces)
    assert sorted(phases(targets).items()) == sorted((face.name, ("Ready", True)) for face in wire.faces.values())
    assert {name: targets[name].metadata.uid for name in early} == {n: t.metadata.uid for n, t in early.items()}
    assert {name: targets[name].metadata.resource_version for name in early} == {
        name: target.metadata.resource_version for name, target in early.items()
    }


async def test_cut_off_when_one_device_still_thinks_only_that_one_is_asked_again(
    station: Station, wire: Wire, port: int
) -> None:
    (other,) = free_ports(1)
    silent = SshDevice(address="127.40.0.50", port=other, password="right", fault=SshFault.SILENT)
    answering = SshDevice(address="127.40.0.50", port=other, password="right")
    async with SnmpDevice(wire, port, listen="0.0.0.0"):
        async with silent, station.working():
            await station.secret("login", community="public", username="admin", password="right")
            await station.profile("snmp", "snmp", port, probe_timeout=PATIENCE)
            await station.profile("ssh", "ssh", other, timeout=Duration("30s"))
            await station.ranges("lab", "127.40.0.0/25")
            patience = Duration("1s")  # for a login of which nobody knows what became
            await station.rule("lab", ("ssh", "snmp"), "login", period="1h", fading=FADING, lockout_window=patience)
            await until_position(station, 126)
        asked = +wire.datagrams
        async with answering, station.working():
            rule = await station.until(DiscoveryRule, "lab", is_ready)
        targets = await station.targets()
    assert wire.datagrams - asked == Counter({"127.40.0.50": 1})
    assert rule.status.entries[0].found == 5
    assert set(phases(targets).values()) == {("Ready", True)}
    assert "127.40.0.50" in {target.spec.address for target in targets.values()}


async def edited(station: Station, **spec: Any) -> DiscoveryRule:
    """The rule with another spec, however often its status changes meanwhile."""
    changed: DiscoveryRule = await station.change(DiscoveryRule, "lab", **spec)
    return changed


async def until_running(station: Station, not_of: Collection[str]) -> None:
    """A run, other than these, has sent something."""
    await station.until(
        DiscoveryRule, "lab", lambda rule: rule.status.history[0].id not in not_of and rule.status.progress
    )


async def until_position(station: Station, position: int) -> None:
    """The ledger says that a sweep has come so far."""
    seen: str | None = None
    while True:
        rule = await station.until(
            DiscoveryRule, "lab", lambda rule, seen=seen: rule.status and rule.status.ledger not in (UNSET, seen)
        )
        seen = rule.status.ledger
        if (await ledger_of(station, rule)).position >= position:
            return


async def test_when_the_range_changed_in_between_a_new_run_begins(station: Station, wire: Wire, port: int) -> None:
    async with SnmpDevice(wire, port, listen="0.0.0.0"):
        before, _ = await cut_off(station, port)
        held = await station.client.get(DiscoveryRuleIPRange, "lab", station.namespace)
        narrow = held.spec.replace(prefixes=(PrefixEntry(prefix="127.40.0.0/24"),))
        await station.change(DiscoveryRuleIPRange, "lab", prefixes=narrow.prefixes)
        async with station.working():
            rule = await station.until(DiscoveryRule, "lab", is_ready)
    new, old = rule.status.history
    assert old.id == before.status.history[0].id
    assert old.outcome == "Cancelled"
    assert (new.outcome, new.trigger) == ("Succeeded", "Changed")
    assert rule.status.entries[0].found == 8
    assert {target.spec.address.rpartition(".")[0] for target in (await station.targets()).values()} == {"127.40.0"}


async def test_without_its_ledger_it_begins_anew_and_says_so(station: Station, wire: Wire, port: int) -> None:
    async with SnmpDevice(wire, port, listen="0.0.0.0"):
        before, _ = await cut_off(station, port)
        await station.blobs.unpin(f"discoveryrules/{before.metadata.uid}")
        await station.blobs.collect(grace=0)
        async with station.working():
            rule = await station.until(DiscoveryRule, "lab", is_ready)
            event = await told(station, "LedgerLost")
    new, old = rule.status.history
    assert (old.id, old.outcome, old.reason) == (before.status.history[0].id, "Failed", "Interrupted")
    assert new.outcome == "Succeeded"
    assert event.type == "Warning"
    assert phases(await station.targets()) == {face.name: ("Ready", True) for face in wire.faces.values()}


async def test_a_rule_that_is_edited_again_and_again_in_the_middle_keeps_its_devices(
    station: Station, port: int
) -> None:
    """A login that nobody refused does not count against the device, however often a sweep is begun anew."""
    async with SshDevice(address="127.40.0.1", port=port, password="right") as device, station.working():
        await station.secret("login", username="admin", password="right")
        await station.profile("ssh", "ssh", port)
        await station.ranges("lab", "127.40.0.0/24")
        await station.rule("lab", ("ssh",), "login", period="1h", packets_per_second=RATE)
        await station.until(DiscoveryRule, "lab", is_ready)
        for priority in range(1, 4):
            rule = await edited(station, priority=priority)
            await until_running(station, not_of={run.id for run in rule.status.history})
        rule = await station.until(
            DiscoveryRule, "lab", lambda rule: is_ready(rule) and rule.status.history[0].outcome == "Succeeded"
        )
        (target,) = (await station.targets()).values()
    assert rule.status.entries[0].found == 1
    assert is_ready(target)
    assert device.failed_logins == 0
