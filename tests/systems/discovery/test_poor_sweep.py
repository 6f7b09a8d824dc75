"""A sweep whose packets the machine could not send: what it counts, and what it does not conclude. On both servers."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection, Sequence

import pytest

from tests.systems.discovery.asked_runs import AT_ONCE, begin, face, sweep
from tests.systems.discovery.station import Station, condition
from trimtab.lab.snmp import SnmpDevice
from trimtab.systems.discovery.sweep import syscalls
from trimtab.testing.ports import free_ports


def refuse(monkeypatch: pytest.MonkeyPatch, addresses: Collection[str]) -> None:
    """The kernel sends no datagram to these, as when a firewall of our own is in the way."""
    refused = {socket.inet_aton(address) for address in addresses}
    usual = syscalls.Outbox.send

    def send(outbox: syscalls.Outbox, fd: int, names: Sequence[bytes]) -> tuple[int, int]:
        if names[0][4:8] in refused:
            return 0, errno.EPERM
        good = next((place for place, name in enumerate(names) if name[4:8] in refused), len(names))
        return usual(outbox, fd, names[:good])

    monkeypatch.setattr(syscalls.Outbox, "send", send)


async def test_failures_to_send_are_counted_and_nobody_is_missed(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    devices = {f"127.48.0.{n}": face(n) for n in (1, 2, 3)}
    async with SnmpDevice(devices, port, listen="0.0.0.0"), station.working():
        await begin(station, port, "127.48.0.0/28", fading=AT_ONCE)
        before = {name: target.metadata.resource_version for name, target in (await station.targets()).items()}
        del devices["127.48.0.3"]
        refuse(monkeypatch, [f"127.48.0.{n}" for n in (1, *range(9, 15))])
        poor = await sweep(station)
        after = {name: target.metadata.resource_version for name, target in (await station.targets()).items()}
    run = poor.status.history[0]
    assert (run.outcome, run.reason) == ("Succeeded", "PoorSweep")
    assert run.counts == {"identified": 1, "not_sent": 7, "silent": 6}
    assert "1 of 14 addresses identified" in run.message
    assert "7 of 14 probes could not be sent" in run.message
    assert (condition(poor, "Ready").status, condition(poor, "Ready").reason) == ("False", "PoorSweep")
    (entry,) = poor.status.entries
    assert (entry.addresses, entry.found, entry.not_found) == (14, 1, 13)
    assert poor.status.targets.ready == 3
    assert after == before


async def test_its_counts_are_measured_too(station: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    refuse(monkeypatch, [f"127.48.0.{n}" for n in range(2, 7)])
    async with SnmpDevice({"127.48.0.1": face(1)}, port, listen="0.0.0.0"), station.working():
        await begin(station, port, "127.48.0.0/29")
        text = station.metrics.render().decode()
    where = f'namespace="{station.namespace}"'
    assert f'discovery_addresses{{{where},outcome="not_sent",rule="lab"}} 5.0' in text
    assert f'discovery_addresses{{{where},outcome="identified",rule="lab"}} 1.0' in text
