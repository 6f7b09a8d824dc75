"""Debian's snmpd as a device: a real agent with a name, a description and users of our choice.

It runs in the foreground with a configuration and a state directory of its own, and reads nothing of the machine's. In a
network namespace whose prefix is local (`ip route add local … dev lo`) it answers as every address of that prefix when
`address` is 0.0.0.0.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from trimtab.testing.processes import PeerFailed, Process


class SnmpUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user of SNMPv3. Without an auth_password it has no keys, without a priv_password no privacy."""

    name: str
    auth_protocol: str = "SHA"
    auth_password: str = ""
    priv_protocol: str = "AES"
    priv_password: str = ""

    @property
    def created(self) -> str:
        parts = ["createUser", self.name]
        if self.auth_password:
            parts += [self.auth_protocol, f'"{self.auth_password}"']
        if self.priv_password:
            parts += [self.priv_protocol, f'"{self.priv_password}"']
        return " ".join(parts)

    @property
    def allowed(self) -> str:
        level = "priv" if self.priv_password else "auth" if self.auth_password else "noauth"
        return f"rouser {self.name} {level}"


class Snmpd:
    """Runs from construction until `stop`. `directory` takes its files; `prefix` is a command to run it under, such as
    `ip netns exec NAME`. When the constructor returns the port is open."""

    def __init__(
        self,
        directory: Path,
        port: int,
        *,
        address: str = "127.0.0.1",
        community: str = "public",
        users: Sequence[SnmpUser] = (),
        description: str = "Linux lab 6.1.0 #1 SMP x86_64",
        object_id: str = "1.3.6.1.4.1.8072.3.2.10",
        name: str = "lab",
        engine_id: str = "",
        view: str = ".1",
        prefix: Sequence[str] = (),
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.address, self.port, self.community = address, port, community
        host = f"udp6:[{address}]" if ":" in address else f"udp:{address}"
        lines = [
            f"agentAddress {host}:{port}",
            f"rocommunity {community} default {view}",
            f"rocommunity6 {community} default {view}",
            f"sysDescr {description}",
            f"sysObjectID {object_id}",
            f"sysName {name}",
            *([f"engineID {engine_id}"] if engine_id else []),
            *(line for user in users for line in (user.created, user.allowed)),
        ]
        configuration = directory / "snmpd.conf"
        configuration.touch(mode=0o600)
        configuration.write_text("\n".join(lines) + "\n")
        command = [*prefix, _program(), "-C", "-c", str(configuration), "-f", "-Le", "-I", "-smux"]
        # No MIBs: names are not used, and reading them takes longer than all the rest.
        environment = {"SNMP_PERSISTENT_DIR": str(directory / "state"), "MIBS": "", "MIBDIRS": str(directory)}
        self._process = Process(command, log=directory / "snmpd.log", env=environment)
        self.pid = self._process.pid
        try:
            self._process.wait_until(self._started, within=10)
        except PeerFailed:
            self.stop()
            raise

    def _started(self) -> bool:
        """It prints its version when its port is open: what comes from now on is answered."""
        return "NET-SNMP version" in self._process.log.read_text(errors="replace")

    def stop(self) -> None:
        self._process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _program() -> str:
    return shutil.which("snmpd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "/usr/sbin/snmpd"
