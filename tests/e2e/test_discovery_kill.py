"""The controllers are killed at random moments of a sweep: no Target doubled, none lost, and no device locked out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from tests.systems.discovery.station import Station, is_ready
from trimtab.client.api import ApiClient
from trimtab.client.connect import connect
from trimtab.client.protocol import Query
from trimtab.lab.snmp import Personality, SnmpDevice
from trimtab.lab.ssh import SshDevice
from trimtab.model import kubernetes
from trimtab.model.duration import Duration
from trimtab.model.scheme import Scheme
from trimtab.runtime.prepare import prepare
from trimtab.systems.discovery.kinds import DiscoveryRule, Fading, Target
from trimtab.systems.discovery.system import SYSTEM
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

pytestmark = pytest.mark.slow

PROGRAM = str(Path(sys.executable).with_name("trimtab"))
SEED = 20261116
KILLS = 8
WINDOW = 3.0
"""Seconds within which a device counts refusals, and within which the rule tries no other login there."""
RIGHT = "right-0ne"


class Account:
    """Of a device that locks when it has refused three logins within the window, at whichever address they came."""

    def __init__(self) -> None:
        self.failures: list[float] = []
        self.locked = False

    def refuse(self) -> None:
        now = time.monotonic()
        self.failures = [at for at in self.failures if now - at < WINDOW] + [now]
        self.locked |= len(self.failures) >= 3


class Locking(SshDevice):
    """One address of such a device."""

    def __init__(self, account: Account, **more: Any) -> None:
        super().__init__(**more)
        self._account = account

    def judge(self, right: bool) -> bool:
        if not right:
            self._account.refuse()
        return right and not self._account.locked


class Network:
    """60 switches, 6 of them at two addresses; 6 machines, 2 of them at two addresses; 2 that take another password."""

    def __init__(self) -> None:
        self.snmp, self.ssh = free_ports(2)
        self.faces: dict[str, Personality] = {}
        self.accounts: list[Account] = []
        self.homes: set[frozenset[str]] = set()
        """The addresses of each device that is to be found."""
        self.guarded: list[Account] = []
        self._machines: list[Locking] = []
        for number in range(1, 61):
            engine = bytes.fromhex(f"80001f8805{number:012x}dd")
            self._add_switch(Personality(name=f"switch-{number}", engine_id=engine), number)
        for number in range(1, 7):
            self._add_machine(number, RIGHT)
        for number in (7, 8):
            self._add_machine(number, "of-somebody-else")

    def _add_switch(self, face: Personality, number: int) -> None:
        addresses = {f"127.50.0.{number}"} | ({f"127.50.1.{number}"} if number % 10 == 0 else set())
        self.faces |= dict.fromkeys(addresses, face)
        self.homes.add(frozenset(addresses))

    def _add_machine(self, number: int, password: str) -> None:
        account, key = Account(), asyncssh.generate_private_key("ssh-ed25519")
        addresses = {f"127.50.0.{200 + number}"} | ({f"127.50.1.{200 + number}"} if number % 3 == 0 else set())
        for address in addresses:
            self._machines.append(Locking(account, address=address, port=self.ssh, password=password, host_key=key))
        self.accounts.append(account)
        if password == RIGHT:
            self.homes.add(frozenset(addresses))
        else:
            self.guarded.append(account)

    def is_found(self, rule: DiscoveryRule) -> bool:
        """All of it, by a whole sweep of the rule."""
        found = rule.status.entries[0].found if rule.status and rule.status.entries else 0
        return is_ready(rule) and found == sum(map(len, self.homes)) and rule.status.targets.ready == len(self.homes)

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(SnmpDevice(self.faces, self.snmp))
            for machine in self._machines:
                await stack.enter_async_context(machine)
            yield


class Watched:
    """All that is written to Targets and to the rule, as it comes. `gone` are Targets that were deleted."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._changed = asyncio.Condition()
        self.count = 0
        self.targets: set[str] = set()
        self.gone: set[str] = set()

    @contextlib.asynccontextmanager
    async def going(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._follow(kind)) for kind in (Target, DiscoveryRule)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def more(self, writes: int) -> None:
        """Until so many more writes were seen."""
        until = self.count + writes
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: self.count >= until)

    async def _follow(self, kind: Any) -> None:
        query = Query(namespace=self._station.namespace)
        listing = await self._station.client.list(kind, query)
        async for event in self._station.client.watch(kind, query, listing.revision):
            if event.object is None:
                continue
            if kind is Target:
                (self.gone if event.type == "DELETED" else self.targets).add(event.object.metadata.uid)
            async with self._changed:
                self.count += 1
                self._changed.notify_all()


