"""Debian's Alertmanager as a server of the lab: silences behind its HTTP API, on loopback and in a cluster of one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from trimtab.lab.answering import answers, listens
from trimtab.lab.served import Served
from trimtab.testing.processes import PeerFailed, Process


class Alertmanager(Served):
    """Runs from construction until `stop`. When the constructor returns it is ready."""

    def __init__(self, directory: Path, port: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = port
        self.url = f"http://127.0.0.1:{port}/api/v2"
        if listens("127.0.0.1", port):
            raise PeerFailed(f"something listens on 127.0.0.1:{port} already")
        configuration = directory / "alertmanager.yml"
        configuration.write_text(json.dumps({"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}))
        command = [
            _program(),
            f"--config.file={configuration}",
            f"--storage.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ]
        self._begin(
            Process(command, log=directory / "alertmanager.log"),
            lambda: answers(("127.0.0.1", port), "/-/ready"),
            within=15,
        )


def _program() -> str:
    return shutil.which("prometheus-alertmanager") or "/usr/bin/prometheus-alertmanager"
