"""The test server of AutoRest (npm: @microsoft.azure/autorest.testserver) as a peer of the lab: real answers to every
shape of long-running operation, paging and failure that Azure's own client libraries are tested with.

It binds all addresses by itself; a small preload makes it listen on loopback only. It keeps its state in cookies, so a
client that does not keep them must send back what it was given.
"""

from __future__ import annotations

import os
import shutil
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Self

from trimtab.testing.processes import PeerFailed, Process

PACKAGE = Path("node_modules/@microsoft.azure/autorest.testserver")


def package() -> Path:
    """Where `scripts/packages.sh` puts it; it need not be there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    tools = Path(os.environ.get("TRIMTAB_TOOLS") or cache / "trimtab" / "tools" / "bin")
    return tools.parent / "node" / PACKAGE


def swagger(name: str) -> Path:
    """One of its documents: `lro.json`, `paging.json`, `httpInfrastructure.json`."""
    return package() / "swagger" / name


class AutorestServer:
    """Runs from construction until `stop`. When the constructor returns it answers."""

    def __init__(self, directory: Path, port: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        preload = directory / "loopback.cjs"
        preload.write_text(_LOOPBACK)
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        node = shutil.which("node") or "/usr/bin/node"
        command = [node, str(package() / "dist" / "cli" / "cli.js"), "run", f"--port={port}"]
        coverage = f"--coverageDirectory={directory / 'coverage'}"
        self._process = Process(
            [*command, coverage], log=directory / "autorest.log", env={"NODE_OPTIONS": f"--require {preload}"}
        )
        self.pid = self._process.pid
        try:
            self._process.wait_until(self._answers, within=30)
        except PeerFailed:
            self.stop()
            raise

    def stop(self) -> None:
        self._process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _answers(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("HEAD", "/http/success/200")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


_LOOPBACK = """\
const net = require("net");
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...given) {
  if (typeof given[0] === "number" || typeof given[0] === "string") {
    const last = given[given.length - 1];
    const ready = typeof last === "function" ? [last] : [];
    return listen.call(this, { port: Number(given[0]), host: "127.0.0.1" }, ...ready);
  }
  if (given[0] && typeof given[0] === "object" && given[0].port !== undefined) {
    given[0] = { ...given[0], host: "127.0.0.1" };
  }
  return listen.apply(this, given);
};
"""
