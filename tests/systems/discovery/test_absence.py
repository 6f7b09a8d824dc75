"""What becomes of Targets whose devices do not answer, or are not asked for any more. On both servers."""

from __future__ import annotations

import re

from msgspec import UNSET

from tests.systems.discovery.station import Station, condition, is_ready
from trimtab.client.protocol import Ref
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.model.duration import Duration
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleIPRange, Fading, PrefixEntry, Target
from trimtab.testing.ports import free_ports

AT_ONCE = Fading(lost_after_misses=1, lost_after=Duration("0s"), delete_after_misses=2, delete_after=Duration("0s"))


def face(number: int) -> Personality:
    return Personality(name=f"switch-{number}", engine_id=bytes.fromhex(f"80001f8805{number:012x}aa"))


async def begin(station: Station, port: int, prefix: str = "127.23.0.0/28", **more: object) -> DiscoveryRule:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port)
    await station.ranges("lab", prefix)
    await station.rule("lab", ("snmp",), "login", **more)
    return await station.until(DiscoveryRule, "lab", is_ready)


async def test_when_too_many_would_go_at_once_none_goes_until_someone_says_so(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {f"127.23.0.{n}": face(n) for n in range(1, 5)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, fading=AT_ONCE)
        for number in (1, 2, 3):
            del devices[f"127.23.0.{number}"]
        rule = await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "MassLoss"))
        await station.until_swept("lab", 3)
        targets = await station.targets()
        assert [targets[f"switch-{n}"].status.phase for n in range(1, 5)] == ["Stale", "Stale", "Stale", "Ready"]
        held = condition(rule, "MassLoss")
        assert "3 of 4" in held.message
        rule = await station.client.get(DiscoveryRule, "lab", station.namespace)
        await station.annotate(rule, "discovery.trimtab.dev/release-mass-loss", held_run(rule))
        await station.until(Target, "switch-1", lambda t: t.status.phase == "Lost")
        await station.until(DiscoveryRule, "lab", lambda rule: not condition(rule, "MassLoss"))


async def test_a_device_that_comes_back_is_ready_again(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {f"127.23.0.{n}": face(n) for n in range(1, 3)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port)
        gone = devices.pop("127.23.0.1")
        stale = await station.until(Target, "switch-1", lambda t: t.status.phase == "Stale")
        assert stale.status.last_seen
        devices["127.23.0.1"] = gone
        back = await station.until(Target, "switch-1", lambda t: t.status.phase == "Ready")
        assert is_ready(back)
        assert back.status.last_seen is UNSET


async def test_by_default_a_short_absence_deletes_nothing(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.23.0.1": face(1), "127.23.0.2": face(2)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port)
        del devices["127.23.0.1"]
        await station.until(Target, "switch-1", lambda t: t.status.phase == "Stale")
        await station.until_swept("lab", 6)
        assert (await station.targets())["switch-1"].status.phase == "Stale"


async def test_a_target_out_of_every_entry_goes(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {f"127.23.0.{n}": face(n) for n in (1, 2, 9)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port)
        held = await station.client.get(DiscoveryRuleIPRange, "lab", station.namespace)
        narrow = held.spec.replace(prefixes=(PrefixEntry(prefix="127.23.0.0/29"),))
        await station.change(DiscoveryRuleIPRange, "lab", prefixes=narrow.prefixes)
        await station.until_gone(Target, "switch-9")
        assert sorted(await station.targets()) == ["switch-1", "switch-2"]


async def test_a_target_that_someone_deletes_comes_back_with_the_next_sweep(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.23.0.1": face(1)}, port), station.working():
        await begin(station, port)
        first = (await station.targets())["switch-1"]
        await station.client.delete(Ref(Target, "switch-1", station.namespace))
        again = await station.until(Target, "switch-1", lambda t: t.metadata.uid != first.metadata.uid)
        assert again.spec == first.spec


def held_run(rule: DiscoveryRule) -> str:
    """The run that the message names, as a person would take it from there."""
    named = re.search(r"release-mass-loss=(\S+)", condition(rule, "MassLoss").message)
    assert named
    return named[1]


async def test_the_last_target_of_a_rule_does_not_go_by_itself(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.23.0.1": face(1)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, fading=AT_ONCE)
        devices.clear()
        await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "MassLoss"))
        assert list(await station.targets()) == ["switch-1"]


async def test_a_release_is_used_up_and_void_when_the_devices_come_back(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {f"127.23.0.{n}": face(n) for n in range(1, 4)}
    kept = dict(devices)
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, fading=AT_ONCE, period="1s")
        devices.clear()
        rule = await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "MassLoss"))
        devices.update(kept)
        await station.annotate(rule, "discovery.trimtab.dev/release-mass-loss", held_run(rule))
        await station.until(
            DiscoveryRule,
            "lab",
            lambda rule: not condition(rule, "MassLoss") and not rule.metadata.annotations,
        )
        devices.clear()
        await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "MassLoss"))
        await station.until_swept("lab")
        assert {target.status.phase for target in (await station.targets()).values()} == {"Stale"}
