"""What all rules of a process share, as its environment says: the controller judges rules by it, as admission does."""

from __future__ import annotations

import pytest

from tests.systems.discovery.station import Station, condition, is_ready
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.model.duration import Duration
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.scope.plan import PACKETS_VARIABLE
from trimtab.testing.ports import free_ports


async def test_a_rule_that_the_process_cannot_sweep_in_time_sends_nothing(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PACKETS_VARIABLE, "10")
    (port,) = free_ports(1)
    async with SnmpDevice({"127.23.0.1": Personality(name="switch-1")}, port) as device, station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        await station.ranges("lab", "127.23.0.0/28")
        await station.rule("lab", ("snmp",), "login", period="1s")
        rule = await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready"))
        assert condition(rule, "Ready").reason == "InvalidProfile"
        assert "14 packets, 10 a second" in condition(rule, "Ready").message
        assert not any(device.asked.values())
        await station.change(DiscoveryRule, "lab", period=Duration("5s"))
        await station.until(DiscoveryRule, "lab", is_ready)
        assert list(await station.targets()) == ["switch-1"]
