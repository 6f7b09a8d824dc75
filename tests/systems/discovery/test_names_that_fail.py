"""A DNS name, or a headless Service, that cannot be resolved for a while: whoever came by it misses nothing.
On both servers."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.systems.discovery.asked_runs import AT_ONCE, face, sweep, until_ended
from tests.systems.discovery.station import Station
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.model.duration import Duration
from trimtab.model.kubernetes import Service
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery import keeper
from trimtab.systems.discovery.kinds import AddressEntry, DiscoveryRule, DiscoveryRuleIPRange
from trimtab.systems.discovery.kinds.range import Selector
from trimtab.testing.ports import free_ports

NAMED = (AddressEntry(address="dev3.lab"),)
TOGETHER = msgspec.structs.replace(AT_ONCE, max_loss_percent=100)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """All that DNS knows."""
    known: dict[str, str] = {}

    async def resolve(name: str) -> Sequence[str]:
        if name not in known:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return [known[name]]

    monkeypatch.setattr(keeper, "system_resolver", resolve)
    return known


async def begin(station: Station, port: int, *prefixes: str, **more: Any) -> DiscoveryRule:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port, probe_timeout=Duration("500ms"))
    await station.ranges("lab", *prefixes, **more)
    await station.rule("lab", ("snmp",), "login", fading=TOGETHER, period="1h")
    return await until_ended(station, lambda rule: True)


async def written(station: Station) -> dict[str, Any]:
    return {name: target.metadata.resource_version for name, target in (await station.targets()).items()}


async def test_a_device_whose_name_cannot_be_resolved_is_not_missed(station: Station, names: dict[str, str]) -> None:
    (port,) = free_ports(1)
    names["dev3.lab"] = "127.60.0.3"
    devices = {f"127.60.0.{n}": face(n) for n in (1, 2, 3)}
    async with SnmpDevice(devices, port, listen="0.0.0.0"), station.working():
        await begin(station, port, "127.60.0.1-127.60.0.2", addresses=NAMED)
        before = await written(station)
        assert sorted(before) == ["switch-1", "switch-2", "switch-3"]
        names.clear()
        for _ in range(3):
            rule = await sweep(station)
        assert await written(station) == before
        failed = {entry.entry: entry.message for entry in rule.status.entries if entry.message}
        assert list(failed) == ["dev3.lab"]


async def test_a_headless_service_that_cannot_be_resolved_takes_nothing_with_it(
    station: Station, names: dict[str, str]
) -> None:
    (port,) = free_ports(1)
    names[f"core.{station.namespace}.svc.cluster.local"] = "127.60.1.3"
    metadata = ObjectMeta(name="core", namespace=station.namespace, labels={"app": "device"})
    headless = {"clusterIP": "None", "ports": [{"port": 161, "protocol": "UDP"}]}
    async with SnmpDevice({"127.60.1.3": face(3)}, port, listen="0.0.0.0"), station.working():
        await station.client.create(Service(metadata=metadata, spec=headless))
        await begin(station, port, service_selector=Selector(match_labels={"app": "device"}))
        before = await written(station)
        assert list(before) == ["switch-3"]
        names.clear()
        for _ in range(3):
            await sweep(station)
        assert await written(station) == before


async def test_a_device_keeps_the_address_that_a_name_gave_it_while_the_name_fails(
    station: Station, names: dict[str, str]
) -> None:
    (port,) = free_ports(1)
    names["dev3.lab"] = "127.60.2.3"
    one: Personality = face(3)
    devices = {"127.60.2.3": one, "127.60.2.8": one}
    async with SnmpDevice(devices, port, listen="0.0.0.0"), station.working():
        await begin(station, port, "127.60.2.8", addresses=NAMED)
        (target,) = (await station.targets()).values()
        assert target.status.addresses == ("127.60.2.3", "127.60.2.8")
        before = await written(station)
        names.clear()
        await sweep(station)
        assert await written(station) == before
        del devices["127.60.2.8"]  # the other one may answer: nobody asked
        await sweep(station)
        assert await written(station) == before


async def test_a_device_that_is_gone_fades_though_the_name_of_another_fails(
    station: Station, names: dict[str, str]
) -> None:
    (port,) = free_ports(1)
    devices = {"127.60.3.1": face(1), "127.60.3.2": face(2)}
    async with SnmpDevice(devices, port, listen="0.0.0.0"), station.working():
        await begin(station, port, "127.60.3.1-127.60.3.2", addresses=NAMED)
        del devices["127.60.3.2"]
        for _ in range(3):
            await sweep(station)
        assert list(await station.targets()) == ["switch-1"]


async def test_an_entry_that_is_taken_out_takes_its_target_when_every_name_is_resolved_again(
    station: Station, names: dict[str, str]
) -> None:
    (port,) = free_ports(1)
    devices = {"127.60.4.1": face(1), "127.60.4.2": face(2)}
    async with SnmpDevice(devices, port, listen="0.0.0.0"), station.working():
        await begin(station, port, "127.60.4.1", "127.60.4.2", addresses=NAMED)
        held = await station.client.get(DiscoveryRuleIPRange, "lab", station.namespace)
        await station.change(DiscoveryRuleIPRange, "lab", prefixes=held.spec.prefixes[:1])
        await sweep(station)
        assert sorted(await station.targets()) == ["switch-1", "switch-2"]
        names["dev3.lab"] = "127.60.4.1"
        await sweep(station)
        assert list(await station.targets()) == ["switch-1"]
