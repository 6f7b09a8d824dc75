"""Credentials never lock a device out: whole rules against devices that lock their account. On both servers."""

from __future__ import annotations

import contextlib

import asyncssh
import pytest

from tests.runtime.widgets import until
from tests.systems.discovery.station import Station, condition, is_ready
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import Fault
from trimtab.model.duration import Duration
from trimtab.model.kubernetes import Secret
from trimtab.storage.blobs import Digest, read
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule, Target
from trimtab.systems.discovery.ledger.records import Ledger, decode
from trimtab.testing.ports import free_ports


async def ledger(station: Station, rule: str = "lab") -> Ledger:
    found = await station.client.get(DiscoveryRule, rule, station.namespace)
    return decode(await read(station.blobs, Digest(found.status.ledger), max_bytes=1 << 20))


async def begin(station: Station, port: int, *, timeout: str = "3s", **more: object) -> DiscoveryRule:
    await station.profile("ssh", "ssh", port, timeout=Duration(timeout))
    await station.ranges("lab", "127.22.0.0/29")
    await station.rule("lab", ("ssh",), "login", **more)
    return await station.until(DiscoveryRule, "lab", lambda rule: rule.status and rule.status.entries)


async def test_a_wrong_password_is_tried_once_in_a_window_and_the_device_counts_as_there(station: Station) -> None:
    (port,) = free_ports(1)
    async with SshDevice(address="127.22.0.1", port=port, password="right") as device, station.working():
        await station.secret("login", username="admin", password="right")
        await begin(station, port)
        (target,) = (await station.targets()).values()
        device.password = "changed"
        refused = await station.until(Target, target.name, lambda t: not is_ready(t))
        assert refused.status.phase == "Ready"
        assert condition(refused, "Ready").reason == "NotIdentified"
        await station.until_swept("lab", 4)
        assert device.failed_logins == 1
        assert list(await station.targets()) == [target.name]


async def test_with_other_credentials_at_hand_still_none_is_tried_within_the_window(station: Station) -> None:
    (port,) = free_ports(1)
    async with SshDevice(address="127.22.0.1", port=port, password="fourth") as device, station.working():
        for number, password in enumerate(("first", "second", "third", "fourth")):
            await station.secret(f"login-{number}" if number else "login", username="admin", password=password)
        await begin(station, port, fallback=("login-1", "login-2", "login-3"))
        await station.until_swept("lab", 3)
        assert device.failed_logins == 1
        assert not device.locked
        record = (await ledger(station)).records["127.22.0.1"]
        assert record.outcome == Outcome.WAITING
        assert "refused" in record.detail


async def test_after_the_window_the_next_credential_is_tried_and_the_one_that_works_is_kept(station: Station) -> None:
    (port,) = free_ports(1)
    async with SshDevice(address="127.22.0.1", port=port, password="second", lock_after=9) as device, station.working():
        await station.secret("login", username="admin", password="first")
        await station.secret("other", username="admin", password="second")
        await begin(station, port, fallback=("other",), lockout_window=Duration("1s"))
        await station.until(DiscoveryRule, "lab", lambda rule: rule.status.targets.ready == 1)
        failed = device.failed_logins
        await station.until_swept("lab", 3)
        assert device.failed_logins == failed
        assert (await ledger(station)).records["127.22.0.1"].logins["ssh"].worked == "other"


async def test_one_device_at_five_addresses_gets_one_wrong_password(station: Station) -> None:
    (port,) = free_ports(1)
    key = asyncssh.generate_private_key("ssh-ed25519")
    async with contextlib.AsyncExitStack() as stack:
        faces = [
            await stack.enter_async_context(
                SshDevice(address=f"127.22.0.{n}", port=port, password="right", host_key=key)
            )
            for n in range(1, 6)
        ]
        await stack.enter_async_context(station.working())
        await station.secret("login", username="admin", password="wrong")
        await begin(station, port)
        await station.until_swept("lab", 2)
        assert sum(face.failed_logins for face in faces) == 1
        assert not await station.targets()


async def test_a_device_with_another_key_gets_no_credential_until_the_key_is_accepted(station: Station) -> None:
    (port,) = free_ports(1)
    await station.secret("login", username="admin", password="right")
    async with SshDevice(address="127.22.0.1", port=port, password="right"), station.working():
        await begin(station, port)
        (name,) = await station.targets()
    async with SshDevice(address="127.22.0.1", port=port, password="right") as other, station.working():
        changed = await station.until(Target, name, lambda t: not is_ready(t))
        assert "key" in condition(changed, "Ready").message
        assert other.credentials == []
        rule = await station.until(DiscoveryRule, "lab", lambda rule: rule.status.entries[0].found == 0)
        await station.annotate(rule, "discovery.trimtab.dev/repin", "127.22.0.1")
        await station.until(DiscoveryRule, "lab", lambda rule: rule.status.entries[0].found == 1)
        assert other.logins > 0
        await station.until(DiscoveryRule, "lab", lambda rule: not rule.metadata.annotations)


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.GARBAGE])
async def test_a_device_that_never_gets_a_credential_is_told_so_in_each_sweep(station: Station, fault: Fault) -> None:
    (port,) = free_ports(1)
    async with SshDevice(address="127.22.0.1", port=port, fault=fault) as device, station.working():
        await station.secret("login", username="admin", password="right")
        await begin(station, port, timeout="500ms")
        first = (await ledger(station)).records["127.22.0.1"]
        await station.until_swept("lab", 3)
        assert (await ledger(station)).records["127.22.0.1"] == first
        assert first.outcome in (Outcome.TIMED_OUT, Outcome.PROTOCOL_ERROR)
        assert device.credentials == []


async def test_what_is_cut_off_before_a_credential_left_leaves_no_wait(station: Station) -> None:
    (port,) = free_ports(1)
    async with SshDevice(address="127.22.0.1", port=port, fault=Fault.SILENT) as device, station.working():
        await station.secret("login", username="admin", password="right")
        await station.profile("ssh", "ssh", port, timeout=Duration("1h"))
        await station.ranges("lab", "127.22.0.0/29")
        await station.rule("lab", ("ssh",), "login", period="2h")
        await until(lambda: device.connections)
    async with SshDevice(address="127.22.0.1", port=port, password="right"), station.working():
        await station.until(DiscoveryRule, "lab", lambda rule: rule.status.targets and rule.status.targets.ready)


async def test_no_secret_shows_in_status_events_or_ledger(station: Station) -> None:
    (port,) = free_ports(1)
    async with SshDevice(address="127.22.0.1", port=port, password="right"), station.working():
        await station.secret("login", username="admin", password="s3cr3t-and-wrong")
        await begin(station, port)
        await station.until_swept("lab")
        texts = [str(await station.everything()), str(await ledger(station))]
    assert "s3cr3t" not in "".join(texts)
    assert (await station.client.get(Secret, "login", station.namespace)).data
