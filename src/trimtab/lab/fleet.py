"""A small network on this machine: devices of several vendors that speak gNMI, NETCONF, SSH and SNMP, for the example.

They listen on 127.10.0.1, 127.10.0.2 and so on, and nowhere else; it needs Linux, where all of 127.0.0.0/8 is local, and
no rights. Their keys and serial numbers come from their names, so a fleet that is started again is the same fleet.

    python -m trimtab.lab.fleet --devices 8
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import hashlib
import ipaddress
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec

from trimtab.lab import gnmi_devices, ssh_personalities
from trimtab.lab.gnmi import GnmiDevice, ServerTls
from trimtab.lab.snmp import Personality as SnmpPersonality
from trimtab.lab.snmp import SnmpDevice
from trimtab.lab.ssh import SshDevice
from trimtab.lab.ssh_personalities import Personality as SshPersonality
from trimtab.systems.discovery.kinds import PORTS, Protocol

NETWORK = "127.10.0.0"
MOST = 100
"""Addresses from there on are the second ones of devices that have two."""
USERNAME, PASSWORD, COMMUNITY = "admin", "lab-only", "public"
HIGH_PORTS: Mapping[Protocol, int] = {"gnmi": 57400, "netconf": 8830, "ssh": 8022, "snmp": 8161}


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One device of the fleet. `guarded` ones take another password than the others."""

    number: int
    name: str
    protocol: Protocol
    model: str
    addresses: tuple[str, ...]
    port: int
    guarded: bool = False


class Fleet:
    """Serves from `async with` until its end."""

    def __init__(self, devices: int = 8, *, network: str = NETWORK, ports: Mapping[Protocol, int] = HIGH_PORTS) -> None:
        self.members = members(devices, network, ports)
        self._running: dict[str, contextlib.AsyncExitStack] = {}

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as starting:
            starting.push_async_callback(self._stop_all)
            for member in self.members:
                await self.start(member.name)
            starting.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop_all()

    async def start(self, name: str) -> None:
        """Switch a device on. OSError when its port is taken."""
        member = next(member for member in self.members if member.name == name)
        if name in self._running:
            return
        stack = self._running[name] = contextlib.AsyncExitStack()
        for server in _MODELS[member.model].servers(member):
            await stack.enter_async_context(server)

    async def stop(self, name: str) -> None:
        """Switch a device off."""
        await self._running.pop(name).aclose()

    async def _stop_all(self) -> None:
        for name in tuple(self._running):
            await self.stop(name)


class Model(msgspec.Struct, frozen=True):
    """A kind of device: what it is called, what it speaks, and what serves it."""

    stem: str
    protocol: Protocol
    servers: Callable[[Member], Iterable[contextlib.AbstractAsyncContextManager[Any]]]
    guarded: bool = False
    homes: int = 1


def members(devices: int, network: str, ports: Mapping[Protocol, int]) -> tuple[Member, ...]:
    """The first so many devices: always the same ones. ValueError."""
    if not 1 <= devices <= MOST:
        raise ValueError(f"a fleet has 1 to {MOST} devices, not {devices}")
    start, order = ipaddress.IPv4Address(network), tuple(_MODELS)
    found = []
    for number in range(1, devices + 1):
        key = order[(number - 1) % len(order)]
        model = _MODELS[key]
        addresses = tuple(str(start + number + MOST * home) for home in range(model.homes))
        found.append(
            Member(
                number=number,
                name=f"{model.stem}{number}",
                protocol=model.protocol,
                model=key,
                addresses=addresses,
                port=ports[model.protocol],
                guarded=model.guarded,
            )
        )
    return tuple(found)


def _gnmi(make: Callable[[str, str], gnmi_devices.Device]) -> Callable[[Member], list[GnmiDevice]]:
    def servers(member: Member) -> list[GnmiDevice]:
        device = make(member.name, _serial(member))
        login = (USERNAME, _password(member))
        return [GnmiDevice(device, addresses=member.addresses, port=member.port, login=login, tls=_certificate(member))]

    return servers


def _ssh(personality: SshPersonality, old_name: str, old_serial: str) -> Callable[[Member], list[SshDevice]]:
    def servers(member: Member) -> list[SshDevice]:
        face = _renamed(personality, {old_name: member.name, old_serial: _serial(member)})
        return [
            SshDevice(
                face,
                address=address,
                port=member.port,
                username=USERNAME,
                password=_password(member),
                host_key=_host_key(member),
            )
            for address in member.addresses
        ]

    return servers


def _snmp(description: str, object_id: str) -> Callable[[Member], list[SnmpDevice]]:
    def servers(member: Member) -> list[SnmpDevice]:
        face = SnmpPersonality(
            description=description,
            object_id=object_id,
            name=member.name,
            community=COMMUNITY.encode(),
            engine_id=b"\x80\x00\x1f\x88\x04" + member.name.encode(),
            more={_CHASSIS_CLASS: 3, _CHASSIS_SERIAL: _serial(member).encode()},
        )
        return [SnmpDevice(dict.fromkeys(member.addresses, face), member.port)]

    return servers


