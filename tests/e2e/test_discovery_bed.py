"""Real servers of Debian, swept by a real process: snmpd, sshd, and netconfd behind sshd, each answering at many addresses.

In network namespaces of the test's own, where most addresses are silent as on a real network; and, because those need
root, on loopback as well, where each server has one address and devices of the lab stand in for what needs root.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.systems.discovery.example_vendors import add_vendors
from tests.systems.discovery.station import Station, ended, is_ready
from trimtab.client.connect import connect
from trimtab.lab.netconfd import Netconfd
from trimtab.lab.network import Bed, available
from trimtab.lab.snmpd import Snmpd, SnmpUser
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import EOS, LINUX
from trimtab.lab.sshd import Sshd
from trimtab.model import kubernetes
from trimtab.model.duration import Duration
from trimtab.model.scheme import Scheme
from trimtab.runtime.prepare import prepare
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.system import SYSTEM
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

PROGRAM = str(Path(sys.executable).with_name("trimtab"))
USER = SnmpUser(name="ops", auth_password="authentic-1", priv_password="private-1")
LOGIN = ("lab", "lab-0nly")
PATIENCE = {
    "probe_timeout": Duration("500ms"),
    "probe_retries": 1,
    "timeout": Duration("3s"),
    "connect_retry": Duration("100ms"),
}
"""netconfd hangs where our first request comes together with our hello, which is a matter of luck: it is asked again."""


class Sweep(msgspec.Struct, frozen=True):
    """A rule of the test: what it sweeps by, and what is alive there."""

    protocol: str
    port: int
    prefix: str
    addresses: int
    alive: int
    hostname: str
    more: dict[str, Any] = {}


class Place(msgspec.Struct, frozen=True):
    """Where the servers are, and the command that the controllers run under."""

    sweeps: dict[str, Sweep]
    under: tuple[str, ...] = ()
    timed_out: bool = False
    """Whether the rest is silent, not refused."""


@contextlib.asynccontextmanager
async def in_namespaces(folder: Path) -> AsyncIterator[Place]:
    """15 of 254 addresses of each prefix are alive, and one server answers at all of them."""
    with contextlib.ExitStack() as stack:
        bed = stack.enter_context(Bed())
        for third in range(100, 104):
            bed.b.run("ip", "route", "add", "local", f"10.77.{third}.0/28", "dev", "lo")
        everywhere: dict[str, Any] = {"address": "0.0.0.0", "prefix": bed.b.command([])}
        login = {"username": LOGIN[0], "password": LOGIN[1]}
        stack.enter_context(Snmpd(folder / "v2c", 161, name="switch-2c", **everywhere))
        stack.enter_context(Snmpd(folder / "v3", 1161, name="switch-3", users=[USER], **everywhere))
        stack.enter_context(Sshd(folder / "ssh", 22, **login, **everywhere))
        stack.enter_context(Sshd(folder / "ssh6", 2222, address="::", prefix=bed.b.command([]), **login))
        stack.enter_context(Netconfd(folder / "netconf", 830, hostname="router-1", **login, **everywhere))
        yield Place(
            {
                "snmp": Sweep("snmp", 161, "10.77.100.0/24", 254, 15, "switch-2c", {"snmp_version": "v2c"}),
                "snmp-v3": Sweep("snmp", 1161, "10.77.101.0/24", 254, 15, "switch-3", {"snmp_version": "v3"}),
                "ssh": Sweep("ssh", 22, "10.77.102.0/24", 254, 15, os.uname().nodename),
                "netconf": Sweep("netconf", 830, "10.77.103.0/24", 254, 15, "router-1"),
                "ipv6": Sweep("ssh", 2222, "fd77::ff8-fd77::1017", 32, 8, os.uname().nodename),
            },
            under=tuple(bed.a.command([])),
            timed_out=True,
        )


@contextlib.asynccontextmanager
async def on_loopback(folder: Path) -> AsyncIterator[Place]:
    """One of 14 addresses of each prefix is alive."""
    v2c, v3, ssh, netconf = free_ports(4)
    login = {"username": LOGIN[0], "password": LOGIN[1]}
    with (
        Snmpd(folder / "v2c", v2c, name="switch-2c", address="127.51.0.5"),
        Snmpd(folder / "v3", v3, name="switch-3", users=[USER], address="127.51.1.5"),
    ):
        async with (
            SshDevice(LINUX, address="127.51.2.5", port=ssh, **login),
            SshDevice(EOS, address="127.51.3.5", port=netconf, **login),
        ):
            yield Place(
                {
                    "snmp": Sweep("snmp", v2c, "127.51.0.0/28", 14, 1, "switch-2c", {"snmp_version": "v2c"}),
                    "snmp-v3": Sweep("snmp", v3, "127.51.1.0/28", 14, 1, "switch-3", {"snmp_version": "v3"}),
                    "ssh": Sweep("ssh", ssh, "127.51.2.0/28", 14, 1, "web01"),
                    "netconf": Sweep("netconf", netconf, "127.51.3.0/28", 14, 1, "leaf-11"),
                }
            )


@pytest.fixture(params=["namespaces", "loopback"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "namespaces" and (reason := available()):
        pytest.skip(f"{reason}: the same test runs on loopback")
    async with (in_namespaces if request.param == "namespaces" else on_loopback)(tmp_path) as made:
        yield made


@pytest.fixture
async def station(tmp_path: Path) -> AsyncIterator[Station]:
    with TrimtabServer(tmp_path, flags=("--systems", "none")):
        scheme = kubernetes.register(Scheme())
        for kind in SYSTEM.kinds:
            scheme.register(kind)
        client = connect(socket=tmp_path / "data" / "trimtab.sock", scheme=scheme)
        try:
            await prepare(client, (SYSTEM,), rights=True)
            yield Station(client, "default", tmp_path)
        finally:
            await client.close()


def controllers(folder: Path, under: tuple[str, ...]) -> Process:
    """They reach the server by its socket: that works from any network namespace."""
    kubeconfig = folder / "kubeconfig"
    socket = folder / "data" / "trimtab.sock"
    kubeconfig.write_text(KUBECONFIG.format(socket=socket))
    command = [*under, PROGRAM, "controllers", "--systems", "discovery", "--kubeconfig", str(kubeconfig)]
    command += ["--data-dir", str(folder / "work"), "--blobs", str(folder / "blobs"), "--no-leader-election"]
    return Process(command, log=folder / "controllers.log")


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: owner}}}}]
clusters: [{{name: here, cluster: {{server: "unix://{socket}"}}}}]
users: [{{name: owner, user: {{}}}}]
"""


