"""Debian's LXD as a server of the lab: profiles, projects, storage pools and volumes behind its REST API, on a unix socket.

It runs in network and mount namespaces of its own: it neither asks the image servers for news nor leaves mounts
behind. That needs root and `unshare`. Containers are not started here: nothing of cgroups or bridges is needed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from trimtab.lab.answering import answers
from trimtab.lab.served import Served
from trimtab.testing.processes import Process

_SCRIPT = 'mount --make-rprivate / && exec "$0" --group root'


class Lxd(Served):
    """Runs from construction until `stop`. `directory` takes all of its files; its path is kept short, because the one
    of a socket ends at 107 characters. When the constructor returns it is ready."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.socket = directory / "unix.socket"
        self.url = f"unix://{self.socket}"
        unshare = shutil.which("unshare") or "/usr/bin/unshare"
        command = [unshare, "--net", "--mount", "--", "/bin/sh", "-c", _SCRIPT, _program()]
        self._begin(
            Process(command, log=directory.with_suffix(".log"), env={"LXD_DIR": str(directory)}),
            lambda: answers(self.socket, "/internal/ready"),
            within=30,
        )


def _program() -> str:
    return shutil.which("lxd") or "/usr/bin/lxd"
