"""The addresses of Services on the loopback interface: each has one, and keeps it. Pure.

The API server gives a Service a cluster IP that leads nowhere on this machine and may not be changed afterwards, so the
address that works is in an annotation. Who wants a certain one gives `spec.clusterIP` of 127.0.0.0/8 at creation.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable
from typing import Any

from trimtab.model.kubernetes import Service
from trimtab.systems.local.gateway.names import Key
from trimtab.systems.local.gateway.world import is_headless, key_of, oldest_first

ADDRESS = "local.trimtab.dev/address"
"""Annotation: where a Service is reached on this machine."""
ENDPOINTS = "local.trimtab.dev/endpoints"
"""Annotation: all the pods that it sends requests to now: one that is not in it may end. (The API takes no loopback
addresses in Endpoints.)"""
PORTS = "local.trimtab.dev/ports"
"""Annotation: `80=10080`, for each port that only an administrator may listen at and that is therefore another one here."""
NETWORK = ipaddress.IPv4Network("127.20.0.0/16")


def addresses(services: Iterable[Service]) -> dict[Key, str]:
    """Of every Service that is to have one. Who has one keeps it; of two with the same, the older."""
    found: dict[Key, str] = {}
    waiting: list[Service] = []
    taken: set[str] = set()
    for service in oldest_first(each for each in services if not is_headless(each)):
        held = _given(service) or _kept(service)
        if held and held not in taken:
            found[key_of(service)] = held
            taken.add(held)
        else:
            waiting.append(service)
    for service in waiting:
        address = _free(str(service.metadata.uid or key_of(service)), taken)
        found[key_of(service)] = address
        taken.add(address)
    return found


def denied(service: Service, address: str) -> str:
    """The address that it asked for and another Service has; empty when it has what it wants."""
    wanted = _given(service)
    return wanted if wanted != address else ""


def _given(service: Service) -> str:
    return _loopback(service.spec.get("clusterIP")) if isinstance(service.spec, dict) else ""


def _kept(service: Service) -> str:
    return _loopback((service.metadata.annotations or {}).get(ADDRESS))


def _loopback(text: Any) -> str:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return ""
    return str(address) if address.is_loopback and int(address) & 0xFFFFFF > 255 else ""


def _free(seed: str, taken: set[str]) -> str:
    """By the object's own identity, so that a crash before it was written down changes nothing."""
    last = NETWORK.num_addresses - 2
    place = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big") % last
    while (address := str(NETWORK[1 + place])) in taken:
        place = (place + 1) % last
    return address
