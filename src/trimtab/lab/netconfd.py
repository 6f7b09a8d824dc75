"""Debian's netconfd (yuma123) behind a real sshd: a NETCONF server of base 1.0 and 1.1 with ietf-system.

netconfd listens at a unix socket; sshd starts `netconf-subsystem` for each session, which connects the two.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from xml.sax.saxutils import escape

import asyncssh

from trimtab.lab.sshd import SHARED, UID, Sshd
from trimtab.testing.processes import PeerFailed, Process

_STARTUP = """<?xml version="1.0" encoding="UTF-8"?>
<config xmlns="urn:ietf:params:xml:ns:netconf:base:1.0">
  <system xmlns="urn:ietf:params:xml:ns:yang:ietf-system"><hostname>{}</hostname></system>
</config>
"""


class Netconfd:
    """Runs from construction until `stop`. `directory` takes its files; `prefix` is a command to run it under, such as
    `ip netns exec NAME`. When the constructor returns both servers answer.
    """

    def __init__(
        self,
        directory: Path,
        port: int,
        *,
        address: str = "127.0.0.1",
        username: str = "lab",
        password: str = "lab",  # noqa: S107 - a throw-away account
        authorized_key: asyncssh.SSHKey | None = None,
        host_keys: Sequence[asyncssh.SSHKey] = (),
        hostname: str = "lab",
        settings: Sequence[str] = (),
        prefix: Sequence[str] = (),
    ) -> None:
        sockets = directory / "sockets"
        sockets.mkdir(parents=True, exist_ok=True)
        self._socket = sockets / "ncx"
        self._socket.unlink(missing_ok=True)  # one that a killed server left
        (directory / "startup.xml").write_text(_STARTUP.format(escape(hostname)))
        command = [
            *prefix, _program("netconfd"), "--module=ietf-system", f"--startup={directory}/startup.xml",
            f"--superuser={username}", f"--ncxserver-sockname={self._socket}", f"--port={port}", "--target=running",
            "--log-level=info", *settings,
        ]  # fmt: skip
        environment = {"HOME": str(directory)}  # where it would look for more modules
        self._process = Process(command, log=directory / "netconfd.log", env=environment)
        self.pid = self._process.pid
        subsystem = f"{_program('netconf-subsystem')} --ncxserver-sockname={port}@{SHARED}/netconf/ncx"
        try:
            self._process.wait_until(self._socket.exists, within=20)
            os.chown(self._socket, UID, UID)  # netconf-subsystem runs as the account
            self.sshd = Sshd(
                directory / "sshd", port, address=address, username=username, password=password,
                authorized_key=authorized_key, host_keys=host_keys, subsystems={"netconf": subsystem},
                shared={"netconf": sockets}, prefix=prefix,
            )  # fmt: skip
        except PeerFailed:
            self._process.stop()
            raise
        self.address, self.port = address, port

    @property
    def pin(self) -> str:
        """The fingerprint of the host key."""
        return self.sshd.pin

    def stop(self) -> None:
        self.sshd.stop()
        self._process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _program(name: str) -> str:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") or f"/usr/sbin/{name}"
