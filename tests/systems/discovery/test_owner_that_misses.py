"""Two rules cover one device, and the one that has its Target does not find it any more. On both servers."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from tests.systems.discovery.asked_runs import AT_ONCE, face, sweep, until_ended
from tests.systems.discovery.station import Station, condition, is_ready
from trimtab.lab.snmp import SnmpDevice
from trimtab.model.duration import Duration
from trimtab.model.kubernetes import Secret
from trimtab.systems.discovery.kinds import Target
from trimtab.testing.ports import free_ports

TOGETHER = msgspec.structs.replace(AT_ONCE, max_loss_percent=100)


async def begin(station: Station, port: int, address: str) -> Target:
    """`first` goes before `second`, and has the device."""
    await station.secret("theirs", community="public")
    await station.secret("ours", community="public")
    await station.profile("snmp", "snmp", port, probe_timeout=Duration("500ms"))
    for name, secret, priority in (("first", "theirs", 5), ("second", "ours", 0)):
        await station.ranges(name, address)
        await station.rule(name, ("snmp",), secret, priority=priority, fading=TOGETHER, period="1h")
        rule = await until_ended(station, is_ready, name)
    assert "switch-1 (rule first)" in condition(rule, "Overlap").message
    return (await station.targets())["switch-1"]


async def ask_with(station: Station, community: str) -> None:
    """The credential of `first`; its rule sweeps at once."""
    held: Any = await station.client.get(Secret, "theirs", station.namespace)
    data = {"community": base64.b64encode(community.encode()).decode()}
    await station.client.patch(held, held.replace(data=data))
    await station.until_swept("first")


def owner(target: Target) -> str:
    (reference,) = target.metadata.owner_references or ()
    return reference.name


async def test_the_other_rule_takes_over_a_target_that_its_owner_misses(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.61.0.1": face(1)}, port, listen="0.0.0.0"), station.working():
        before = await begin(station, port, "127.61.0.1")
        await ask_with(station, "wrong")
        for _ in range(3):
            await sweep(station, "second")
            await sweep(station, "first")
        target = (await station.targets())["switch-1"]
        assert target.metadata.uid == before.metadata.uid
        assert (target.status.phase, owner(target), target.spec.credentials) == ("Ready", "second", "ours")
        assert is_ready(target)


async def test_the_owner_takes_it_back_when_it_finds_it_again(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.61.1.1": face(1)}, port, listen="0.0.0.0"), station.working():
        before = await begin(station, port, "127.61.1.1")
        await ask_with(station, "wrong")
        await sweep(station, "second")
        assert owner((await station.targets())["switch-1"]) == "second"
        await ask_with(station, "public")
        target = (await station.targets())["switch-1"]
        assert (target.metadata.uid, owner(target)) == (before.metadata.uid, "first")
        rule = await sweep(station, "second")
        assert condition(rule, "Overlap") is not None
