"""Whether a server of the lab answers yet: one plain GET, over TCP or a unix socket.

A port that is open is not enough: some listen before they can say anything.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path


def answers(at: Path | tuple[str, int], path: str, *, headers: Mapping[str, str] | None = None) -> bool:
    """True when it says 200 to this; `at` is a socket's file, or an address and a port."""
    connection = _Unix(at) if isinstance(at, Path) else HTTPConnection(*at, timeout=2)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def listens(address: str, port: int) -> bool:
    """Whether someone has the port already: a server of ours would then fail, and we would speak to that other one."""
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


class _Unix(HTTPConnection):
    """The same over a unix socket."""

    def __init__(self, file: Path) -> None:
        super().__init__("lab", timeout=2)
        self._file = file

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._file))
