"""What SSH and NETCONF make of a device's values: its info, and its evidence with the host key."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET

from trimtab.systems.discovery.findings import Identified
from trimtab.systems.discovery.kinds import DiscoveryInfo, Evidence, Key, NetconfVendor, Protocol, SshVendor
from trimtab.systems.discovery.vendors.choice import Choice


def identified(
    protocol: Protocol, choice: Choice[SshVendor] | Choice[NetconfVendor], values: Mapping[Key, str], pin: str
) -> Identified:
    """The finding; without a provider where no vendor profile fits."""
    serial, mac, hostname = (values.get(key, UNSET) for key in ("serialNumber", "macAddress", "hostname"))
    return Identified(
        info=DiscoveryInfo(
            protocol=protocol,
            provider=choice.profile or UNSET,
            platform=values.get("platform", UNSET),
            version=values.get("version", UNSET),
            hostname=hostname,
            serial_number=serial,
            mac_address=mac,
        ),
        evidence=Evidence(serial_number=serial, ssh_host_key=pin, mac_address=mac, hostname=hostname),
        pin=pin,
        tied=choice.tied,
    )
