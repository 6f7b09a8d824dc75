"""`git daemon`: the plain git:// protocol on loopback, for everybody, pushes too."""

from __future__ import annotations

from pathlib import Path

from trimtab.lab.answering import listens
from trimtab.lab.git import GitServer, environment
from trimtab.lab.served import Served
from trimtab.testing.processes import PeerFailed, Process


class GitDaemon(Served):
    """Runs from construction until `stop`. `repositories` are what it serves: as `url(name)`."""

    def __init__(self, directory: Path, port: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.repositories = GitServer(directory / "repositories")
        self.port = port
        if listens("127.0.0.1", port):
            raise PeerFailed(f"something listens on 127.0.0.1:{port} already")
        command = ["git", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", "--informative-errors"]
        command += ["--listen=127.0.0.1", f"--port={port}", f"--base-path={self.repositories.folder}"]
        process = Process(command, log=directory / "daemon.log", env=environment())
        self._begin(process, lambda: listens("127.0.0.1", port), within=15)

    def url(self, name: str = "team") -> str:
        return f"git://127.0.0.1:{self.port}/{name}.git"
