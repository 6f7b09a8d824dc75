"""Identification by NETCONF of a real netconfd (yuma123)."""

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.systems.discovery.ssh_access import access, vendor
from trimtab.lab.netconfd import Netconfd
from trimtab.systems.discovery.findings import NotIdentified, Outcome
from trimtab.systems.discovery.identify.netconf import NetconfIdentifier
from trimtab.systems.discovery.kinds import DiscoveryInfo, Evidence, NetconfPath, NetconfVendor
from trimtab.systems.discovery.vendors.choice import Vendors
from trimtab.testing.ports import free_ports

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("netconfd", path="/usr/sbin:/usr/bin") is None, reason="needs root and netconfd"
)


@pytest.fixture(scope="module")
def netconfd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Netconfd]:
    (port,) = free_ports(1)
    with Netconfd(tmp_path_factory.mktemp("netconfd"), port, hostname="border-1") as server:
        yield server


@pytest.mark.parametrize("newest", ["1.0", "1.1"])
async def test_it_is_asked_by_ietf_system_in_either_framing(netconfd: Netconfd, newest: str) -> None:
    asked = access("netconf", netconfd.address, netconfd.port, newest=newest, username="lab", password="lab")
    found = await NetconfIdentifier(Vendors([])).identify(asked)
    assert found.info == DiscoveryInfo(protocol="netconf", hostname="border-1")
    assert found.evidence == Evidence(ssh_host_key=netconfd.pin, hostname="border-1")


@pytest.mark.parametrize("subtree", ["", '<system xmlns="urn:ietf:params:xml:ns:yang:ietf-system"/>'])
async def test_a_vendor_profile_reads_it(netconfd: Netconfd, subtree: str) -> None:
    block = NetconfVendor(
        capability_match="netconfcentral.org/ns/yuma",
        filter=subtree,
        paths=(NetconfPath(key="hostname", path="system/hostname", regex="^(border)"),),
    )
    asked = access("netconf", netconfd.address, netconfd.port, username="lab", password="lab")
    found = await NetconfIdentifier(Vendors([vendor("yuma", netconf=block)])).identify(asked)
    assert found.info == DiscoveryInfo(protocol="netconf", provider="yuma", hostname="border")


async def test_a_wrong_password_is_refused(netconfd: Netconfd) -> None:
    asked = access("netconf", netconfd.address, netconfd.port, username="lab", password="wrong")
    with pytest.raises(NotIdentified) as caught:
        await NetconfIdentifier(Vendors([])).identify(asked)
    assert caught.value.outcome is Outcome.AUTHENTICATION_FAILED
