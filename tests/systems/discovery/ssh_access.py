"""How the tests of SSH and NETCONF ask a device, and the vendor profiles that they know."""

from __future__ import annotations

from trimtab.model.duration import Duration
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Access, Login
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


def access(
    protocol: Protocol,
    address: str,
    port: int,
    *,
    timeout: str = "5s",
    pins: frozenset[str] = frozenset(),
    newest: str = "1.1",
    **values: str,
) -> Access:
    """Access by `username`, `password` and `ssh_privatekey`; admin and admin when none is given."""
    secret = values or {"username": "admin", "password": "admin"}
    return Access(
        address=address,
        profile=TargetConnectionProfileSpec(
            protocol=protocol, port=port, timeout=Duration(timeout), preferred_netconf_version=newest
        ),
        login=Login("lab", {name.replace("_", "-"): Redacted(value) for name, value in secret.items()}),
        pins=pins,
    )


def vendor(name: str, **blocks: SshVendor | NetconfVendor) -> DiscoveryVendorProfile:
    return DiscoveryVendorProfile(metadata=ObjectMeta(name=name), spec=DiscoveryVendorProfileSpec(**blocks))


VENDORS = Vendors(
    [
        vendor(
            "ios.cisco",
            ssh=SshVendor(
                banner_match="Cisco-1",
                commands=(
                    SshCommand(key="version", command="show version", regex=r"Version ([^,]+),"),
                    SshCommand(key="hostname", command="show version", regex=r"(?m)^(\S+) uptime is"),
                    SshCommand(key="platform", command="show version", regex=r"Model number\s*: (\S+)"),
                    SshCommand(key="serialNumber", command="show version", regex=r"System serial number\s*: (\S+)"),
                    SshCommand(key="macAddress", command="show version", regex=r"MAC Address\s*: (\S+)"),
                ),
            ),
        ),
        vendor(
            "eos.arista",
            ssh=SshVendor(
                probe_command="show version",
                probe_match="^Arista",
                commands=(
                    SshCommand(key="platform", command="show version", regex=r"^Arista (\S+)"),
                    SshCommand(key="version", command="show version", regex=r"Software image version: (\S+)"),
                    SshCommand(key="serialNumber", command="show version", regex=r"Serial number: (\S+)"),
                    SshCommand(key="hostname", command="show hostname", regex=r"Hostname: (\S+)"),
                ),
            ),
            netconf=NetconfVendor(
                capability_match="arista.com/yang",
                paths=(
                    NetconfPath(key="hostname", path="system/state/hostname"),
                    NetconfPath(key="version", path="system/state/software-version"),
                    NetconfPath(key="serialNumber", path="components/component/state/serial-no"),
                    NetconfPath(key="platform", path="components/component/state/part-no"),
                ),
            ),
        ),
        vendor(
            "linux",
            ssh=SshVendor(
                probe_command="uname -a",
                probe_match="^Linux",
                commands=(
                    SshCommand(key="hostname", command="uname -n"),
                    SshCommand(key="version", command="uname -r"),
                    SshCommand(key="platform", command="uname -m"),
                ),
            ),
        ),
    ]
)
