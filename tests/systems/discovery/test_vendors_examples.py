"""The vendor profiles of the example: they pass the schema and the check, and know the devices that they are for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trimtab.lab import gnmi_devices, ssh_personalities
from trimtab.model import yaml
from trimtab.model.scheme import Scheme
from trimtab.systems.discovery.kinds import DiscoveryVendorProfile
from trimtab.systems.discovery.vendors.choice import Model, Vendors, check

FOLDER = Path(__file__).parents[3] / "examples" / "discovery" / "vendors"
DOCUMENTS: dict[str, dict[str, Any]] = {
    document["metadata"]["name"]: document
    for file in sorted(FOLDER.glob("*.yaml"))
    for document in yaml.load_all(file.read_text())
}

scheme = Scheme()
scheme.register(DiscoveryVendorProfile)


def profile(name: str) -> DiscoveryVendorProfile:
    decoded = scheme.decode(DOCUMENTS[name])
    assert isinstance(decoded, DiscoveryVendorProfile)
    return decoded


VENDORS = Vendors([profile(name) for name in DOCUMENTS])
SYS_DESCR = "1.3.6.1.2.1.1.1.0"


def test_there_is_one_for_each_vendor() -> None:
    assert set(DOCUMENTS) == {
        "srlinux.nokia", "sros.nokia", "eos.arista", "ios.cisco", "iosxe.cisco", "iosxr.cisco", "junos.juniper",
        "linux",
    }  # fmt: skip
    assert VENDORS.problems == {}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_passes_the_schema_without_an_unknown_field(name: str) -> None:
    document = yaml.load(yaml.dump(DOCUMENTS[name]))
    walk = scheme.kind_of(DiscoveryVendorProfile).schema.walk(document)
    assert (walk.errors, walk.unknown) == ([], [])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_passes_the_check(name: str) -> None:
    assert check(profile(name)) == []


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (gnmi_devices.srlinux(), "srlinux.nokia"),
        (gnmi_devices.sros(), "sros.nokia"),
        (gnmi_devices.eos(), "eos.arista"),
        (gnmi_devices.iosxr(), "iosxr.cisco"),
        (gnmi_devices.unknown(), ""),
    ],
)
def test_a_device_is_known_by_its_models(device: gnmi_devices.Device, name: str) -> None:
    choice = VENDORS.gnmi(Model(model.name, model.organization, model.version) for model in device.models)
    assert (choice.profile, choice.tied) == (name, ())


@pytest.mark.parametrize(
    ("object_id", "description", "name", "version", "platform"),
    [
        (
            "1.3.6.1.4.1.6527.1.20.26",
            "SRLinux-v24.10.2-357-ga1dd6e02b5 7220 IXR-D2L Copyright (c) 2000-2020 Nokia. Kernel 6.12.13 #60 SMP",
            "srlinux.nokia", "24.10.2", "7220 IXR-D2L",
        ),
        (
            "1.3.6.1.4.1.6527.1.3.17",
            "TiMOS-B-22.10.R1 both/x86_64 Nokia 7750 SR Copyright (c) 2000-2022 Nokia.",
            "sros.nokia", "22.10.R1", "7750 SR",
        ),
        (
            "1.3.6.1.4.1.30065.1.3011.7050.3735",
            "Arista Networks EOS version 4.28.3M running on an Arista Networks DCS-7050SX3-48YC8",
            "eos.arista", "4.28.3M", "DCS-7050SX3-48YC8",
        ),
        (
            "1.3.6.1.4.1.9.1.1208",
            "Cisco IOS Software, C2960X Software (C2960X-UNIVERSALK9-M), Version 15.2(7)E6, RELEASE SOFTWARE (fc2)",
            "ios.cisco", "15.2(7)E6", "",
        ),
        (
            "1.3.6.1.4.1.9.1.2494",
            "Cisco IOS Software [Bengaluru], Catalyst L3 Switch Software (CAT9K_IOSXE), Version 17.6.3, RELEASE\r\nX",
            "iosxe.cisco", "17.6.3", "",
        ),
        (
            "1.3.6.1.4.1.9.1.2264",
            "Cisco IOS XR Software (NCS-5500), Version 7.3.2\nCopyright (c) 2013-2021 by Cisco Systems, Inc.",
            "iosxr.cisco", "7.3.2", "NCS-5500",
        ),
        (
            "1.3.6.1.4.1.2636.1.1.1.2.116",
            "Juniper Networks, Inc. mx204 internet router, kernel JUNOS 23.4R1.10, Build date: 2023-12-14",
            "junos.juniper", "23.4R1.10", "mx204",
        ),
        (
            "1.3.6.1.4.1.8072.3.2.10",
            "Linux web01 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01) x86_64",
            "linux", "6.1.0-18-amd64", "x86_64",
        ),
        ("1.3.6.1.4.1.9.12.3.1.3.1812", "Cisco NX-OS(tm) nxos.10.3.4a.M, Version 10.3(4a)", "", "", ""),
    ],
)  # fmt: skip
def test_a_device_is_known_by_its_system_group(
    object_id: str, description: str, name: str, version: str, platform: str
) -> None:
    choice = VENDORS.snmp(object_id, description)
    assert (choice.profile, choice.tied) == (name, ())
    entries = choice.spec.oids if choice.spec else ()
    values = VENDORS.values((entry, description) for entry in entries if entry.oid == SYS_DESCR)
    assert (values.get("version", ""), values.get("platform", "")) == (version, platform)


SRLINUX = """Hostname             : srl1
Chassis Type         : 7220 IXR-D2L
Part Number          : Sim Part No.
Serial Number        : Sim Serial No.
System HW MAC Address: 1A:84:00:FF:00:00
OS                   : SR Linux
Software Version     : v23.10.1
Build Number         : 218-ga3fc1bea5a
"""
XE = """Cisco IOS XE Software, Version 17.09.04a
Cisco IOS Software [Cupertino], Catalyst L3 Switch Software (CAT9K_IOSXE), Version 17.9.4a, RELEASE SOFTWARE (fc3)
dist1 uptime is 3 weeks
Base Ethernet MAC Address          : 70:D3:79:AA:BB:80
Model Number                       : C9300-24T
System Serial Number               : FJC0000A1BC
"""
JUNOS = "Hostname: edge1\nModel: mx204\nJunos: 23.4R1.10\nJUNOS OS Kernel 64-bit  [20231122.1a5b1b0]\n"


@pytest.mark.parametrize(
    ("banner", "output", "name", "values"),
    [
        (
            "SSH-2.0-Cisco-1.25",
            ssh_personalities.IOS.commands["show version"],
            "ios.cisco",
            {
                "version": "15.2(7)E6",
                "platform": "WS-C2960X-24TS-L",
                "hostname": "access-sw7",
                "serialNumber": "FOC2042W0AB",
                "macAddress": "00:5d:73:12:ab:80",
            },
        ),
        (
            "SSH-2.0-Cisco-1.25",
            XE,
            "iosxe.cisco",
            {
                "version": "17.09.04a",
                "platform": "C9300-24T",
                "hostname": "dist1",
                "serialNumber": "FJC0000A1BC",
                "macAddress": "70:d3:79:aa:bb:80",
            },
        ),
        (
            "SSH-2.0-OpenSSH_8.7",
            ssh_personalities.EOS.commands["show version"],
            "eos.arista",
            {
                "version": "4.30.2F",
                "platform": "DCS-7050SX3-48YC8-F",
                "serialNumber": "JPE21160AB1",
                "macAddress": "94:8e:d3:aa:01:02",
            },
        ),
        (
            "SSH-2.0-OpenSSH_9.2",
            SRLINUX,
            "srlinux.nokia",
            {
                "version": "23.10.1",
                "platform": "7220 IXR-D2L",
                "hostname": "srl1",
                "serialNumber": "Sim Serial No.",
                "macAddress": "1a:84:00:ff:00:00",
            },
        ),
        (
            "SSH-2.0-OpenSSH_7.5",
            JUNOS,
            "junos.juniper",
            {"version": "23.4R1.10", "platform": "mx204", "hostname": "edge1"},
        ),
        ("SSH-2.0-OpenSSH_7.5", "TiMOS-C-22.10.R1 cpm/hops64 Nokia 7750 SR", "sros.nokia", {"version": "22.10.R1"}),
        ("SSH-2.0-Cisco-2.0", "Cisco IOS XR Software, Version 7.3.2\n", "iosxr.cisco", {"version": "7.3.2"}),
    ],
)
def test_a_device_is_known_by_what_show_version_prints(
    banner: str, output: str, name: str, values: dict[str, str]
) -> None:
    choice = VENDORS.ssh(banner, {"show version": output})
    assert (choice.profile, choice.tied) == (name, ())
    assert choice.spec is not None
    shown = [(entry, output) for entry in choice.spec.commands if entry.command == "show version"]
    assert VENDORS.values(shown) == values


def test_linux_is_known_by_its_shell() -> None:
    output = ssh_personalities.LINUX.commands["uname -a"]
    choice = VENDORS.ssh("SSH-2.0-OpenSSH_9.2p1 Debian-2", {"uname -a": output, "show version": "bash: not found"})
    assert choice.profile == "linux"
    assert choice.spec is not None
    values = VENDORS.values((entry, output) for entry in choice.spec.commands)
    assert values == {"hostname": "web01", "version": "6.1.0-18-amd64", "platform": "x86_64"}


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ("urn:nokia.com:srlinux:general:system?module=srl_nokia-system", "srlinux.nokia"),
        ("urn:nokia.com:sros:ns:yang:sr:conf?module=nokia-conf", "sros.nokia"),
        ("http://arista.com/yang/openconfig/platform/augments?module=arista-platform", "eos.arista"),
        ("http://cisco.com/ns/yang/Cisco-IOS-XE-native?module=Cisco-IOS-XE-native", "iosxe.cisco"),
        ("http://cisco.com/ns/yang/Cisco-IOS-XR-um-hostname-cfg?module=x", "iosxr.cisco"),
        ("http://xml.juniper.net/netconf/junos/1.0", "junos.juniper"),
        ("http://netconfcentral.org/ns/yuma-system?module=yuma-system", "linux"),
        ("urn:ietf:params:netconf:capability:candidate:1.0", ""),
    ],
)
def test_a_device_is_known_by_a_capability(capability: str, name: str) -> None:
    choice = VENDORS.netconf(["urn:ietf:params:netconf:base:1.1", capability])
    assert (choice.profile, choice.tied) == (name, ())
