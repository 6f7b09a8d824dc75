"""Identifications by SNMP in a second, beside what bare gufo-snmp does with the same agent.

The agent is Debian's snmpd on loopback, which shares the processors with the client, so all figures are lower bounds. The
bare client opens a session for each device, gets the same objects and reads nothing of them; for SNMPv3 it has the master
keys from the start and the engine ID from its own discovery. `probed` is what is left to do in a sweep: the answer to the
probe is there already, for v2c with all that is asked, for v3 with the engine ID. Rounds alternate, the best of each side
counts.

    python bench/peers/snmp_rate.py [--devices 2000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from gufo.snmp import Aes128Key, Sha1Key, User
from gufo.snmp.aio import SnmpSession
from gufo.snmp.user import KeyType
from rich.console import Console
from rich.table import Table

from trimtab.lab.snmpd import Snmpd, SnmpUser
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Access, Login
from trimtab.systems.discovery.identify.snmp import ENGINE_ID, SYS_DESCR, SYSTEM, SnmpIdentifier
from trimtab.systems.discovery.kinds import (
    DiscoveryVendorProfile,
    DiscoveryVendorProfileSpec,
    SnmpOid,
    SnmpVendor,
    TargetConnectionProfileSpec,
)
from trimtab.systems.discovery.vendors.choice import Vendors
from trimtab.testing.ports import free_ports

ADDRESS = "127.0.8.1"
AT_A_TIME = 64
"""As many as a rule asks at a time, unless it says otherwise."""
USER, AUTH, PRIV = "bench", "correct horse", "battery staple"
V2C = Login("bench", {"community": Redacted("public")})
V3 = Login(
    "bench",
    {
        "snmp-user": Redacted(USER),
        "auth-protocol": Redacted("SHA"),
        "auth-password": Redacted(AUTH),
        "priv-protocol": Redacted("AES"),
        "priv-password": Redacted(PRIV),
    },
)
ENTRIES = (
    SnmpOid(key="version", oid=SYS_DESCR, regex=r"^Linux \S+ (\S+)"),
    SnmpOid(key="platform", oid=SYS_DESCR, regex=r"(\S+)$"),
)
Ask = Callable[[], Awaitable[Any]]


async def measure(devices: int = 2000, rounds: int = 3) -> dict[str, dict[str, float]]:
    """Devices in a second, for v2c and v3 with authentication and privacy: `ours`, and `ceiling`, bare gufo-snmp."""
    with serving() as port:
        sides = {
            "v2c": (ours(port, V2C), bare_v2c(port)),
            "v2c, probed": (ours(port, V2C, probed=True), bare_v2c(port)),
            "v3": (ours(port, V3), bare_v3(port, b"")),
            "v3, probed": (ours(port, V3, probed=True), bare_v3(port, await engine_id(port))),
        }
        figures: dict[str, dict[str, float]] = {}
        for name, (identify, call) in sides.items():
            best = {"ours": 0.0, "ceiling": 0.0}
            for _ in range(rounds):
                for side, ask in (("ceiling", call), ("ours", identify)):
                    best[side] = max(best[side], await rate(ask, devices))
            figures[name] = best
        return figures


async def rate(ask: Ask, devices: int) -> float:
    """All of them have to answer."""
    left = iter(range(devices))

    async def worker() -> None:
        for _ in left:
            await ask()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_A_TIME):
            group.create_task(worker())
    return devices / (time.perf_counter() - began)


def ours(port: int, login: Login, *, probed: bool = False) -> Ask:
    spec = DiscoveryVendorProfileSpec(snmp=SnmpVendor(object_id="1.3.6.1.4.1.8072.3.2.10", oids=ENTRIES))
    vendors = Vendors([DiscoveryVendorProfile(metadata=ObjectMeta(name="linux", namespace="bench"), spec=spec)])
    identifier = SnmpIdentifier(vendors)
    profile = TargetConnectionProfileSpec(protocol="snmp", port=port)
    answer = b""
    if probed:
        payload, _ = identifier.probe(login, profile)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
            wire.settimeout(5)
            wire.sendto(payload, (ADDRESS, port))
            answer = wire.recv(65535)
    access = Access(address=ADDRESS, profile=profile, login=login, answer=answer)

    async def ask() -> None:
        found = await identifier.identify(access)
        if found.info.version != "6.1.0":
            raise RuntimeError(f"it was read wrongly: {found.info}")

    return ask


def bare_v2c(port: int) -> Ask:
    async def ask() -> None:
        await SnmpSession(ADDRESS, port, community="public").get_many((*SYSTEM, ENGINE_ID))

    return ask


def bare_v3(port: int, engine_id: bytes) -> Ask:
    user = _user()

    async def ask() -> None:
        async with SnmpSession(ADDRESS, port, user=user, engine_id=engine_id or None) as session:
            await session.get_many(SYSTEM)

    return ask


async def engine_id(port: int) -> bytes:
    async with SnmpSession(ADDRESS, port, user=_user()) as session:
        found: bytes = session.get_engine_id()
        return found


def _user() -> User:
    auth = Sha1Key(Sha1Key.get_master_key(AUTH.encode()), KeyType.Master)
    return User(USER, auth_key=auth, priv_key=Aes128Key(Sha1Key.get_master_key(PRIV.encode()), KeyType.Master))


@contextlib.contextmanager
def serving() -> Iterator[int]:
    """An agent; gives its port."""
    port = free_ports(1)[0]
    user = SnmpUser(name=USER, auth_password=AUTH, priv_password=PRIV)
    with tempfile.TemporaryDirectory() as folder, Snmpd(Path(folder), port, address=ADDRESS, users=[user]):
        yield port


def table(figures: dict[str, dict[str, float]]) -> Table:
    shown = Table(title="SNMP: devices identified in a second, by one process")
    for column in ("", "trimtab", "bare gufo-snmp", "trimtab / bare"):
        shown.add_column(column, justify="left" if not column else "right")
    for name, best in figures.items():
        shown.add_row(name, f"{best['ours']:.0f}", f"{best['ceiling']:.0f}", f"{best['ours'] / best['ceiling']:.2f}")
    return shown


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Identifications by SNMP in a second.")
    parser.add_argument("--devices", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    import uvloop

    Console().print(table(uvloop.run(measure(chosen.devices, chosen.rounds))))
