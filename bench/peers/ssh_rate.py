"""Identifications by SSH and NETCONF in a second, beside what bare asyncssh does on the same real servers.

The servers are Debian's sshd, and netconfd behind it, on loopback; they share the processors with the client, so all
figures are lower bounds. For SSH the bare client connects, logs in by key and runs one command; for NETCONF it exchanges
hellos and sends one get. It checks no host key and reads nothing of the answers. Rounds alternate, the best of each side
counts. It needs root, as the lab's sshd does.

    python bench/peers/ssh_rate.py [--devices 100] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncssh
from rich.console import Console
from rich.table import Table

from trimtab.lab.netconfd import Netconfd
from trimtab.lab.sshd import Sshd
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Access, Identifier, Login
from trimtab.systems.discovery.identify.netconf import NetconfIdentifier
from trimtab.systems.discovery.identify.ssh import SshIdentifier
from trimtab.systems.discovery.kinds import (
    DiscoveryVendorProfile,
    DiscoveryVendorProfileSpec,
    NetconfPath,
    NetconfVendor,
    Protocol,
    SshCommand,
    SshVendor,
    TargetConnectionProfileSpec,
)
from trimtab.systems.discovery.vendors.choice import Vendors
from trimtab.testing.ports import free_ports

ADDRESS = "127.0.0.1"
AT_A_TIME = 32
KEY = asyncssh.generate_private_key("ssh-ed25519")
HELLO = b"""<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities>\
<capability>urn:ietf:params:netconf:base:1.0</capability></capabilities></hello>]]>]]>"""
GET = b"""<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="1"><get><filter type="subtree">\
<system xmlns="urn:ietf:params:xml:ns:yang:ietf-system"><hostname/></system></filter></get></rpc>]]>]]>"""

VENDORS = Vendors(
    [
        DiscoveryVendorProfile(
            metadata=ObjectMeta(name="bench"),
            spec=DiscoveryVendorProfileSpec(
                ssh=SshVendor(banner_match="OpenSSH", commands=(SshCommand(key="hostname", command="echo bench"),)),
                netconf=NetconfVendor(
                    capability_match="yuma", paths=(NetconfPath(key="hostname", path="system/hostname"),)
                ),
            ),
        )
    ]
)
Ask = Callable[[], Awaitable[Any]]


async def measure(devices: int = 100, rounds: int = 3) -> dict[str, dict[str, float]]:
    """Devices in a second, by SSH and by NETCONF: `ours`, and `ceiling`, which is bare asyncssh."""
    figures: dict[str, dict[str, float]] = {}
    with servers() as ports:
        sides: dict[Protocol, tuple[Identifier, Callable[[int], Awaitable[Any]]]] = {
            "ssh": (SshIdentifier(VENDORS), bare_ssh),
            "netconf": (NetconfIdentifier(VENDORS), bare_netconf),
        }
        for protocol, (identifier, bare) in sides.items():
            port = ports[protocol]
            best = {"ours": 0.0, "ceiling": 0.0}
            for _ in range(rounds):
                best["ceiling"] = max(best["ceiling"], await rate(lambda: bare(port), devices))  # noqa: B023
                best["ours"] = max(best["ours"], await rate(ours(identifier, protocol, port), devices))
            figures[protocol] = best
    return figures


async def rate(ask: Ask, devices: int) -> float:
    """All of them have to answer."""
    places = asyncio.Semaphore(AT_A_TIME)

    async def one() -> None:
        async with places:
            await ask()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(devices):
            group.create_task(one())
    return devices / (time.perf_counter() - began)


def ours(identifier: Identifier, protocol: Protocol, port: int) -> Ask:
    values = {"username": Redacted("lab"), "ssh-privatekey": Redacted(KEY.export_private_key())}
    access = Access(
        address=ADDRESS,
        profile=TargetConnectionProfileSpec(protocol=protocol, port=port),
        login=Login("bench", values),
    )

    async def ask() -> None:
        found = await identifier.identify(access)
        if found.info.hostname != "bench":
            raise RuntimeError(f"it was read wrongly: {found.info}")

    return ask


async def bare_ssh(port: int) -> None:
    async with bare_connection(port) as connection:
        await connection.run("echo bench")


async def bare_netconf(port: int) -> None:
    async with bare_connection(port) as connection:
        stdin, stdout, _ = await connection.open_session(subsystem="netconf", encoding=None)
        stdin.write(HELLO)
        await stdout.readuntil(b"]]>]]>")
        await asyncio.sleep(0.05)  # as ours does: netconfd hangs when it reads both at once
        stdin.write(GET)
        await stdout.readuntil(b"]]>]]>")


def bare_connection(port: int) -> Any:
    return asyncssh.connect(
        ADDRESS, port, username="lab", client_keys=[KEY], known_hosts=None, config=None, agent_path=None
    )


@contextlib.contextmanager
def servers() -> Iterator[dict[Protocol, int]]:
    ssh, netconf = free_ports(2)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        running.enter_context(Sshd(Path(folder, "ssh"), ssh, address=ADDRESS, authorized_key=KEY))
        running.enter_context(
            Netconfd(Path(folder, "netconf"), netconf, address=ADDRESS, authorized_key=KEY, hostname="bench")
        )
        yield {"ssh": ssh, "netconf": netconf}


def table(figures: dict[str, dict[str, float]]) -> Table:
    shown = Table(title="SSH and NETCONF: devices identified in a second, by one process")
    for column in ("", "trimtab", "bare asyncssh", "trimtab / bare"):
        shown.add_column(column, justify="left" if not column else "right")
    for name, best in figures.items():
        shown.add_row(name, f"{best['ours']:.0f}", f"{best['ceiling']:.0f}", f"{best['ours'] / best['ceiling']:.2f}")
    return shown


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Identifications by SSH and NETCONF in a second.")
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    import uvloop

    Console().print(table(uvloop.run(measure(chosen.devices, chosen.rounds))))