def found(rule: DiscoveryRule) -> int:
    (entry,) = rule.status.entries
    return entry.found


async def test_real_servers_become_targets_and_the_silent_rest_is_counted(
    station: Station, place: Place, tmp_path: Path
) -> None:
    await add_vendors(station)
    await station.secret(
        "login", username=LOGIN[0], password=LOGIN[1], community="public", snmp_user=USER.name,
        auth_protocol="SHA", auth_password=USER.auth_password, priv_protocol="AES", priv_password=USER.priv_password,
    )  # fmt: skip
    with controllers(tmp_path, place.under) as process:
        for name, sweep in place.sweeps.items():
            await station.profile(name, sweep.protocol, sweep.port, **{**PATIENCE, **sweep.more})
            await station.ranges(name, sweep.prefix)
            await station.rule(name, (name,), "login", period="5s")
        for name, sweep in place.sweeps.items():
            rule = await station.until(DiscoveryRule, name, lambda r, s=sweep: is_ready(r) and found(r) == s.alive)
            assert rule.status.entries[0].not_found == sweep.addresses - sweep.alive
            counts = ended(rule)[0].counts
            assert counts["identified"] == sweep.alive
            if place.timed_out:
                assert counts["silent"] > 0  # and of IPv6, a router says of some that nobody is there
                assert counts["silent"] + counts.get("unreachable", 0) == sweep.addresses - sweep.alive
        assert process.running
    by_rule = {
        target.metadata.labels["discovery.trimtab.dev/rule"]: target for target in (await station.targets()).values()
    }
    assert len(await station.targets()) == len(by_rule) == len(place.sweeps)
    for name, sweep in place.sweeps.items():
        target = by_rule[name]
        assert (name, target.status.discovery_info.hostname) == (name, sweep.hostname)
        assert target.status.discovery_info.protocol == sweep.protocol
        assert target.spec.provider != "unknown"
        assert len(target.status.addresses) == sweep.alive  # one server is one device, at however many addresses
        assert is_ready(target)
