"""What the tests of gNMI share: vendor profiles, a login, and an access to a device of the lab."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from trimtab.lab.gnmi import GnmiDevice, ServerTls
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Access, Identified, Login, NotIdentified, Tls
from trimtab.systems.discovery.identify.gnmi import GnmiIdentifier
from trimtab.systems.discovery.kinds import (
    DiscoveryVendorProfile,
    DiscoveryVendorProfileSpec,
    GnmiPath,
    GnmiVendor,
    TargetConnectionProfileSpec,
)
from trimtab.systems.discovery.vendors.choice import Vendors

PASSWORD = "pA55-w0rd"


def profile(name: str, paths: dict[str, str], regex: str = "", **more: Any) -> DiscoveryVendorProfile:
    """`regex` is for the version."""
    entries = [GnmiPath(key=key, path=path) for key, path in paths.items()]  # type: ignore[arg-type]
    if regex:
        entries[0] = GnmiPath(key="version", path=paths["version"], regex=regex)
    spec = DiscoveryVendorProfileSpec(gnmi=GnmiVendor(paths=tuple(entries), **more))
    return DiscoveryVendorProfile(metadata=ObjectMeta(name=name, namespace="lab"), spec=spec)


SRLINUX_PATHS = {
    "version": "platform/control[slot=A]/software-version",
    "platform": "platform/chassis/type",
    "hostname": "system/name/host-name",
    "serialNumber": "platform/chassis/serial-number",
    "macAddress": "platform/chassis/hw-mac-address",
}
SRLINUX = profile(
    "srlinux.nokia", SRLINUX_PATHS, r"^v?(\d+\.\d+\.\d+)", organization="Nokia", model_match="nokia.com:srlinux"
)
SROS = profile(
    "sros.nokia",
    {
        "version": "state/system/version/version-number",
        "platform": "state/system/platform",
        "hostname": "state/system/oper-name",
        "serialNumber": "state/chassis/hardware-data/serial-number",
        "macAddress": "state/system/base-mac-address",
    },
    r"^\w-(\d+\.\d+\.R\d+)",
    organization="Nokia",
    model_match="nokia-conf",
)
EOS = profile(
    "eos.arista",
    {
        "version": "components/component/state/software-version",
        "platform": "components/component/state/part-no",
        "hostname": "system/state/hostname",
        "serialNumber": "components/component/state/serial-no",
        "macAddress": "lldp/state/chassis-id",
    },
    r"^v?(\d+\.\d+\.\d+[A-Za-z]?)",
    organization="Arista Networks, Inc.",
)
IOSXR = profile(
    "iosxr.cisco",
    {
        "version": "openconfig-system:system/state/software-version",
        "platform": "components/component[name=Rack 0]/state/part-no",
        "hostname": "openconfig-system:system/state/hostname",
        "serialNumber": "components/component[name=Rack 0]/state/serial-no",
        "macAddress": "interfaces/interface[name=MgmtEth0/RP0/CPU0/0]/ethernet/state/mac-address",
    },
    organization="Cisco Systems, Inc.",
    preserve_namespace=False,
)
VENDORS = Vendors((SRLINUX, SROS, EOS, IOSXR))
LOGIN = Login("lab-login", {"username": Redacted("admin"), "password": Redacted(PASSWORD)})
CREDENTIALS = ("admin", PASSWORD)


def access(device: GnmiDevice, **more: Any) -> Access:
    """How to ask a device of the lab."""
    return access_at(device.addresses[0], device.port, **more)


def access_at(
    address: str,
    port: int,
    *,
    login: Login = LOGIN,
    tls: Tls | None = None,
    pins: frozenset[str] = frozenset(),
    **more: Any,
) -> Access:
    """`more` is of the connection profile."""
    profile = TargetConnectionProfileSpec(port=port, **more)
    return Access(address=address, profile=profile, login=login, tls=tls or Tls(), pins=pins)


def der(tls: ServerTls) -> bytes:
    """A device's certificate, as TLS shows it."""
    return ssl.PEM_cert_to_DER_cert(tls.certificate.decode())


@asynccontextmanager
async def identifier(vendors: Vendors = VENDORS) -> AsyncIterator[GnmiIdentifier]:
    made = GnmiIdentifier(vendors)
    try:
        yield made
    finally:
        await made.close()


async def identified(how: Access, vendors: Vendors = VENDORS) -> Identified:
    async with identifier(vendors) as asking:
        return await asking.identify(how)


async def failure(how: Access, vendors: Vendors = VENDORS) -> NotIdentified:
    """Why it was not identified."""
    with pytest.raises(NotIdentified) as raised:
        await identified(how, vendors)
    assert PASSWORD not in raised.value.detail
    return raised.value
