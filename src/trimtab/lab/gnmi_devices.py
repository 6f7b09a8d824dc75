"""What gNMI devices of several vendors say of themselves: a few of their models, and the values that discovery reads.

Written after what such devices publish; small, and with serial numbers of nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


class Model(msgspec.Struct, frozen=True):
    name: str
    organization: str
    version: str = ""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One device: its Capabilities, and its values by path. A Get of a path gives what is at it and below it."""

    models: tuple[Model, ...]
    encodings: tuple[str, ...]
    values: Mapping[str, Json]
    version: str = "0.10.0"
    target: str = ""
    """The only target of a prefix that it takes; any where it is empty."""


def srlinux(name: str = "leaf1", serial: str = "SIM00S24A001", release: str = "24.10.1") -> Device:
    return Device(
        models=(
            Model("urn:nokia.com:srlinux:aaa:aaa:srl_nokia-aaa", "Nokia", "2024-10-31"),
            Model("urn:nokia.com:srlinux:chassis:platform-control:srl_nokia-platform-control", "Nokia", "2024-10-31"),
            Model("urn:nokia.com:srlinux:general:system:srl_nokia-system", "Nokia", "2024-10-31"),
            Model("urn:nokia.com:srlinux:if:interfaces:srl_nokia-interfaces", "Nokia", "2024-10-31"),
        ),
        encodings=("JSON_IETF", "PROTO", "ASCII"),
        values={
            "platform/control[slot=A]/software-version": f"v{release}-492-gf8858c5836",
            "platform/control[slot=A]/oper-state": "up",
            "platform/chassis/type": "7220 IXR-D2L",
            "platform/chassis/serial-number": serial,
            "platform/chassis/hw-mac-address": "1A:B0:00:FF:00:01",
            "system/name/host-name": name,
        },
    )


def sros(name: str = "pe1", serial: str = "SIM00R24B002", release: str = "24.7.R1") -> Device:
    return Device(
        models=(
            Model("nokia-conf", "Nokia", release),
            Model("nokia-state", "Nokia", release),
            Model("nokia-li-state", "Nokia", release),
            Model("openconfig-interfaces", "OpenConfig working group", "2.0.0"),
        ),
        encodings=("JSON", "BYTES", "PROTO", "JSON_IETF"),
        values={
            "state/system/version/version-number": f"B-{release}",
            "state/system/platform": "7750 SR-1",
            "state/system/oper-name": name,
            "state/system/base-mac-address": "0c:00:2b:5c:1e:00",
            "state/chassis[chassis-class=router][chassis-number=1]/hardware-data/serial-number": serial,
        },
    )


def eos(name: str = "spine1", serial: str = "SIM00E24C003", release: str = "4.32.1F") -> Device:
    return Device(
        models=(
            Model("arista-exp-eos", "Arista Networks, Inc.", ""),
            Model("arista-intf-augments", "Arista Networks, Inc.", ""),
            Model("openconfig-platform", "OpenConfig working group", "0.16.0"),
            Model("openconfig-system", "OpenConfig working group", "0.11.0"),
        ),
        encodings=("JSON", "JSON_IETF", "ASCII"),
        values={
            "components/component[name=PowerSupply1]/state/serial-no": "SIMPSU1",
            "components/component[name=PowerSupply1]/state/part-no": "PWR-500AC-F",
            "components/component[name=Chassis]/state/serial-no": serial,
            "components/component[name=Chassis]/state/part-no": "DCS-7280SR3-48YC8",
            "components/component[name=EOS]/state/software-version": f"{release}-35555974.4321F",
            "components/component[name=Fan1]/state/serial-no": "SIMFAN1",
            "system/state/hostname": name,
            "lldp/state/chassis-id": "00:1c:73:0c:1e:00",
        },
    )


def iosxr(name: str = "core1", serial: str = "SIM00X24D004", release: str = "24.2.1") -> Device:
    management = "interfaces/interface[name=MgmtEth0/RP0/CPU0/0]"
    return Device(
        models=(
            Model("Cisco-IOS-XR-install-oper", "Cisco Systems, Inc.", "2022-01-10"),
            Model("Cisco-IOS-XR-shellutil-oper", "Cisco Systems, Inc.", "2021-07-20"),
            Model("openconfig-platform", "OpenConfig working group", "0.15.0"),
            Model("openconfig-system", "OpenConfig working group", "0.10.1"),
        ),
        encodings=("JSON_IETF", "ASCII", "PROTO"),
        values={
            "system/state/software-version": release,
            "system/state/hostname": name,
            "components/component[name=Rack 0]/state/part-no": "8201-SYS",
            "components/component[name=Rack 0]/state/serial-no": serial,
            "components/component[name=0/RP0/CPU0]/state/serial-no": "SIMRP0",
            f"{management}/openconfig-if-ethernet:ethernet/state/mac-address": "02:42:0a:0c:1e:00",
        },
    )


def unknown(name: str = "box1", serial: str = "SIM00U24E005") -> Device:
    """Of a vendor that no profile knows."""
    return Device(
        models=(
            Model("openconfig-platform", "OpenConfig working group", "0.12.0"),
            Model("acme-widgets", "Acme Networks", "2020-01-01"),
        ),
        encodings=("JSON",),
        values={
            "system/state/hostname": name,
            "components/component[name=chassis]/state/serial-no": serial,
        },
    )


DEVICES: dict[str, Callable[..., Device]] = {
    "srlinux": srlinux,
    "sros": sros,
    "eos": eos,
    "iosxr": iosxr,
    "unknown": unknown,
}
