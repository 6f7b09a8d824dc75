"""A device that is well and has several addresses is identified at all of them, in each sweep. On both servers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import asyncssh
import pytest

from tests.systems.discovery.example_vendors import add_vendors
from tests.systems.discovery.station import Station, ended, is_ready
from trimtab.lab.gnmi import GnmiDevice
from trimtab.lab.gnmi_devices import srlinux
from trimtab.lab.ssh import SshDevice
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.testing.ports import free_ports

PREFIX = "127.58.0.0/29"
ADDRESSES = [f"127.58.0.{n}" for n in range(1, 6)]


@contextlib.asynccontextmanager
async def device(protocol: str, port: int) -> AsyncIterator[None]:
    """One, at five addresses. By gNMI in plain text it shows no key."""
    async with contextlib.AsyncExitStack() as stack:
        if protocol == "gnmi":
            served = GnmiDevice(srlinux(), addresses=ADDRESSES, port=port, login=("admin", "right"))
            await stack.enter_async_context(served)
        else:
            key = asyncssh.generate_private_key("ssh-ed25519")
            for address in ADDRESSES:
                face = SshDevice(address=address, port=port, password="right", host_key=key)
                await stack.enter_async_context(face)
        yield


async def begin(station: Station, protocol: str, port: int, *rules: str) -> None:
    await add_vendors(station)
    await station.secret("login", username="admin", password="right")
    await station.profile(protocol, protocol, port, **({"insecure": True} if protocol == "gnmi" else {}))
    for rule in rules:
        await station.ranges(rule, PREFIX)
        await station.rule(rule, (protocol,), "login")


@pytest.mark.parametrize("protocol", ["ssh", "gnmi"])
async def test_in_each_sweep_of_a_rule(station: Station, protocol: str) -> None:
    (port,) = free_ports(1)
    async with device(protocol, port), station.working():
        await begin(station, protocol, port, "lab")
        await station.until(DiscoveryRule, "lab", is_ready)
        rule = await station.until_swept("lab", 3)
        assert [run.counts["identified"] for run in ended(rule)] == [5] * len(ended(rule))
        assert len(await station.targets()) == 1


async def test_in_each_sweep_of_three_rules(station: Station) -> None:
    (port,) = free_ports(1)
    rules = ("lab", "other", "third")
    async with device("ssh", port), station.working():
        await begin(station, "ssh", port, *rules)
        for name in rules:
            await station.until(DiscoveryRule, name, is_ready)
        swept = [await station.until_swept(name, 3) for name in rules]
        counts = [run.counts for rule in swept for run in ended(rule)[:3]]
        assert [each["identified"] for each in counts] == [5] * len(counts)
