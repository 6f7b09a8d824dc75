"""Debian's Podman as a Docker Engine of the lab: volumes, networks and secrets behind Docker's HTTP API, on a unix socket.

All that it keeps is below its own folder, locks included; the machine's own containers are neither seen nor touched.
No container is started: a network is only written down.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from trimtab.lab.answering import answers
from trimtab.lab.served import Served
from trimtab.testing.processes import Process


class Podman(Served):
    """Runs from construction until `stop`. `directory` takes all of its files; its path is kept short, because the one
    of a socket ends at 107 characters. When the constructor returns it answers."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.socket = directory / "podman.sock"
        self.url = f"unix://{self.socket}"
        self._run = Path(tempfile.mkdtemp(prefix="podman-"))  # podman takes no path of over 50 characters
        settings = directory / "containers.conf"
        settings.write_text('[engine]\nlock_type = "file"\nevents_logger = "none"\ncgroup_manager = "cgroupfs"\n')
        folders = {
            "--root": "storage",
            "--tmpdir": "tmp",
            "--volumepath": "volumes",
            "--network-config-dir": "networks",
        }
        command = [
            _program(),
            *(f"{option}={directory / folder}" for option, folder in folders.items()),
            f"--runroot={self._run}",
            "--storage-driver=vfs",
            *("system", "service", "--time=0", f"unix://{self.socket}"),
        ]
        environment = {"CONTAINERS_CONF": str(settings), "HOME": str(directory), "XDG_RUNTIME_DIR": str(directory)}
        self._begin(
            Process(command, log=directory / "podman.log", env=environment),
            lambda: answers(self.socket, "/_ping"),
            within=15,
        )

    def stop(self) -> None:
        self._process.stop()
        shutil.rmtree(self._run, ignore_errors=True)

    def kill(self) -> None:
        self._process.kill()
        shutil.rmtree(self._run, ignore_errors=True)


def _program() -> str:
    return shutil.which("podman") or "/usr/bin/podman"
