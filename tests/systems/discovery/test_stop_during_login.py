"""A process that is stopped while a device judges a credential: the next one knows that it may have been refused.

The stop is a clean one, as by SIGTERM. It waits for no device. On both servers.
"""

from __future__ import annotations

import asyncssh

from tests.systems.discovery.asked_runs import until_ended
from tests.systems.discovery.station import Station
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import Fault
from trimtab.model.duration import Duration
from trimtab.storage.blobs import Digest, read
from trimtab.systems.discovery.findings import Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.records import Ledger, decode
from trimtab.testing.ports import free_ports

ADDRESS = "127.57.0.1"
KEY = asyncssh.generate_private_key("ssh-ed25519")


def device(port: int, fault: Fault = Fault.NONE) -> SshDevice:
    return SshDevice(address=ADDRESS, port=port, password="right", host_key=KEY, fault=fault)


async def ledger(station: Station) -> Ledger:
    rule = await station.client.get(DiscoveryRule, "lab", station.namespace)
    return decode(await read(station.blobs, Digest(rule.status.ledger), max_bytes=1 << 20))


async def begin(station: Station, port: int, period: str) -> None:
    await station.secret("login", username="admin", password="right")
    await station.profile("ssh", "ssh", port, timeout=Duration("1h"))
    await station.ranges("lab", ADDRESS)
    await station.rule("lab", ("ssh",), "login", period=period)


async def test_a_first_login_is_pending_in_the_ledger_and_nothing_is_tried_in_its_window(station: Station) -> None:
    (port,) = free_ports(1)
    async with device(port, Fault.HANG_AT_LOGIN) as hanging, station.working():
        await begin(station, port, "2h")
        await hanging.tried.wait()
    left = await ledger(station)
    assert left.records[ADDRESS].logins["ssh"].pending == "login"
    assert left.orderly
    async with device(port) as answering, station.working():
        await until_ended(station, lambda rule: True)
    after = (await ledger(station)).records[ADDRESS]
    assert after.outcome == Outcome.WAITING
    assert "no known end" in after.detail
    assert answering.credentials == []


async def test_a_login_that_has_worked_before_is_pending_too_and_may_be_tried_at_once(station: Station) -> None:
    (port,) = free_ports(1)
    async with device(port) as moody, station.working():
        await begin(station, port, "500ms")
        await until_ended(station, lambda rule: rule.status.targets.ready == 1)
        moody.tried.clear()
        moody.fault = Fault.HANG_AT_LOGIN
        await moody.tried.wait()
    login = (await ledger(station)).records[ADDRESS].logins["ssh"]
    assert (login.worked, login.pending) == ("login", "login")
    async with device(port) as answering, station.working():
        await until_ended(station, lambda rule: rule.status.history[0].outcome == "Succeeded" and answering.logins)
    assert (await ledger(station)).records[ADDRESS].outcome == Outcome.IDENTIFIED
