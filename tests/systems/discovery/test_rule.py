"""A rule's life: from its creation to Targets, through changes, to its end. On both servers, with simulated devices."""

from __future__ import annotations

from tests.systems.discovery.station import Station, condition, is_ready
from trimtab.client.protocol import Ref
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.model.duration import Duration
from trimtab.systems.discovery.kinds import DiscoveryRule, Fading, Target
from trimtab.testing.ports import free_ports


def face(number: int, **more: str) -> Personality:
    return Personality(name=f"switch-{number}", engine_id=bytes.fromhex(f"80001f8805{number:012x}aa"), **more)


async def snmp(station: Station, port: int) -> None:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port)


async def test_a_rule_finds_the_devices_of_its_prefix_and_says_so(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {f"127.20.0.{n}": face(n) for n in (1, 2, 9)}
    async with SnmpDevice(devices, port), station.working():
        await snmp(station, port)
        await station.ranges("lab", "127.20.0.0/28")
        await station.rule("lab", ("snmp",), "login")
        rule = await station.until(DiscoveryRule, "lab", is_ready)
    targets = await station.targets()
    assert sorted(targets) == ["switch-1", "switch-2", "switch-9"]
    target = targets["switch-9"]
    assert target.spec.address == "127.20.0.9"
    assert target.spec.connection_profile == "snmp"
    assert target.status.discovery_info.protocol == "snmp"
    assert target.status.phase == "Ready"
    assert is_ready(target)
    assert target.metadata.owner_references[0].uid == rule.metadata.uid
    assert rule.status.plan.addresses == 14
    (entry,) = rule.status.entries
    assert (entry.entry, entry.found, entry.not_found) == ("127.20.0.0/28", 3, 11)
    assert rule.status.targets.ready == 3
    assert all(profile.valid for profile in rule.status.profiles)


async def test_deleting_a_rule_stops_its_loop(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.20.0.1": face(1)}, port), station.working():
        await snmp(station, port)
        await station.ranges("lab", "127.20.0.0/30")
        await station.rule("lab", ("snmp",), "login")
        await station.until(DiscoveryRule, "lab", is_ready)
        await station.client.delete(Ref(DiscoveryRule, "lab", station.namespace))
        await station.until_gone(DiscoveryRule, "lab")


async def test_ten_unchanged_sweeps_write_no_target(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({f"127.20.0.{n}": face(n) for n in (1, 2)}, port), station.working():
        await snmp(station, port)
        await station.ranges("lab", "127.20.0.0/29")
        await station.rule("lab", ("snmp",), "login")
        await station.until(DiscoveryRule, "lab", is_ready)
        before = {name: t.metadata.resource_version for name, t in (await station.targets()).items()}
        await station.until_swept("lab", 10)
        assert {name: t.metadata.resource_version for name, t in (await station.targets()).items()} == before


async def test_a_missing_profile_stops_the_rule_and_is_named_until_it_comes(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.20.0.1": face(1)}, port), station.working():
        await station.ranges("lab", "127.20.0.0/30")
        await station.rule("lab", ("snmp",), "login")
        rule = await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready"))
        assert condition(rule, "Ready").reason == "InvalidProfile"
        assert "TargetConnectionProfile snmp: not found" in condition(rule, "Ready").message
        assert "Secret login: not found" in condition(rule, "Ready").message
        await snmp(station, port)
        await station.until(DiscoveryRule, "lab", is_ready)
        assert list(await station.targets()) == ["switch-1"]


async def test_a_device_that_is_gone_fades_and_is_deleted(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {f"127.20.0.{n}": face(n) for n in range(1, 6)}
    async with SnmpDevice(devices, port), station.working():
        await snmp(station, port)
        await station.ranges("lab", "127.20.0.0/28")
        fading = Fading(
            lost_after_misses=2, lost_after=Duration("0s"), delete_after_misses=3, delete_after=Duration("0s")
        )
        await station.rule("lab", ("snmp",), "login", fading=fading)
        await station.until(DiscoveryRule, "lab", is_ready)
        del devices["127.20.0.3"]
        stale = await station.until(Target, "switch-3", lambda t: t.status.phase == "Stale")
        assert not is_ready(stale)
        assert condition(stale, "Ready").reason == "Stale"
        await station.until(Target, "switch-3", lambda t: t.status.phase == "Lost")
        await station.until_gone(Target, "switch-3")
        assert len(await station.targets()) == 4
