"""Two devices that claim to be one: each has a Target that names the other. Whole rules, on both servers."""

from __future__ import annotations

from typing import Any

from tests.systems.discovery.asked_runs import begin, face, sweep
from tests.systems.discovery.station import Station, condition, is_ready
from tests.systems.discovery.test_identities import until_event
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.systems.discovery.identify.snmp import CHASSIS, ENTITY_CLASS, ENTITY_SERIAL
from trimtab.systems.discovery.kinds.target import IDENTITY_LABEL
from trimtab.testing.ports import free_ports

PREFIX = "127.45.0.0/29"
ONE, OTHER = "127.45.0.1", "127.45.0.2"


def clone(number: int, serial: str) -> Personality:
    return face(number, more={ENTITY_CLASS: CHASSIS, ENTITY_SERIAL: serial.encode()})


async def by_address(station: Station) -> dict[str, Any]:
    return {target.spec.address: target for target in (await station.targets()).values()}


async def test_clones_have_a_target_each_that_names_the_other(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {ONE: clone(1, "FOC1947N2QX"), OTHER: clone(2, "FOC1947N2QX")}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, PREFIX)
        targets = await by_address(station)
        assert targets.keys() == {ONE, OTHER}
        for mine, others in ((targets[ONE], targets[OTHER]), (targets[OTHER], targets[ONE])):
            said = condition(mine, "IdentityConflict")
            assert (said.status, said.reason) == ("True", "SharedIdentity")
            assert f"serial number FOC1947N2QX is also that of {others.name}" in said.message
            assert is_ready(mine)
        assert len({target.metadata.labels[IDENTITY_LABEL] for target in targets.values()}) == 2
        event = await until_event(station, "IdentityConflict")
        assert event.type == "Warning"


async def test_clones_that_stay_are_not_written_again(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {ONE: clone(1, "FOC1947N2QX"), OTHER: clone(2, "FOC1947N2QX")}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, PREFIX)
        before = {t.metadata.uid: t.metadata.resource_version for t in (await station.targets()).values()}
        await sweep(station)
        after = {t.metadata.uid: t.metadata.resource_version for t in (await station.targets()).values()}
    assert after == before


async def test_the_condition_goes_from_both_with_the_conflict(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {ONE: clone(1, "FOC1947N2QX"), OTHER: clone(2, "FOC1947N2QX")}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, PREFIX)
        before = await by_address(station)
        devices[OTHER] = clone(2, "FOC2031R7KD")
        await sweep(station)
        after = await by_address(station)
    assert {a: t.metadata.uid for a, t in after.items()} == {a: t.metadata.uid for a, t in before.items()}
    assert [condition(target, "IdentityConflict") for target in after.values()] == [None, None]
