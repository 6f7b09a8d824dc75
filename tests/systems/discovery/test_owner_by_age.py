"""Two rules of one priority that find one device: the older one has it, whoever found it first. On both servers."""

from __future__ import annotations

from tests.systems.discovery.asked_runs import face, until_ended
from tests.systems.discovery.station import Station, condition, is_ready
from trimtab.lab.snmp import SnmpDevice
from trimtab.systems.discovery.kinds import DiscoveryRule, Target
from trimtab.testing.ports import free_ports


async def test_the_older_rule_takes_the_device_that_the_younger_one_found_first(station: Station) -> None:
    """Their names are in the other order, and a third rule sweeps until they differ in age: to a server ages are whole
    seconds."""
    (port,) = free_ports(1)
    async with SnmpDevice({"127.51.0.1": face(1), "127.51.1.1": face(2)}, port), station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        await station.ranges("clock", "127.51.1.1")
        for name in ("zebra", "ant"):
            await station.ranges(name, "127.51.0.1")
        older = await station.rule("zebra", ("snmp",), "login", suspend=True, period="1h")
        await station.rule("clock", ("snmp",), "login", period="1s")
        await station.until_swept("clock", 3)
        younger = await station.rule("ant", ("snmp",), "login", period="1h")
        assert older.metadata.creation_timestamp < younger.metadata.creation_timestamp
        await station.until(DiscoveryRule, "ant", is_ready)
        assert await owner(station) == younger.metadata.uid
        await station.change(DiscoveryRule, "zebra", suspend=False)
        await until_ended(station, is_ready, "zebra")
        assert await owner(station) == older.metadata.uid
        assert condition(await station.client.get(DiscoveryRule, "zebra", station.namespace), "Overlap") is None


async def test_the_younger_rule_leaves_the_device_to_the_older_one_and_says_so(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.51.0.1": face(1), "127.51.1.1": face(2)}, port), station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        await station.ranges("clock", "127.51.1.1")
        for name in ("zebra", "ant"):
            await station.ranges(name, "127.51.0.1")
        older = await station.rule("zebra", ("snmp",), "login", period="1h")
        await station.rule("clock", ("snmp",), "login", period="1s")
        await station.until_swept("clock", 3)
        await station.rule("ant", ("snmp",), "login", period="1h")
        rule = await until_ended(station, is_ready, "ant")
        assert "switch-1 (rule zebra)" in condition(rule, "Overlap").message
        assert await owner(station) == older.metadata.uid


async def owner(station: Station) -> str:
    target: Target = (await station.targets())["switch-1"]
    (reference,) = target.metadata.owner_references or ()
    return reference.uid
