"""OpenSSH's sshd with `git-shell` as the only command: Git over SSH, for the account that runs the test.

Keys, host keys and settings are its own. Run by root it is in a mount namespace of its own, for the empty folder that it
wants below /run.
"""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from trimtab.lab.answering import listens
from trimtab.lab.git import GitServer, environment
from trimtab.lab.served import Served
from trimtab.testing.processes import PeerFailed, Process

_AS_ROOT = 'mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/sshd && exec "$@"'


class GitSsh(Served):
    """Runs from construction until `stop`. `authorized` are the public keys that may come in, as lines;
    `known_hosts` is what a client needs to know."""

    def __init__(self, directory: Path, port: int, *, authorized: Sequence[str], host_key: str = "ed25519") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.repositories = GitServer(directory / "repositories")
        self.port, self.username = port, getpass.getuser()
        if listens("127.0.0.1", port):
            raise PeerFailed(f"something listens on 127.0.0.1:{port} already")
        private, public = key_pair(directory / "host_key", kind=host_key)
        self.known_hosts = f"[127.0.0.1]:{port} {' '.join(public.split()[:2])}\n"
        (directory / "authorized_keys").write_text("".join(f"{line.strip()}\n" for line in authorized))
        _script(directory / "serve", self.repositories.folder)
        settings = [
            f"ListenAddress 127.0.0.1:{port}",
            f"HostKey {private}",
            f"AuthorizedKeysFile {directory}/authorized_keys",
            f"ForceCommand {directory}/serve",
            "PermitRootLogin yes",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "AcceptEnv GIT_PROTOCOL",
            "StrictModes no",
            "UsePAM no",
            "UseDNS no",
            "PidFile none",
            "PrintMotd no",
            "MaxStartups 1000",
        ]
        (directory / "sshd_config").write_text("\n".join(settings) + "\n")
        command = [_program(), "-D", "-e", "-f", str(directory / "sshd_config")]
        if os.geteuid() == 0:
            command = ["unshare", "--mount", "sh", "-e", "-c", _AS_ROOT, "sh", *command]
        process = Process(command, log=directory / "sshd.log")
        self._begin(process, lambda: "Server listening on" in process.log.read_text(errors="replace"), within=15)

    def url(self, name: str = "team") -> str:
        return f"ssh://{self.username}@127.0.0.1:{self.port}/{name}.git"

    @property
    def log(self) -> str:
        return self._process.log.read_text(errors="replace")


def key_pair(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> tuple[Path, str]:
    """Makes one by ssh-keygen: the file of the private key, and the public key as a line."""
    words = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "lab", "-f", str(path)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)  # noqa: S603
    return path, path.with_name(path.name + ".pub").read_text().strip()


def _script(path: Path, root: Path) -> None:
    """git-shell allows Git's own commands only; repositories are named from the root, as on real servers."""
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment().items())
    path.write_text(
        "#!/bin/sh\n"
        f"cd {shlex.quote(str(root))} || exit 1\n"
        f"""command=$(printf '%s' "$SSH_ORIGINAL_COMMAND" | sed "s|'/|'|")\n"""
        f'exec env -i {settings} GIT_PROTOCOL="$GIT_PROTOCOL" git-shell -c "$command"\n'
    )
    path.chmod(0o755)


def _program() -> str:
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "/usr/sbin/sshd"
