"""A rule that grows beyond its period after it was admitted, by Pods or by DNS: it says so, and loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.systems.discovery.asked_runs import AT_ONCE, face, sweep, until_ended
from tests.systems.discovery.station import Station, condition, is_ready
from tests.systems.discovery.test_sources import pod
from trimtab.client.protocol import Ref
from trimtab.lab.snmp import SnmpDevice
from trimtab.model.kubernetes import Pod
from trimtab.systems.discovery import keeper, loop
from trimtab.systems.discovery.kinds import AddressEntry, DiscoveryRule
from trimtab.systems.discovery.kinds.range import Selector
from trimtab.testing.ports import free_ports


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed run is tried again before long."""
    monkeypatch.setattr(loop, "AGAIN_AFTER", 0.2)


async def begin(station: Station, port: int, rate: int, period: str, **sources: Any) -> None:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port)
    await station.ranges("lab", **sources)
    await station.rule("lab", ("snmp",), "login", fading=AT_ONCE, packets_per_second=rate, period=period)
    await station.until(DiscoveryRule, "lab", is_ready)


def assert_too_long(rule: DiscoveryRule, addresses: int) -> None:
    run = rule.status.history[0]
    assert (run.outcome, run.reason) == ("Failed", "SweepFailed")
    assert f"{addresses} addresses" in run.message
    assert "spec.period" in run.message
    said = condition(rule, "Ready")
    assert (said.status, said.reason) == ("False", "SweepFailed")
    assert f"{addresses} addresses" in said.message


async def test_a_name_that_gets_more_addresses_than_the_period_allows(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    known = {"devices.example.com": ["127.49.0.1"]}

    async def resolve(name: str) -> Sequence[str]:
        return known[name]

    monkeypatch.setattr(keeper, "system_resolver", resolve)
    async with SnmpDevice({"127.49.0.1": face(1)}, port) as device, station.working():
        await begin(station, port, 1, "10s", addresses=(AddressEntry(address="devices.example.com"),))
        before = (await station.targets())["switch-1"].metadata
        known["devices.example.com"] = [f"127.49.0.{n}" for n in range(1, 13)]
        asked = device.asked["127.49.0.1"]
        await sweep(station)
        rule = await station.until(DiscoveryRule, "lab", lambda rule: _failed_with(rule, "12 addresses"))
        assert_too_long(rule, 12)
        assert device.asked["127.49.0.1"] == asked
        assert (await station.targets())["switch-1"].metadata.resource_version == before.resource_version
        known["devices.example.com"] = ["127.49.0.1"]
        assert is_ready(await until_ended(station, is_ready))


async def test_more_pods_than_the_period_allows(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.49.0.1": face(1)}, port), station.working():
        await pod(station, "pod-1", "127.49.0.1")
        await begin(station, port, 20, "600ms", pod_selector=Selector(match_labels={"app": "device"}))
        before = (await station.targets())["switch-1"].metadata
        for number in range(2, 13):
            await pod(station, f"pod-{number}", f"127.49.0.{number}")
        rule = await station.until(DiscoveryRule, "lab", lambda rule: _failed_with(rule, "12 addresses"))
        assert_too_long(rule, 12)
        after = (await station.targets())["switch-1"].metadata
        assert (after.uid, after.resource_version) == (before.uid, before.resource_version)
        for number in range(2, 13):
            await station.client.delete(Ref(Pod, f"pod-{number}", station.namespace))
        assert is_ready(await until_ended(station, is_ready))


def _failed_with(rule: DiscoveryRule, words: str) -> Any:
    said = condition(rule, "Ready")
    return said is not None and said.status == "False" and words in said.message and rule.status.history[0].finished
