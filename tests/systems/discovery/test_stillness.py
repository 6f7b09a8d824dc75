"""What must not happen: packets of rules that rest, Targets that go for our own faults. On both servers.

Another rule that sweeps meanwhile is the clock: what did not happen during a few of its sweeps does not happen.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.systems.discovery.station import Station, condition, ended, is_ready
from trimtab.client.protocol import Ref
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.model.duration import Duration
from trimtab.systems.discovery.kinds import DiscoveryRule, DiscoveryRuleIPRange, Fading, PrefixEntry, Target, Window
from trimtab.systems.discovery.sweep.job import Quality
from trimtab.testing.ports import free_ports

AT_ONCE = Fading(lost_after_misses=1, lost_after=Duration("0s"), delete_after_misses=2, delete_after=Duration("0s"))


def face(number: int) -> Personality:
    return Personality(name=f"switch-{number}", engine_id=bytes.fromhex(f"80001f8805{number:012x}aa"))


async def begin(station: Station, port: int, **more: object) -> DiscoveryRule:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port)
    await station.ranges("clock", "127.27.1.1")
    await station.rule("clock", ("snmp",), "login")
    await station.ranges("lab", "127.27.0.0/29")
    await station.rule("lab", ("snmp",), "login", **more)
    return await station.until(DiscoveryRule, "lab", is_ready)


async def test_a_suspended_rule_sends_nothing(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.27.0.1": face(1), "127.27.1.1": face(2)}, port) as device, station.working():
        await begin(station, port)
        await station.change(DiscoveryRule, "lab", suspend=True)
        await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready").reason == "Suspended")
        asked = device.asked["127.27.0.1"]
        await station.until_swept("clock", 3)
        assert device.asked["127.27.0.1"] == asked


async def test_a_deleted_rule_sends_nothing_and_keeps_no_blob(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.27.0.1": face(1), "127.27.1.1": face(2)}, port) as device, station.working():
        await begin(station, port)
        await station.client.delete(Ref(DiscoveryRule, "lab", station.namespace))
        await station.until_gone(DiscoveryRule, "lab")
        asked = device.asked["127.27.0.1"]
        await station.until_swept("clock", 3)
        assert device.asked["127.27.0.1"] == asked
        assert (
            f'namespace="{station.namespace}",outcome="identified",rule="lab"' not in station.metrics.render().decode()
        )


async def test_a_sweep_that_cannot_be_trusted_misses_nobody_and_says_why(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    devices = {"127.27.0.1": face(1), "127.27.0.2": face(3), "127.27.1.1": face(2)}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, fading=AT_ONCE)
        monkeypatch.setattr(Quality, "poor", property(lambda quality: "the test says so"))
        del devices["127.27.0.1"]
        rule = await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready").reason == "PoorSweep")
        assert "the test says so" in condition(rule, "Ready").message
        assert (await station.targets())["switch-1"].status.phase == "Ready"


async def test_a_device_that_answers_the_last_probe_is_not_lost(station: Station) -> None:
    (port,) = free_ports(1)
    flaky = False
    asked = 0

    def faces(address: str) -> Personality | None:
        nonlocal asked
        if address != "127.27.0.1" or not flaky:
            return {"127.27.0.1": face(1), "127.27.0.2": face(3), "127.27.1.1": face(2)}.get(address)
        asked += 1
        return face(1) if asked > 1 and asked % 2 else None  # silent in each sweep, awake when it is asked once more

    async with SnmpDevice(faces, port, listen="0.0.0.0"), station.working():
        await begin(station, port, fading=AT_ONCE)
        flaky = True
        await station.until(Target, "switch-1", lambda target: target.status.phase == "Stale")
        await station.until_swept("lab", 4)
        assert (await station.targets())["switch-1"].status.phase == "Stale"


async def test_a_new_rule_waits_for_its_window(station: Station) -> None:
    (port,) = free_ports(1)
    later = datetime.now(UTC) + timedelta(hours=3)
    window = Window(start=f"{later.minute} {later.hour} * * *", duration=Duration("1h"))
    async with SnmpDevice({"127.27.0.1": face(1), "127.27.1.1": face(2)}, port) as device, station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        await station.ranges("clock", "127.27.1.1")
        await station.ranges("lab", "127.27.0.1")
        await station.rule("lab", ("snmp",), "login", windows=(window,))
        await station.rule("clock", ("snmp",), "login")
        await station.until(DiscoveryRule, "lab", lambda rule: rule.status and rule.status.start_time)
        await station.until_swept("clock", 3)
        assert "127.27.0.1" not in device.asked


async def test_what_is_asked_for_during_a_run_is_another_run(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.27.0.1": face(1)}, port), station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        await station.ranges("lab", "127.27.0.0/24")
        await station.rule("lab", ("snmp",), "login", period="1h", packets_per_second=200)
        rule = await station.until(DiscoveryRule, "lab", lambda rule: rule.status and rule.status.history)
        await station.annotate(rule, "discovery.trimtab.dev/run", "one-more")
        rule = await station.until(DiscoveryRule, "lab", lambda rule: len(ended(rule)) == 2)
        assert [run.trigger for run in rule.status.history] == ["Manual", "Changed"]
        assert rule.status.handled_run == "one-more"


async def test_what_changed_while_nobody_looked_is_swept_at_once(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.27.0.1": face(1), "127.27.0.2": face(2)}
    async with SnmpDevice(devices, port):
        async with station.working():
            await station.secret("login", community="public")
            await station.profile("snmp", "snmp", port)
            await station.ranges("lab", "127.27.0.1")
            await station.rule("lab", ("snmp",), "login", period="1h")
            await station.until(DiscoveryRule, "lab", is_ready)
        held = await station.client.get(DiscoveryRuleIPRange, "lab", station.namespace)
        wider = held.spec.replace(prefixes=(PrefixEntry(prefix="127.27.0.0/29"),))
        await station.change(DiscoveryRuleIPRange, "lab", prefixes=wider.prefixes)
        async with station.working():
            await station.until(Target, "switch-2", is_ready)
