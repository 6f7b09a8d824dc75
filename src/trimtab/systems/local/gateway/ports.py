"""The two ports of the data plane that users know: kept over restarts, so that nobody's bookmarks break."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import msgspec

from trimtab.systems.local.gateway.envoy.files import write

INGRESS = "TRIMTAB_INGRESS_PORT"


class Ports(msgspec.Struct, frozen=True):
    """0 is any that is free."""

    ingress: int = 0
    metrics: int = 0


def load(path: Path) -> Ports:
    found = Ports()
    with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
        found = msgspec.json.decode(path.read_bytes(), type=Ports)
    return Ports(fixed_ingress() or found.ingress or free(), found.metrics)


def save(path: Path, ports: Ports) -> None:
    write(path, msgspec.json.encode(ports))


def fixed_ingress() -> int:
    """What the environment asks for."""
    text = os.environ.get(INGRESS, "")
    return int(text) if text.isdecimal() and int(text) < 65536 else 0


def lowest() -> int:
    """The lowest port that this user may listen at."""
    if os.geteuid() == 0:
        return 0
    try:
        return int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    except (OSError, ValueError):
        return 1024


def free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
