"""Debian's Prometheus as a server of the lab: what it scrapes is given, its data go with its directory; on loopback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trimtab.lab.answering import answers, listens
from trimtab.lab.served import Served
from trimtab.testing.processes import PeerFailed, Process

Job = Mapping[str, Any]


def job(name: str, *targets: str, path: str = "/metrics", interval: str = "1s", **settings: Any) -> Job:
    """One of `scrape_configs`. Targets are `address:port`; `settings` are as Prometheus names them."""
    return {
        "job_name": name,
        "metrics_path": path,
        "scrape_interval": interval,
        "scrape_timeout": interval,
        "static_configs": [{"targets": list(targets)}],
        **settings,
    }


class Prometheus(Served):
    """Runs from construction until `stop`. When the constructor returns it is ready."""

    def __init__(
        self, directory: Path, port: int, jobs: Sequence[Job] = (), *, web: Mapping[str, Any] | None = None
    ) -> None:
        """`web` is its web configuration: TLS and users."""
        directory.mkdir(parents=True, exist_ok=True)
        self.port = port
        scheme = "https" if "tls_server_config" in (web or {}) else "http"
        self.url = f"{scheme}://127.0.0.1:{port}"
        if listens("127.0.0.1", port):
            raise PeerFailed(f"something listens on 127.0.0.1:{port} already")
        configuration = directory / "prometheus.yml"
        configuration.write_text(json.dumps({"scrape_configs": list(jobs)}))
        command = [
            _program(),
            f"--config.file={configuration}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        if web is not None:
            file = directory / "web.yml"
            file.write_text(json.dumps(web))
            command.append(f"--web.config.file={file}")
        self._guarded = web is not None
        self._begin(Process(command, log=directory / "prometheus.log"), self._ready, within=15)

    def _ready(self) -> bool:
        if self._guarded:  # it answers nobody whom it does not know, but it says in its log when it is ready
            return b"ready to receive web requests" in self._process.log.read_bytes()
        return answers(("127.0.0.1", self.port), "/-/ready")


def _program() -> str:
    return shutil.which("prometheus") or "/usr/bin/prometheus"
