"""Debian's PowerDNS as a server of the lab: zones and records behind its HTTP API, kept in a SQLite file of its own.

It answers DNS on a port of loopback too, so that a test can ask whether a record is really served. It asks nobody
anything: its poll for security notices is off.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from trimtab.lab.answering import answers, listens
from trimtab.lab.served import Served
from trimtab.testing.processes import PeerFailed, Process

SCHEMA = Path("/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql")


class PowerDns(Served):
    """Runs from construction until `stop`. `port` is the API's, `dns_port` that of DNS. When the constructor returns it
    answers on both."""

    def __init__(
        self,
        directory: Path,
        port: int,
        dns_port: int,
        *,
        api_key: str = "lab",
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port, self.dns_port, self.api_key = port, dns_port, api_key
        self.url = f"http://127.0.0.1:{port}/api/v1"
        if listens("127.0.0.1", port):
            raise PeerFailed(f"something listens on 127.0.0.1:{port} already")
        database = directory / "zones.sqlite3"
        if not database.exists():
            with sqlite3.connect(database) as connection:
                connection.executescript(SCHEMA.read_text())
            connection.close()
        settings = {
            "launch": "gsqlite3",
            "gsqlite3-database": str(database),
            "gsqlite3-pragma-synchronous": "0",
            "local-address": "127.0.0.1",
            "local-port": str(dns_port),
            "api": "yes",
            "api-key": api_key,
            "webserver": "yes",
            "webserver-address": "127.0.0.1",
            "webserver-port": str(port),
            "webserver-allow-from": "127.0.0.0/8",
            "socket-dir": str(directory),
            "security-poll-suffix": "",
            "guardian": "no",
            "daemon": "no",
            "disable-syslog": "yes",
        }
        configuration = directory / "pdns.conf"
        configuration.touch(mode=0o600)
        configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command = [_program(), f"--config-dir={directory}"]
        self._begin(Process(command, log=directory / "pdns.log"), self._answers, within=15)

    def _answers(self) -> bool:
        where, key = ("127.0.0.1", self.port), {"X-API-Key": self.api_key}
        return answers(where, "/api/v1/servers/localhost", headers=key) and listens("127.0.0.1", self.dns_port)


def _program() -> str:
    return shutil.which("pdns_server", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "/usr/sbin/pdns_server"
