"""Identification by gNMI, against the lab's server."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec import UNSET

from tests.systems.discovery.gnmi_kit import (
    CREDENTIALS,
    SRLINUX_PATHS,
    VENDORS,
    access,
    identified,
    identifier,
    profile,
)
from trimtab.lab.gnmi import GnmiDevice
from trimtab.lab.gnmi_devices import Device, eos, iosxr, srlinux, sros, unknown
from trimtab.lab.gnmi_faults import Fault
from trimtab.systems.discovery.findings import Login
from trimtab.systems.discovery.kinds import DiscoveryInfo, Evidence
from trimtab.systems.discovery.vendors.choice import Vendors


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            srlinux,
            DiscoveryInfo(
                protocol="gnmi",
                provider="srlinux.nokia",
                platform="7220 IXR-D2L",
                version="24.10.1",
                hostname="leaf1",
                serial_number="SIM00S24A001",
                mac_address="1A:B0:00:FF:00:01",
                supported_encodings=("JSON_IETF", "PROTO", "ASCII"),
            ),
        ),
        (
            sros,
            DiscoveryInfo(
                protocol="gnmi",
                provider="sros.nokia",
                platform="7750 SR-1",
                version="24.7.R1",
                hostname="pe1",
                serial_number="SIM00R24B002",
                mac_address="0c:00:2b:5c:1e:00",
                supported_encodings=("JSON", "BYTES", "PROTO", "JSON_IETF"),
            ),
        ),
        (
            eos,
            DiscoveryInfo(
                protocol="gnmi",
                provider="eos.arista",
                platform="DCS-7280SR3-48YC8",
                version="4.32.1F",
                hostname="spine1",
                serial_number="SIM00E24C003",
                mac_address="00:1c:73:0c:1e:00",
                supported_encodings=("JSON", "JSON_IETF", "ASCII"),
            ),
        ),
        (
            iosxr,
            DiscoveryInfo(
                protocol="gnmi",
                provider="iosxr.cisco",
                platform="8201-SYS",
                version="24.2.1",
                hostname="core1",
                serial_number="SIM00X24D004",
                mac_address="02:42:0a:0c:1e:00",
                supported_encodings=("JSON_IETF", "ASCII", "PROTO"),
            ),
        ),
    ],
)
async def test_a_device_of_a_known_vendor_says_what_it_is(make: Callable[[], Device], expected: DiscoveryInfo) -> None:
    async with GnmiDevice(make(), login=CREDENTIALS) as device:
        found = await identified(access(device, insecure=True))
        assert found.info == expected
        assert found.evidence == Evidence(
            serial_number=expected.serial_number, mac_address=expected.mac_address, hostname=expected.hostname
        )
        assert device.calls == {"Capabilities": 1, "Get": 1, "refused": 0}


async def test_a_device_of_no_known_vendor_is_found_and_not_asked_for_values() -> None:
    async with GnmiDevice(unknown(), login=CREDENTIALS) as device:
        found = await identified(access(device, insecure=True))
        assert found.info == DiscoveryInfo(protocol="gnmi", supported_encodings=("JSON",))
        assert device.calls["Get"] == 0


async def test_profiles_that_match_equally_well_are_named() -> None:
    twins = Vendors(profile(name, SRLINUX_PATHS, organization="Nokia") for name in ("one", "two"))
    async with GnmiDevice(srlinux(), login=CREDENTIALS) as device:
        found = await identified(access(device, insecure=True), twins)
    assert (found.info.provider, found.tied) == ("one", ("one", "two"))


async def test_one_path_that_the_device_does_not_know_loses_only_itself() -> None:
    vendors = Vendors([profile("nokia", {**SRLINUX_PATHS, "platform": "no/such/path"}, organization="Nokia")])
    async with GnmiDevice(srlinux(), login=CREDENTIALS, fault=Fault.ONE_BAD_PATH) as device:
        found = await identified(access(device, insecure=True), vendors)
        assert (found.info.platform, found.info.serial_number) == (UNSET, "SIM00S24A001")
        assert device.calls["Get"] == 6


async def test_a_second_path_of_a_key_is_an_alternative() -> None:
    either = profile("nokia", {"hostname": "system/state/hostname"}, organization="Nokia")
    other = profile("nokia", {"hostname": "system/name/host-name"}, organization="Nokia")
    assert either.spec.gnmi
    assert other.spec.gnmi
    both = msgspec.structs.replace(either.spec.gnmi, paths=either.spec.gnmi.paths + other.spec.gnmi.paths)
    either = msgspec.structs.replace(either, spec=msgspec.structs.replace(either.spec, gnmi=both))
    async with GnmiDevice(srlinux(), login=CREDENTIALS) as device:
        assert (await identified(access(device, insecure=True), Vendors([either]))).info.hostname == "leaf1"


async def test_a_device_on_ipv6_is_identified() -> None:
    async with GnmiDevice(srlinux(), addresses=["::1"], login=CREDENTIALS) as device:
        assert (await identified(access(device, insecure=True))).info.hostname == "leaf1"


async def test_the_target_of_the_prefix_is_the_profiles_target_name() -> None:
    strict = msgspec.structs.replace(srlinux(), target="OC-YANG")
    async with GnmiDevice(strict, login=CREDENTIALS) as device:
        assert (await identified(access(device, insecure=True, target_name="OC-YANG"))).info.hostname == "leaf1"


@pytest.mark.parametrize("offered", ["JSON_IETF", "JSON", "PROTO", "ASCII"])
async def test_a_device_is_asked_in_an_encoding_that_it_offers(offered: str) -> None:
    device = msgspec.structs.replace(srlinux(), encodings=("BYTES", offered))
    async with GnmiDevice(device, login=CREDENTIALS) as server:
        found = await identified(access(server, insecure=True))
    assert (found.info.version, found.info.supported_encodings) == ("24.10.1", ("BYTES", offered))


async def test_a_login_without_username_sends_none() -> None:
    async with GnmiDevice(srlinux(), login=None) as device:
        assert (await identified(access(device, insecure=True, login=Login("none", {})))).info.hostname == "leaf1"


async def test_one_identifier_asks_many_devices_at_a_time() -> None:
    import asyncio

    addresses = [f"127.0.9.{last}" for last in range(1, 21)]
    async with GnmiDevice(srlinux(), addresses=addresses, login=CREDENTIALS) as device, identifier(VENDORS) as asking:
        first = access(device, insecure=True)
        each = [msgspec.structs.replace(first, address=address) for address in addresses]
        found = await asyncio.gather(*map(asking.identify, each))
    assert {one.info.serial_number for one in found} == {"SIM00S24A001"}