_CHASSIS_CLASS = "1.3.6.1.2.1.47.1.1.1.1.5.1"
_CHASSIS_SERIAL = "1.3.6.1.2.1.47.1.1.1.1.11.1"
_JUNOS = "Juniper Networks, Inc. mx204 internet router, kernel JUNOS 23.4R1.10, Build date: 2023-12-14 04:50:22 UTC"
_IOSXR = "Cisco IOS XR Software (8000), Version 24.2.1[Default]\r\nCopyright (c) 2013-2024 by Cisco Systems, Inc."

_MODELS: dict[str, Model] = {
    "SR Linux": Model("leaf", "gnmi", _gnmi(gnmi_devices.srlinux), homes=2),
    "EOS by NETCONF": Model("spine", "netconf", _ssh(ssh_personalities.EOS, "leaf-11", "JPE21160AB1")),
    "IOS": Model("access", "ssh", _ssh(ssh_personalities.IOS, "access-sw7", "FOC2042W0AB")),
    "Junos": Model("edge", "snmp", _snmp(_JUNOS, "1.3.6.1.4.1.2636.1.1.1.2.116")),
    "EOS": Model("spine", "gnmi", _gnmi(gnmi_devices.eos)),
    "IOS XR": Model("core", "snmp", _snmp(_IOSXR, "1.3.6.1.4.1.9.1.2861")),
    "EOS by SSH": Model("tor", "ssh", _ssh(ssh_personalities.EOS, "leaf-11", "JPE21160AB1")),
    "IOS of somebody else": Model(
        "guarded", "ssh", _ssh(ssh_personalities.IOS, "access-sw7", "FOC2042W0AB"), guarded=True
    ),
}
"""In the order in which a fleet has them, over and over."""


def _renamed(personality: SshPersonality, words: Mapping[str, str]) -> SshPersonality:
    """The same device with other names in all that it says."""
    text = msgspec.json.encode(personality).decode()
    for old, new in words.items():
        text = text.replace(old, new)
    return msgspec.json.decode(text, type=SshPersonality)


def _password(member: Member) -> str:
    return f"{PASSWORD}-but-another" if member.guarded else PASSWORD


def _serial(member: Member) -> str:
    return f"LAB{_seed(member).hex()[:9].upper()}"


def _seed(member: Member) -> bytes:
    return hashlib.sha256(f"trimtab lab {member.name}".encode()).digest()


def _host_key(member: Member) -> Any:
    import asyncssh
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(_seed(member))
    pem = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.OpenSSH, forms.NoEncryption())
    return asyncssh.import_private_key(pem)


def _certificate(member: Member) -> ServerTls:
    from cryptography.hazmat.primitives.asymmetric import ec

    from trimtab.lab.gnmi_certificates import self_signed

    key = ec.derive_private_key(int.from_bytes(_seed(member)[:31], "big"), ec.SECP256R1())
    return self_signed(member.name, addresses=member.addresses, key=key)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trimtab.lab.fleet", description="Simulated network devices.")
    parser.add_argument("--devices", type=int, default=8, metavar="N", help=f"how many, up to {MOST} (%(default)s)")
    parser.add_argument(
        "--usual-ports", action="store_true", help="57400, 830, 22 and 161, which only root may; else 57400, 8830, …"
    )
    options = parser.parse_args(arguments)
    try:
        asyncio.run(_serve(options.devices, PORTS if options.usual_ports else HIGH_PORTS))
    except KeyboardInterrupt:
        return 0
    except ValueError as error:
        parser.error(str(error))
    except (OSError, RuntimeError) as error:
        print(f"error: {_told(error)}", file=sys.stderr)
        return 1
    return 0


async def _serve(devices: int, ports: Mapping[Protocol, int]) -> None:
    async with Fleet(devices, ports=ports) as fleet:
        for member in fleet.members:
            where = ", ".join(member.addresses)
            note = "  (takes another password)" if member.guarded else ""
            print(f"{member.name:<10} {member.protocol:<8} port {member.port:<6} {where}  {member.model}{note}")
        print(f"{len(fleet.members)} devices listen on this machine only. Next:")
        print("  kubectl apply -f examples/discovery/vendors/ -f examples/discovery/")
        print("Ctrl-C ends it", flush=True)
        await asyncio.Event().wait()


def _told(error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.EADDRNOTAVAIL:
        return f"{NETWORK}/8 is not this machine's: the fleet needs Linux"
    if number == errno.EACCES:
        return "only root may use ports below 1024"
    if number == errno.EADDRINUSE:
        return f"a port is taken: is another fleet running? ({error})"
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
