"""Endpoints, and what the addresses in them must be."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from trimtab.model.errors import FieldError
from trimtab.model.kind import Column
from trimtab.model.metadata import dns_label_problems
from trimtab.server.builtin import names
from trimtab.server.builtin.native import AGE, NAME, Native, kind
from trimtab.server.builtin.problems import each, invalid, required, unsupported
from trimtab.server.strategy import Document

PROTOCOLS = ("SCTP", "TCP", "UDP")


class Endpoints(Native):
    create_on_update = True
    shown = (NAME, Column("Endpoints", ".subsets"), AGE)

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        errors = []
        for index, subset in enumerate(new.get("subsets") or []):
            errors += _subset(subset, f"subsets[{index}]")
        return errors

    def row(self, obj: Document) -> Sequence[Any]:
        shown: list[str] = []
        for subset in obj.get("subsets") or ():
            addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
            for port in subset.get("ports") or [None]:
                shown += addresses if port is None else [_joined(ip, port.get("port", 0)) for ip in addresses]
        if not obj.get("subsets"):
            return ("<none>",)
        more = f" + {len(shown) - 3} more..." if len(shown) > 3 else ""
        return (",".join(shown[:3]) + more,)


def _subset(subset: Document, path: str) -> list[FieldError]:
    errors = []
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    for field in ("addresses", "notReadyAddresses"):
        for index, address in enumerate(subset.get(field) or []):
            where = f"{path}.{field}[{index}]"
            ip = address.get("ip", "")
            errors += reachable_ip(ip, f"{where}.ip")
            if valid_ip(ip, ""):
                errors.append(invalid(f"{where}.ip", ip, "must be a valid IP address"))
            if address.get("hostname"):
                errors += each(f"{where}.hostname", address["hostname"], dns_label_problems(address["hostname"]))
    ports = subset.get("ports") or []
    for index, port in enumerate(ports):
        where, name, number = f"{path}.ports[{index}]", port.get("name") or "", port.get("port") or 0
        if len(ports) > 1 and not name:
            errors.append(required(f"{where}.name"))
        elif name:
            errors += each(f"{where}.name", name, dns_label_problems(name))
        errors += each(f"{where}.port", number, names.port_number(number))
        if port.get("protocol") not in PROTOCOLS:
            errors.append(unsupported(f"{where}.protocol", port.get("protocol"), PROTOCOLS))
    return errors


def valid_ip(text: str, path: str) -> list[FieldError]:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return [invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


def reachable_ip(text: str, path: str) -> list[FieldError]:
    """An address that can be reached from elsewhere."""
    if errors := valid_ip(text, path):
        return errors
    address = ipaddress.ip_address(text)
    reasons = {
        "unspecified": (address.is_unspecified, f"may not be unspecified ({text})"),
        "loopback": (address.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        "local": (address.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        "multicast": (
            address.is_multicast and (int(address) >> (8 if address.version == 4 else 112)) in (0xE00000, 0xFF02),
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    }
    return [invalid(path, text, why) for wrong, why in reasons.values() if wrong]


def _joined(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


STRATEGIES = (Endpoints(kind("io.k8s.api.core.v1.Endpoints", "endpoints", short=("ep",), singular="endpoints")),)
