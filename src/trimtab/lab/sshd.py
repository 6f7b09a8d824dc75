"""Debian's sshd as a device: a real server with an account, host keys and a banner of its own.

It runs in a private mount namespace, in which an account is added to the machine's: nothing of it is seen outside, and
the machine's accounts and keys are not changed. That needs root and `unshare`. On address 0.0.0.0 in a network
namespace whose prefix is local it answers as every address of that prefix.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import asyncssh

from trimtab.testing.processes import PeerFailed, Process

SHARED = "/run/lab"
"""Where the account finds the folders that `shared` names."""
UID = 54321
"""Of the account."""

_SCRIPT = """
directory=$1 sshd=$2; shift 2
for file in passwd shadow group; do mount --bind "$directory/$file" "/etc/$file"; done
mount -t tmpfs -o mode=755 tmpfs "$directory/run"
mkdir "$directory/run/sshd" "$directory/run/lab"
cp "$directory/authorized_keys" "$directory/run/sshd/authorized_keys"
while [ $# -gt 0 ]; do
  mkdir "$directory/run/lab/$1" && mount --bind "$2" "$directory/run/lab/$1"; shift 2
done
mount --rbind "$directory/run" /run
exec "$sshd" -D -e -f "$directory/sshd_config"
"""


class Sshd:
    """Runs from construction until `stop`. `directory` takes its files; `prefix` is a command to run it under, such as
    `ip netns exec NAME`. When the constructor returns the port is open.

    `shared` names folders that subsystems may use: each is at SHARED/<name> for them.
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
        banner: str = "",
        subsystems: Mapping[str, str] = {},
        shared: Mapping[str, Path] = {},
        settings: Sequence[str] = (),
        prefix: Sequence[str] = (),
    ) -> None:
        self.address, self.port, self.username, self.password = address, port, username, password
        self.host_keys = tuple(host_keys) or (asyncssh.generate_private_key("ssh-ed25519"),)
        (directory / "run").mkdir(parents=True, exist_ok=True)
        _write_accounts(directory, username, password)
        _write_private(directory / "authorized_keys", _public(authorized_key))
        os.chmod(directory / "authorized_keys", 0o644)
        for number, key in enumerate(self.host_keys):
            _write_private(directory / f"host_key_{number}", key.export_private_key().decode())
        (directory / "banner").write_text(banner)
        host = f"[{address}]" if ":" in address else address
        lines = [
            f"ListenAddress {host}:{port}",
            *(f"HostKey {directory}/host_key_{number}" for number in range(len(self.host_keys))),
            *([f"Banner {directory}/banner"] if banner else []),
            "AuthorizedKeysFile /run/sshd/authorized_keys",
            "UsePAM no",
            "StrictModes no",
            "PasswordAuthentication yes",
            "PidFile none",
            "UseDNS no",
            "PrintMotd no",
            "MaxStartups 10000",
            *(f"Subsystem {name} {command}" for name, command in subsystems.items()),
            *settings,
        ]
        (directory / "sshd_config").write_text("\n".join(lines) + "\n")
        mounts = [part for name, folder in shared.items() for part in (name, str(folder))]
        command = [*prefix, "unshare", "--mount", "sh", "-e", "-c", _SCRIPT, "sh", str(directory), _program(), *mounts]
        self._process = Process(command, log=directory / "sshd.log")
        self.pid = self._process.pid
        try:
            self._process.wait_until(self._listens, within=10)
        except PeerFailed:
            self.stop()
            raise

    @property
    def pin(self) -> str:
        """The fingerprint of the first host key."""
        return self.host_keys[0].get_fingerprint()

    @property
    def log(self) -> str:
        return self._process.log.read_text(errors="replace")

    def stop(self) -> None:
        self._process.stop()

    def _listens(self) -> bool:
        return "Server listening on" in self.log

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _write_accounts(directory: Path, username: str, password: str) -> None:
    hashed = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"],  # noqa: S607 - as found in PATH
        input=password, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    added = {
        "passwd": f"{username}:x:{UID}:{UID}::/:/bin/sh",
        "shadow": f"{username}:{hashed}:19000:0:99999:7:::",
        "group": f"{username}:x:{UID}:",
    }
    for file, line in added.items():
        others = [each for each in Path("/etc", file).read_text().splitlines() if not each.startswith(f"{username}:")]
        _write_private(directory / file, "\n".join([*others, line]) + "\n")
        os.chmod(directory / file, 0o600 if file == "shadow" else 0o644)


def _public(key: asyncssh.SSHKey | None) -> str:
    return "" if key is None else key.export_public_key().decode()


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _program() -> str:
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "/usr/sbin/sshd"