@pytest.fixture
async def station(tmp_path: Path) -> AsyncIterator[Station]:
    """A server without controllers: the test starts and kills them itself, so that none waits to be restarted."""
    with TrimtabServer(tmp_path, flags=("--systems", "none")) as server:
        async with connected(server) as client:
            await prepare(client, (SYSTEM,), rights=True)
            yield Station(client, "default", tmp_path)


@contextlib.asynccontextmanager
async def connected(server: TrimtabServer) -> AsyncIterator[ApiClient]:
    scheme = kubernetes.register(Scheme())
    for kind in SYSTEM.kinds:
        scheme.register(kind)
    client = connect(server.kubeconfig, scheme=scheme)
    try:
        yield client
    finally:
        await client.close()


def controllers(folder: Path) -> Process:
    command = [PROGRAM, "controllers", "--systems", "discovery", "--kubeconfig", str(folder / "data" / "kubeconfig")]
    command += ["--data-dir", str(folder / "work"), "--blobs", str(folder / "blobs"), "--no-leader-election"]
    return Process(command, log=folder / "controllers.log")


async def begin(station: Station, network: Network) -> None:
    await station.secret("login", username="admin", password=RIGHT, community="public")
    await station.profile("ssh", "ssh", network.ssh)
    await station.profile("snmp", "snmp", network.snmp)
    await station.ranges("lab", "127.50.0.0/23")
    await station.rule(
        "lab",
        ("ssh", "snmp"),
        "login",
        period="6s",
        packets_per_second=300,
        lockout_window=Duration(f"{WINDOW:g}s"),
        fading=Fading(
            lost_after_misses=1, lost_after=Duration("0s"), delete_after=Duration("0s"), max_loss_percent=100
        ),
    )


async def test_kills_at_random_moments_double_nothing_lose_nothing_and_lock_nobody_out(
    station: Station, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    network, watched = Network(), Watched(station)
    async with network.up(), watched.going():
        await begin(station, network)
        for _ in range(KILLS):
            process = controllers(tmp_path)
            try:
                await watched.more(chance.randrange(1, 36))
            finally:
                process.kill()
        with controllers(tmp_path):
            await station.until(DiscoveryRule, "lab", network.is_found)
    targets = (await station.targets()).values()
    homes = [frozenset(target.status.addresses) for target in targets]
    assert len(homes) == len(set(homes))
    assert set(homes) == network.homes
    assert all(is_ready(target) and target.status.phase == "Ready" for target in targets)
    assert not watched.gone
    assert all(account.failures for account in network.guarded)
    assert not [account for account in network.accounts if account.locked]


async def test_the_supervisor_starts_them_again_and_the_run_goes_on(tmp_path: Path) -> None:
    network = Network()
    with TrimtabServer(tmp_path, flags=("--systems", "discovery")) as server:
        async with network.up(), connected(server) as client:
            station = Station(client, "default", tmp_path)
            server.wait_until(lambda: "controller works" in server.log(), within=30)
            await begin(station, network)
            rule = await station.until(DiscoveryRule, "lab", lambda rule: rule.status and rule.status.ledger)
            (going,) = rule.status.history
            os.kill(controllers_of(server), signal.SIGKILL)
            rule = await station.until(DiscoveryRule, "lab", is_ready)
    assert (rule.status.history[-1].id, rule.status.history[-1].outcome) == (going.id, "Succeeded")
    assert "signal 9" in server.log()


def controllers_of(server: TrimtabServer) -> int:
    """The second process of `trimtab up`."""
    parent = server.pids["server"]
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        if b"controllers" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
            return int(child)
    raise AssertionError("there is none")
