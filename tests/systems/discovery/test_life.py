"""The life of a rule's loop: replaced on change, stopped when it must be, one at a time, and never silent about errors."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.runtime.test_manager import Replica
from tests.runtime.widgets import running, until
from tests.systems.discovery.station import Station, condition, ended, is_ready
from tests.systems.discovery.test_identities import until_event
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import Fault as SshFault
from trimtab.model.duration import Duration
from trimtab.model.kubernetes import Secret
from trimtab.model.objectmeta import ObjectMeta
from trimtab.storage.blobs import BlobError
from trimtab.systems.discovery.kinds import (
    DiscoveryRule,
    DiscoveryVendorProfile,
    DiscoveryVendorProfileSpec,
    Target,
    Window,
)
from trimtab.systems.discovery.kinds.vendor import SnmpVendor, SshVendor
from trimtab.systems.discovery.loop import Loop
from trimtab.testing.ports import free_ports


def face(number: int, **more: object) -> Personality:
    return Personality(name=f"switch-{number}", engine_id=bytes.fromhex(f"80001f8805{number:012x}aa"), **more)


async def begin(station: Station, port: int, **more: object) -> DiscoveryRule:
    await station.secret("login", community="public")
    await station.profile("snmp", "snmp", port)
    await station.ranges("lab", "127.25.0.0/29")
    await station.rule("lab", ("snmp",), "login", **more)
    return await station.until(DiscoveryRule, "lab", is_ready)


async def test_a_change_of_a_secret_restarts_the_rule_at_once(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.25.0.1": face(1), "127.25.0.2": face(2, community=b"private")}
    async with SnmpDevice(devices, port), station.working():
        await begin(station, port, period="1h")
        assert sorted(await station.targets()) == ["switch-1"]
        secret = await station.client.get(Secret, "login", station.namespace)
        data = {"community": base64.b64encode(b"private").decode()}
        await station.client.patch(secret, secret.replace(data=data))
        await station.until(Target, "switch-2", is_ready)


async def test_a_new_vendor_profile_restarts_the_rules_of_its_namespace(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.25.0.1": face(1)}, port), station.working():
        await begin(station, port, period="1h")
        assert (await station.targets())["switch-1"].spec.provider == "unknown"
        spec = DiscoveryVendorProfileSpec(snmp=SnmpVendor(object_id="1.3.6.1.4.1.8072"))
        metadata = ObjectMeta(name="linux", namespace=station.namespace)
        await station.client.create(DiscoveryVendorProfile(metadata=metadata, spec=spec))
        await station.until(Target, "switch-1", lambda t: t.spec.provider == "linux")


@contextlib.asynccontextmanager
async def held(device: SshDevice, address: str, port: int, released: asyncio.Event) -> AsyncIterator[None]:
    """A way to the device on which nothing comes back once it has a credential, until that is released."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(4096):
                if back and device.tried.is_set():
                    await released.wait()
                writer.write(data)
                await writer.drain()
        writer.close()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_device, to_device = await asyncio.open_connection(device.address, device.port)
        await asyncio.gather(carry(reader, to_device, back=False), carry(from_device, writer, back=True))

    async with await asyncio.start_server(pass_on, address, port):
        yield


