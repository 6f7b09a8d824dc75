"""A device that is known by its host key alone shows another one, and somebody accepts it. On both servers."""

from __future__ import annotations

import asyncssh

from tests.systems.discovery.asked_runs import annotate, sweep, until_ended
from tests.systems.discovery.station import Station, condition, is_ready
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import LINUX
from trimtab.model.duration import Duration
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.kinds.rule import REPIN_ANNOTATION
from trimtab.testing.ports import free_ports


async def test_the_target_at_the_address_takes_the_new_key(station: Station) -> None:
    (port,) = free_ports(1)
    keys = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(2)]

    def device(key: asyncssh.SSHKey) -> SshDevice:
        return SshDevice(LINUX, address="127.62.0.1", port=port, host_key=key)

    async with station.working():
        await station.secret("login", username="admin", password="admin")
        await station.profile("ssh", "ssh", port, probe_timeout=Duration("500ms"))
        await station.ranges("lab", "127.62.0.1")
        async with device(keys[0]):
            await station.rule("lab", ("ssh",), "login", period="1h", lockout_window=Duration("1s"))
            await station.until(DiscoveryRule, "lab", is_ready)
        (before,) = (await station.targets()).values()
        async with device(keys[1]):
            await sweep(station)
            (refused,) = (await station.targets()).values()
            assert "key" in condition(refused, "Ready").message
            await annotate(station, REPIN_ANNOTATION, "all")
            await sweep(station)
            (after,) = (await station.targets()).values()
            assert after.metadata.uid == before.metadata.uid
            assert after.status.identity.ssh_host_key == keys[1].get_fingerprint()
            assert (after.status.phase, is_ready(after)) == ("Ready", True)
            await until_ended(station, lambda rule: not (rule.metadata.annotations or {}).get(REPIN_ANNOTATION))
            await sweep(station)
            (again,) = (await station.targets()).values()
            assert again.metadata.resource_version == after.metadata.resource_version
