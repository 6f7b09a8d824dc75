"""An address of its own for each pod, from 127.10.0.0/16.

Guarantees: no two pods of one API have the same address, as long as a pod's address is in its status before it is used.
An address comes back into use only when all others had their turn, so that whoever still knows an old one reaches nobody.

Caveats: other homes on this machine take from the same range. Each begins somewhere else, and addresses that somebody
listens on are passed over; that makes a meeting unlikely, not impossible. Linux answers for all of 127.0.0.0/8; other
systems do not without setup.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container
from pathlib import Path

_NETWORK = "127.10"
_LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp
SIZE = 1 << 16


class Exhausted(Exception):  # noqa: N818 - it reads as what happened
    """Every address is taken."""


class Addresses:
    """Hands them out. `home` says where to begin."""

    def __init__(self, home: str) -> None:
        self._next = int.from_bytes(hashlib.sha256(home.encode()).digest()[:2], "big")

    def take(self, taken: Container[str]) -> str:
        """One that is not among `taken`, and that nobody listens on. Exhausted when there is none."""
        self._next, address = free(self._next, taken, listening())
        return address


def free(start: int, taken: Container[str], busy: Container[str] = ()) -> tuple[int, str]:
    """The first free address from number `start` on, and the number to go on with. Pure."""
    for step in range(SIZE):
        number = (start + step) % SIZE
        if number % 256 in (0, 255):
            continue
        address = f"{_NETWORK}.{number // 256}.{number % 256}"
        if address not in taken and address not in busy:
            return (number + 1) % SIZE, address
    raise Exhausted(f"all addresses of {_NETWORK}.0.0/16 are taken")


def listening(table: Path = Path("/proc/net/tcp")) -> set[str]:
    """The addresses of this machine that somebody listens on, as the kernel tells."""
    try:
        rows = table.read_text().splitlines()[1:]
    except OSError:
        return set()
    found = set()
    for row in rows:
        fields = row.split()
        if len(fields) > 3 and fields[3] == _LISTENS:
            raw = bytes.fromhex(fields[1].partition(":")[0])
            found.add(".".join(str(byte) for byte in reversed(raw)))
    return found
