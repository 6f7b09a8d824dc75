"""Identifications by gNMI in a second, beside what bare `grpc.aio` does with the same two calls on the same server.

The bare client opens a channel for each device, asks Capabilities and Get, and reads nothing of the answers. In TLS it
trusts the server's certificate from the start; ours meets it for the first time, judges it, and pins its key. The server
is a process of its own on loopback. Rounds alternate, and the best of each side counts.

    python bench/peers/gnmi_rate.py [--devices 400] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Access, Login
from trimtab.systems.discovery.identify import gnmi_messages as messages
from trimtab.systems.discovery.identify import gnmi_paths as paths
from trimtab.systems.discovery.identify.gnmi import GnmiIdentifier
from trimtab.systems.discovery.identify.gnmi_grpc import grpc
from trimtab.systems.discovery.kinds import (
    DiscoveryVendorProfile,
    DiscoveryVendorProfileSpec,
    GnmiPath,
    GnmiVendor,
    TargetConnectionProfileSpec,
)
from trimtab.systems.discovery.vendors.choice import Vendors
from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process

ADDRESSES = tuple(f"127.0.7.{last}" for last in range(1, 33))
AT_A_TIME = 64
"""As many as a rule asks at a time, unless it says otherwise."""
METADATA = (("username", "admin"), ("password", "admin"))
ENTRIES = (
    GnmiPath(key="version", path="platform/control[slot=A]/software-version", regex=r"^v?(\d+\.\d+\.\d+)"),
    GnmiPath(key="platform", path="platform/chassis/type"),
    GnmiPath(key="hostname", path="system/name/host-name"),
    GnmiPath(key="serialNumber", path="platform/chassis/serial-number"),
    GnmiPath(key="macAddress", path="platform/chassis/hw-mac-address"),
)
Ask = Callable[[str], Awaitable[Any]]


async def measure(devices: int = 400, rounds: int = 3) -> dict[str, dict[str, float]]:
    """Devices in a second, for plain text and TLS: `ours`, and `ceiling`, which is bare grpc.aio."""
    figures: dict[str, dict[str, float]] = {}
    for name, secure in (("plain", False), ("tls", True)):
        with serving(secure) as port:
            async with ours(port, secure) as identify, bare(port, secure) as call:
                best = {"ours": 0.0, "ceiling": 0.0}
                for _ in range(rounds):
                    for side, ask in (("ceiling", call), ("ours", identify)):
                        best[side] = max(best[side], await rate(ask, devices))
                figures[name] = best
    return figures


async def rate(ask: Ask, devices: int) -> float:
    """All of them have to answer."""
    places = asyncio.Semaphore(AT_A_TIME)

    async def one(address: str) -> None:
        async with places:
            await ask(address)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(devices):
            group.create_task(one(ADDRESSES[number % len(ADDRESSES)]))
    return devices / (time.perf_counter() - began)


@contextlib.asynccontextmanager
async def ours(port: int, secure: bool) -> AsyncIterator[Ask]:
    vendor = GnmiVendor(organization="Nokia", model_match="nokia.com:srlinux", paths=ENTRIES)
    spec = DiscoveryVendorProfileSpec(gnmi=vendor)
    vendors = Vendors([DiscoveryVendorProfile(metadata=ObjectMeta(name="srlinux", namespace="bench"), spec=spec)])
    profile = TargetConnectionProfileSpec(port=port, insecure=not secure, skip_verify=secure)
    login = Login("bench", {name: Redacted(value) for name, value in METADATA})
    identifier = GnmiIdentifier(vendors)

    async def ask(address: str) -> None:
        found = await identifier.identify(Access(address=address, profile=profile, login=login))
        if found.info.version != "24.10.1":
            raise RuntimeError(f"{address} was read wrongly: {found.info}")

    yield ask
    await identifier.close()


@contextlib.asynccontextmanager
async def bare(port: int, secure: bool) -> AsyncIterator[Ask]:
    get = messages.GetRequest(
        path=[paths.to_message(paths.parse(entry.path), modules=True) for entry in ENTRIES],
        encoding=messages.Encoding.JSON_IETF.value,
    ).SerializeToString()
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.ssl_target_name_override", "device")]
    credentials = None
    if secure:
        import ssl

        pem = await asyncio.to_thread(ssl.get_server_certificate, (ADDRESSES[0], port))
        credentials = grpc.ssl_channel_credentials(pem.encode())

    async def ask(address: str) -> None:
        where = f"{address}:{port}"
        if credentials is None:
            channel = grpc.aio.insecure_channel(where, options=options)
        else:
            channel = grpc.aio.secure_channel(where, credentials, options=options)
        async with channel:
            await channel.unary_unary(messages.CAPABILITIES)(b"", timeout=10, metadata=METADATA)
            await channel.unary_unary(messages.GET)(get, timeout=10, metadata=METADATA)

    yield ask


@contextlib.contextmanager
def serving(secure: bool) -> Any:
    """A device at all the addresses; gives its port."""
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "trimtab.lab.gnmi", "--vendor", "srlinux", "--port", str(port)]
    for address in ADDRESSES:
        command += ["--address", address]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "gnmi.log"
        process = Process([*command, "--tls"] if secure else command, log=log)
        try:
            process.wait_until(lambda: "Ctrl-C" in log.read_text(), within=20)
            yield port
        finally:
            process.stop()


def table(figures: dict[str, dict[str, float]]) -> Table:
    shown = Table(title="gNMI: devices identified in a second, by one process")
    for column in ("", "trimtab", "bare grpc.aio", "trimtab / bare"):
        shown.add_column(column, justify="left" if not column else "right")
    for name, best in figures.items():
        shares = f"{best['ours'] / best['ceiling']:.2f}"
        shown.add_row(name, f"{best['ours']:.0f}", f"{best['ceiling']:.0f}", shares)
    return shown


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Identifications by gNMI in a second.")
    parser.add_argument("--devices", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    import uvloop

    Console().print(table(uvloop.run(measure(chosen.devices, chosen.rounds))))
