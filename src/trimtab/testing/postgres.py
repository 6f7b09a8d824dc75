"""A real PostgreSQL on loopback, with a password, for tests of what is kept in one.

It is ready when the constructor returns. PostgreSQL refuses to run as root: then it runs as the user `postgres`, or
`nobody`, in a folder of that user's own, which goes when it stops. Nothing is synced to disk.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from trimtab.testing.ports import free_ports
from trimtab.testing.processes import Process


class PostgresMissing(Exception):  # noqa: N818 - it reads as what happened
    """There is no PostgreSQL server on this machine."""


def binaries() -> Path:
    """The folder with `postgres` and `initdb`. Debian keeps it out of the path."""
    found = shutil.which("postgres")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if os.access(folder / "postgres", os.X_OK) and os.access(folder / "initdb", os.X_OK):
            return folder
    raise PostgresMissing("postgres and initdb are missing: run `make packages`")


class PostgresServer:
    """Starts on construction. `url` has the password; `restart` after `kill` continues on the same data."""

    def __init__(self) -> None:
        self._bin = binaries()
        self._user = _unprivileged()
        self.folder = Path(tempfile.mkdtemp(prefix="trimtab-postgres-"))
        self.password = secrets.token_hex(16)
        (self.port,) = free_ports(1)
        self.url = f"postgresql://trimtab:{self.password}@127.0.0.1:{self.port}/postgres"
        try:
            self._initialise()
            self._process = self._start()
        except BaseException:
            shutil.rmtree(self.folder)
            raise

    def kill(self) -> None:
        """Ends it as a power cut would: on Linux also those of its processes that have not noticed, and would still answer."""
        os.kill(self._process.pid, signal.SIGSTOP)  # it starts no more of them
        serving = _children(self._process.pid)
        self._process.kill()
        for child in serving:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        while any(map(_lives, serving)):
            time.sleep(0.01)

    def restart(self) -> None:
        self._process = self._start()

    def stop(self) -> None:
        if self._process.running:
            os.kill(self._process.pid, signal.SIGINT)  # fast: it does not wait for its clients
        self._process.stop()
        shutil.rmtree(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _initialise(self) -> None:
        password = self.folder / "password"
        password.touch(mode=0o600)
        password.write_text(self.password)
        if self._user:
            account = pwd.getpwnam(self._user)
            for path in (self.folder, password):
                os.chown(path, account.pw_uid, account.pw_gid)
        flags = ["--username=trimtab", f"--pwfile={password}", "--auth=scram-sha-256", "--no-sync", "--locale=C"]
        subprocess.run(  # noqa: S603 - the command is ours
            [
                *self._as_user(),
                str(self._bin / "initdb"),
                "--encoding=UTF8",
                *flags,
                f"--pgdata={self.folder / 'data'}",
            ],
            check=True,
            capture_output=True,
            cwd="/",
        )

    def _start(self) -> Process:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "off",
            "shared_buffers": "16MB",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        command = [*self._as_user(), str(self._bin / "postgres"), "-D", str(self.folder / "data"), *options]
        log = self.folder / "postgres.log"
        said = log.stat().st_size if log.exists() else 0  # by those before it, who were ready, too
        process = Process(command, log=log)
        try:
            process.wait_until(lambda: b"ready to accept connections" in log.read_bytes()[said:], within=60)
            process.wait_until(self._listens, within=10)
        except BaseException:
            process.kill()
            raise
        return process

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        except OSError:
            return False
        return True

    def _as_user(self) -> list[str]:
        """Changing the user ends the promise that it dies with us, so it is made again."""
        if not self._user:
            return []
        group = pwd.getpwnam(self._user).pw_gid
        return ["setpriv", f"--reuid={self._user}", f"--regid={group}", "--clear-groups", "--pdeathsig=KILL", "--"]


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [*map(int, listed.read_text().split())] if listed.exists() else []


def _lives(pid: int) -> bool:
    """Not gone, nor waiting for its new parent to notice that it has ended: then its memory is free."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _unprivileged() -> str | None:
    """Whom to run as; None when we are nobody special already."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise PostgresMissing("PostgreSQL does not run as root, and there is neither a user `postgres` nor `nobody`")