async def test_changes_while_devices_are_logged_in_to_cost_none_of_them_a_window(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    released, stop = asyncio.Event(), Loop.stop

    async def release_and_stop(loop: Loop, **more: object) -> None:
        asyncio.get_running_loop().call_later(0.3, released.set)  # devices take their time
        await stop(loop, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Loop, "stop", release_and_stop)
    async with contextlib.AsyncExitStack() as stack:
        devices = [await stack.enter_async_context(SshDevice(password="right")) for _ in range(4)]
        for number, device in enumerate(devices, 1):
            await stack.enter_async_context(held(device, f"127.25.0.{number}", port, released))
        await stack.enter_async_context(station.working())
        await station.secret("login", username="admin", password="right")
        await station.profile("ssh", "ssh", port)
        await station.ranges("lab", "127.25.0.0/29")
        await station.rule("lab", ("ssh",), "login", period="1h")
        for device in devices:
            await device.tried.wait()
        metadata = ObjectMeta(name="any", namespace=station.namespace)
        spec = DiscoveryVendorProfileSpec(ssh=SshVendor(banner_match="nothing"))
        vendor = await station.client.create(DiscoveryVendorProfile(metadata=metadata, spec=spec))
        for number in range(6):
            changed = vendor.replace(spec=spec.replace(ssh=SshVendor(banner_match=f"nothing-{number}")))
            vendor = await station.client.patch(vendor, changed)
        await released.wait()
        await station.until(DiscoveryRule, "lab", lambda rule: rule.status.targets and rule.status.targets.ready == 4)
        assert sum(device.failed_logins for device in devices) == 0


async def test_a_device_that_hangs_does_not_hold_up_a_change_for_long(station: Station) -> None:
    (port,) = free_ports(1)
    async with SshDevice(address="127.25.0.1", port=port, fault=SshFault.HANG_AT_LOGIN) as device, station.working():
        await station.secret("login", username="admin", password="admin")
        await station.profile("ssh", "ssh", port, timeout=Duration("1h"))
        await station.ranges("lab", "127.25.0.0/29")
        await station.rule("lab", ("ssh",), "login", period="2h")
        await device.tried.wait()
        await station.change(DiscoveryRule, "lab", suspend=True)
        await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready").reason == "Suspended")


async def test_a_rule_that_changes_in_the_middle_of_a_sweep_has_that_run_cancelled(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.25.0.1": face(1)}, port), station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        await station.ranges("lab", "127.25.0.0/20")
        await station.rule("lab", ("snmp",), "login", period="1h", packets_per_second=100)
        await station.until(DiscoveryRule, "lab", lambda rule: rule.status and rule.status.progress)
        await station.change(DiscoveryRule, "lab", packets_per_second=20_000)
        rule = await station.until(DiscoveryRule, "lab", is_ready)
        assert [run.outcome for run in rule.status.history] == ["Succeeded", "Cancelled"]


async def test_a_suspended_rule_sweeps_no_more_and_keeps_its_targets(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.25.0.1": face(1)}, port) as device, station.working():
        await begin(station, port)
        await station.change(DiscoveryRule, "lab", suspend=True)
        await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready").reason == "Suspended")
        asked = dict(device.asked)
        await station.change(DiscoveryRule, "lab", suspend=False)
        await station.until(DiscoveryRule, "lab", is_ready)
        assert device.asked["127.25.0.1"] > asked["127.25.0.1"]
        assert list(await station.targets()) == ["switch-1"]


async def test_a_run_is_made_when_it_is_asked_for_and_says_so(station: Station) -> None:
    (port,) = free_ports(1)
    devices = {"127.25.0.1": face(1)}
    async with SnmpDevice(devices, port, listen="0.0.0.0"), station.working():
        await begin(station, port, period="1h")
        devices["127.25.0.2"] = face(2)
        rule = await station.client.get(DiscoveryRule, "lab", station.namespace)
        await station.annotate(rule, "discovery.trimtab.dev/run", "please-1")
        rule = await station.until(DiscoveryRule, "lab", lambda rule: len(ended(rule)) == 2)
        assert rule.status.handled_run == "please-1"
        assert rule.status.history[0].trigger == "Manual"
        assert sorted(await station.targets()) == ["switch-1", "switch-2"]


async def test_an_error_inside_the_loop_is_in_the_status_and_an_event_and_the_loop_goes_on(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.25.0.1": face(1)}, port), station.working():
        kept = station.blobs.put
        failing = True

        async def put(*data: object, **more: object) -> object:
            if failing:
                raise BlobError("the disk is full")
            return await kept(*data, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(station.blobs, "put", put)
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        await station.ranges("lab", "127.25.0.0/29")
        await station.rule("lab", ("snmp",), "login")
        rule = await station.until(
            DiscoveryRule, "lab", lambda rule: condition(rule, "Ready") and condition(rule, "Ready").status == "False"
        )
        assert condition(rule, "Ready").reason == "SweepFailed"
        assert "the disk is full" in condition(rule, "Ready").message
        assert "the disk is full" in (await until_event(station, "SweepFailed")).note
        failing = False
        await station.until(DiscoveryRule, "lab", is_ready)


async def test_a_rule_that_cannot_be_swept_within_its_period_says_by_how_much(station: Station) -> None:
    (port,) = free_ports(1)
    async with station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        await station.ranges("lab", "127.25.0.0/20")
        await station.rule("lab", ("snmp",), "login", period="1s", packets_per_second=100)
        rule = await station.until(DiscoveryRule, "lab", lambda rule: condition(rule, "Ready"))
        assert condition(rule, "Ready").status == "False"
        assert "4094 addresses" in condition(rule, "Ready").message


async def test_outside_of_its_windows_a_rule_does_not_sweep(station: Station) -> None:
    (port,) = free_ports(1)
    later = datetime.now(UTC) + timedelta(hours=3)
    window = Window(start=f"{later.minute} {later.hour} * * *", duration=Duration("1h"))
    async with SnmpDevice({"127.25.0.1": face(1)}, port) as device, station.working():
        await station.secret("login", community="public")
        await station.profile("snmp", "snmp", port)
        await station.ranges("lab", "127.25.0.0/29")
        await station.rule("lab", ("snmp",), "login", windows=(window,))
        rule = await station.until(DiscoveryRule, "lab", lambda rule: rule.status and rule.status.start_time)
        assert not device.asked
        await station.annotate(rule, "discovery.trimtab.dev/run", "now")
        await station.until(DiscoveryRule, "lab", is_ready)


async def test_who_no_longer_leads_has_no_loop_and_begins_again_when_it_does(
    station: Station, capsys: pytest.CaptureFixture[str]
) -> None:
    (port,) = free_ports(1)
    controller = station.controller()
    replica = Replica(station.client, station.namespace, "one", controller)
    async with SnmpDevice({"127.25.0.1": face(1)}, port) as device, running(replica.manager):
        await begin(station, port)
        replica.cut_off = True
        await until(lambda: not controller.keeper.loops)
        asked = device.asked["127.25.0.1"]
        replica.cut_off = False
        await until(lambda: controller.keeper.loops)
        await station.until_swept("lab", 2)  # the first may have had nothing left to send
        assert device.asked["127.25.0.1"] > asked
    said = capsys.readouterr().err
    assert "stumbled" not in said
    assert "a sweep failed" not in said


async def test_the_numbers_of_a_sweep_are_measured(station: Station) -> None:
    (port,) = free_ports(1)
    async with SnmpDevice({"127.25.0.1": face(1)}, port), station.working():
        await begin(station, port, period="1h")
        text = station.metrics.render().decode()
    where = f'namespace="{station.namespace}"'
    assert f'discovery_targets{{{where},phase="ready",rule="lab"}} 1.0' in text
    assert f'discovery_addresses{{{where},outcome="identified",rule="lab"}} 1.0' in text
    assert f'discovery_addresses{{{where},outcome="refused",rule="lab"}} 5.0' in text
    assert f'discovery_sweeps_total{{{where},result="Succeeded",rule="lab"}} 1.0' in text
