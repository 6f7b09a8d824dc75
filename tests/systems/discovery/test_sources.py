"""Where addresses come from: names, Pods, Services, lists that are not probed. On both servers."""

from __future__ import annotations

from typing import Any

from tests.systems.discovery.station import Station, is_ready
from trimtab.client.protocol import Ref
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.model.kubernetes import Pod, Service
from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.kinds import (
    AddressEntry,
    DefaultSchema,
    DiscoveryRule,
    DiscoveryRuleIPRange,
    Target,
    TargetConnection,
)
from trimtab.systems.discovery.kinds.range import Selector
from trimtab.testing.ports import free_ports


def face(number: int) -> Personality:
    return Personality(name=f"switch-{number}", engine_id=bytes.fromhex(f"80001f8805{number:012x}aa"))


async def login(station: Station, port: int) -> None:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port)


async def pod(station: Station, name: str, address: str, *, ready: str = "True", phase: str = "Running") -> None:
    metadata = ObjectMeta(name=name, namespace=station.namespace, labels={"app": "device"})
    made: Any = await station.client.create(
        Pod(metadata=metadata, spec={"containers": [{"name": "os", "image": "device"}]})
    )
    conditions = [{"type": "Ready", "status": ready}]
    status = {"phase": phase, "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
    await station.client.patch(made, made.replace(status=status), subresource="status")


async def test_a_name_is_resolved_and_one_that_is_not_known_is_told_and_deletes_nothing(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.0.0.1": face(1)}, port), station.working():
        await login(station, port)
        entries = (AddressEntry(address="localhost"), AddressEntry(address="nowhere.invalid"))
        await station.ranges("lab", addresses=entries)
        await station.rule("lab", ("snmp",), "login")
        rule = await station.until(DiscoveryRule, "lab", is_ready)
        by_name = {entry.entry: entry for entry in rule.status.entries}
        assert by_name["localhost"].found == 1
        assert "nowhere.invalid" in by_name["nowhere.invalid"].message
        await station.until_swept("lab", 2)
        assert list(await station.targets()) == ["switch-1"]


async def test_pods_are_followed_by_their_labels(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.24.0.1": face(1), "127.24.0.2": face(2)}
    async with SnmpDevice(devices, port, listen="0.0.0.0"), station.working():
        await login(station, port)
        await pod(station, "one", "127.24.0.1")
        await station.ranges("lab", pod_selector=Selector(match_labels={"app": "device"}))
        await station.rule("lab", ("snmp",), "login", period="1h")
        await station.until(DiscoveryRule, "lab", is_ready)
        await pod(station, "two", "127.24.0.2")
        await station.until(Target, "switch-2", is_ready)
        await station.client.delete(Ref(Pod, "two", station.namespace))
        await station.until(Target, "switch-2", lambda target: target.status.phase == "Stale")
        await pod(station, "two", "127.24.0.3")
        devices["127.24.0.3"] = devices.pop("127.24.0.2")
        moved = await station.until(Target, "switch-2", lambda target: target.status.phase == "Ready")
        assert moved.spec.address == "127.24.0.3"


async def test_pods_that_are_not_ready_or_have_ended_are_not_asked(station: Station) -> None:
    """The address of one that has ended may be another's by now."""
    (port,) = free_ports(1)
    devices = {f"127.63.0.{n}": face(n) for n in range(1, 5)}
    async with SnmpDevice(devices, port, listen="0.0.0.0") as device, station.working():
        await login(station, port)
        await pod(station, "ready", "127.63.0.1")
        await pod(station, "starting", "127.63.0.2", ready="False")
        await pod(station, "done", "127.63.0.3", phase="Succeeded")
        await pod(station, "broken", "127.63.0.4", phase="Failed")
        await station.ranges("lab", pod_selector=Selector(match_labels={"app": "device"}))
        await station.rule("lab", ("snmp",), "login", period="1h")
        rule = await station.until(DiscoveryRule, "lab", is_ready)
        assert rule.status.plan.addresses == 1
        assert list(await station.targets()) == ["switch-1"]
        assert set(device.asked) == {"127.63.0.1"}


async def test_services_are_reached_at_their_cluster_address(station: Station) -> None:
    (port,) = free_ports(1)
    metadata = ObjectMeta(name="core", namespace=station.namespace, labels={"app": "device"})
    spec = {"clusterIP": "None", "ports": [{"port": 161, "protocol": "UDP"}]}
    async with station.working():
        await login(station, port)
        await station.client.create(Service(metadata=metadata, spec=spec))
        await station.ranges("lab", service_selector=Selector(match_labels={"app": "device"}), service_domain="invalid")
        await station.rule("lab", ("snmp",), "login")
        rule = await station.until(DiscoveryRule, "lab", is_ready)
        (entry,) = rule.status.entries
        assert f"core.{station.namespace}.svc.invalid" in entry.message


async def test_a_list_with_a_default_schema_is_written_unprobed_and_goes_with_its_entries(station: Station) -> None:
    (port,) = free_ports(1)
    async with station.working():
        await login(station, port)
        entries = (
            AddressEntry(address="10.9.0.1", host_name="core-1"),
            AddressEntry(address="device.example.com"),
            AddressEntry(address="10.9.0.3", host_name="Edge 3"),
        )
        schema = DefaultSchema(provider="srl.nokia", version="24.7.1")
        await station.ranges("lab", addresses=entries, default_schema=schema)
        connection = TargetConnection(connection_profile="snmp", credentials="login")
        await station.rule("lab", (), "login", connections=(connection,), period="1h")
        await station.until(DiscoveryRule, "lab", is_ready)
        targets = await station.targets()
        by_address = {target.spec.address: target for target in targets.values()}
        assert sorted(by_address) == ["10.9.0.1", "10.9.0.3", "device.example.com"]
        assert by_address["10.9.0.1"].name == "core-1"
        assert by_address["10.9.0.1"].spec.provider == "srl.nokia"
        assert by_address["10.9.0.1"].status.discovery_info.version == "24.7.1"
        assert all(is_ready(target) for target in targets.values())
        await station.change(DiscoveryRuleIPRange, "lab", addresses=entries[:2])
        await station.until_gone(Target, by_address["10.9.0.3"].name)
        await station.client.delete(Ref(Target, "core-1", station.namespace))
        await station.until(Target, "core-1", is_ready)


async def test_prefixes_that_overlap_are_probed_once(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.24.0.1": face(1)}, port) as device, station.working():
        await login(station, port)
        await station.ranges("lab", "127.24.0.0/29", "127.24.0.1", "127.24.0.1-127.24.0.3")
        await station.rule("lab", ("snmp",), "login", period="1h")
        rule = await station.until(DiscoveryRule, "lab", is_ready)
        assert rule.status.plan.addresses == 6
        assert {entry.entry: entry.found for entry in rule.status.entries} == {
            "127.24.0.0/29": 1,
            "127.24.0.1": 1,
            "127.24.0.1-127.24.0.3": 1,
        }
        assert device.asked["127.24.0.1"] <= 2
