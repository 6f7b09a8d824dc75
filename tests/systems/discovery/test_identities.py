"""One Target for each device, whatever happens to addresses, names and hardware. On both servers."""

from __future__ import annotations

from tests.systems.discovery.station import Station, condition, is_ready
from trimtab.client.protocol import Query
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.model.kubernetes import Event
from trimtab.systems.discovery.kinds import DiscoveryRule, Target, TargetTemplate
from trimtab.testing.ports import free_ports


def face(number: int, name: str = "", **more: str) -> Personality:
    return Personality(name=name or f"switch-{number}", engine_id=bytes.fromhex(f"80001f8805{number:012x}aa"), **more)


async def begin(station: Station, port: int, prefix: str = "127.21.0.0/28", **more: object) -> DiscoveryRule:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port)
    await station.ranges("lab", prefix)
    await station.rule("lab", ("snmp",), "login", **more)
    return await station.until(DiscoveryRule, "lab", is_ready)


async def test_a_device_with_two_addresses_is_one_target(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.21.0.2": face(1), "127.21.0.10": face(1)}, port), station.working():
        await begin(station, port)
        (target,) = (await station.targets()).values()
        assert target.spec.address == "127.21.0.2"
        assert target.status.addresses == ("127.21.0.2", "127.21.0.10")


async def test_a_device_that_moves_keeps_its_target(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.21.0.2": face(1), "127.21.0.3": face(2)}
    async with SnmpDevice(devices, port, listen="0.0.0.0"), station.working():
        await begin(station, port)
        before = (await station.targets())["switch-1"]
        devices["127.21.0.9"] = devices.pop("127.21.0.2")
        moved = await station.until(Target, "switch-1", lambda t: condition(t, "Moved"))
        assert moved.metadata.uid == before.metadata.uid
        assert moved.spec.address == "127.21.0.9"
        assert "127.21.0.2" in condition(moved, "Moved").message
        assert sorted(await station.targets()) == ["switch-1", "switch-2"]


async def test_a_device_that_is_renamed_keeps_its_target(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.21.0.2": face(1)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port)
        devices["127.21.0.2"] = face(1, name="core-1")
        renamed = await station.until(Target, "switch-1", lambda t: condition(t, "Renamed"))
        assert renamed.status.discovery_info.hostname == "core-1"
        assert "switch-1" in condition(renamed, "Renamed").message


async def test_other_hardware_with_the_same_name_and_address_is_told(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.21.0.2": face(1, name="edge"), "127.21.0.3": face(2)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port)
        devices["127.21.0.2"] = face(7, name="edge")
        replaced = await station.until(Target, "edge", lambda t: condition(t, "HardwareReplaced"))
        assert replaced.status.identity.engine_id.endswith("07aa")
        assert sorted(await station.targets()) == ["edge", "switch-2"]


async def test_two_devices_of_one_name_are_two_targets(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.21.0.2": face(1, name="core_sw"), "127.21.0.3": face(2, name="core_sw")}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port)
        targets = await station.targets()
        assert {t.spec.address for t in targets.values()} == {"127.21.0.2", "127.21.0.3"}
        names = sorted(targets)
        await station.until_swept("lab", 2)
        assert sorted(await station.targets()) == names


async def test_the_template_names_targets_and_an_empty_name_is_told(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.21.0.2": face(1), "127.21.0.3": face(2, name="")}
    devices["127.21.0.3"] = Personality(name="", engine_id=bytes.fromhex("80001f8805000000000003aa"))
    template = TargetTemplate(
        name_template="{{ discoveryInfo.hostname }}", labels={"site": "{{ rule.name }}-{{ address }}"}
    )
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, target_template=template)
        targets = await station.targets()
        assert sorted(targets) == ["127.21.0.3", "switch-1"]
        assert targets["switch-1"].metadata.labels["site"] == "lab-127.21.0.2"
        await until_event(station, "EmptyName")


async def test_a_label_that_leaves_the_template_leaves_the_targets(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.21.0.2": face(1)}, port), station.working():
        await begin(station, port, target_template=TargetTemplate(labels={"a": "b", "c": "d"}))
        template = TargetTemplate(labels={"c": "d", "e": "f"}, annotations={"g": "h"})
        await station.change(DiscoveryRule, "lab", target_template=template)
        target = await station.until(Target, "switch-1", lambda t: "e" in t.metadata.labels)
        assert "a" not in target.metadata.labels
        assert target.metadata.labels["c"] == "d"
        assert target.metadata.annotations["g"] == "h"


async def test_of_two_rules_that_find_a_device_the_higher_has_it(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.21.0.2": face(1)}, port), station.working():
        first = await begin(station, port)
        await station.ranges("other", "127.21.0.2")
        await station.rule("other", ("snmp",), "login")
        other = await station.until(DiscoveryRule, "other", lambda rule: condition(rule, "Overlap"))
        assert "switch-1 (rule lab)" in condition(other, "Overlap").message
        (target,) = (await station.targets()).values()
        assert target.metadata.owner_references[0].uid == first.metadata.uid
        await station.ranges("mightier", "127.21.0.2")
        mightier = await station.rule("mightier", ("snmp",), "login", priority=5)
        uid = mightier.metadata.uid
        taken = await station.until(Target, "switch-1", lambda t: t.metadata.owner_references[0].uid == uid)
        assert taken.metadata.labels["discovery.trimtab.dev/rule"] == "mightier"
        assert len(taken.metadata.owner_references) == 1
        await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Overlap"))


async def until_event(station: Station, reason: str) -> Event:
    found: list[Event] = []

    def holds(event: Event) -> bool:
        if event.reason == reason:
            found.append(event)
        return bool(found)

    await station.until_any(Event, Query(namespace=station.namespace), holds)
    return found[0]
