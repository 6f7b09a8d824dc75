"""Debian's docker-registry (distribution) as a registry of the lab: the real one, on loopback.

It is made as a test needs it: plain, with TLS, with a password file, with tokens of our own server, as a pull-through
cache of another one, or telling of pushes. Its files are in a directory of its own; nothing of the machine's is read.
"""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

import msgspec

from trimtab.lab.served import Served
from trimtab.testing.pki import Pair
from trimtab.testing.processes import PeerFailed, Process


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Whose tokens a registry takes."""

    realm: str
    service: str
    issuer: str
    roots: Path  # certificates, in PEM


class Registry(Served):
    """Runs from construction until `stop`. When the constructor returns it answers.

    `logins` are users and passwords; `remote` is the address of the registry that it is a cache of; `notify` is where
    pushes are told of, with `notify_token` as the bearer's token.
    """

    def __init__(
        self,
        directory: Path,
        port: int,
        *,
        address: str = "127.0.0.1",
        tls: Pair | None = None,
        logins: Mapping[str, str] | None = None,
        tokens: Tokens | None = None,
        remote: str = "",
        notify: str = "",
        notify_token: str = "",
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.host = f"{address}:{port}"
        self.url = f"{'https' if tls else 'http'}://{self.host}"
        storage = {"filesystem": {"rootdirectory": str(directory / "data")}, "delete": {"enabled": True}}
        http: dict[str, Any] = {"addr": self.host, "secret": "lab"}
        settings: dict[str, Any] = {
            "version": "0.1",
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {**storage, "cache": {"blobdescriptor": "inmemory"}},
            "http": http,
        }
        if tls is not None:
            http["tls"] = {"certificate": str(tls.certificate), "key": str(tls.key)}
        if logins is not None:
            passwords = directory / "htpasswd"
            passwords.touch(mode=0o600)
            passwords.write_text("".join(map(_htpasswd, logins, logins.values())))
            settings["auth"] = {"htpasswd": {"realm": "lab", "path": str(passwords)}}
        if tokens is not None:
            settings["auth"] = {
                "token": {
                    "realm": tokens.realm,
                    "service": tokens.service,
                    "issuer": tokens.issuer,
                    "rootcertbundle": str(tokens.roots),
                }
            }
        if remote:
            settings["proxy"] = {"remoteurl": remote}
        if notify:
            endpoint: dict[str, Any] = {
                "name": "lab",
                "url": notify,
                "timeout": "2s",
                "threshold": 3,
                "backoff": "100ms",
            }
            if notify_token:
                endpoint["headers"] = {"Authorization": [f"Bearer {notify_token}"]}
            settings["notifications"] = {"endpoints": [endpoint]}
        if _listens(address, port):
            raise PeerFailed(f"something listens on {self.host} already")
        configuration = directory / "config.yml"
        configuration.touch(mode=0o600)
        configuration.write_text(json.dumps(settings))  # JSON is YAML
        command = [_program(), "serve", str(configuration)]
        self._begin(
            Process(command, log=directory / "registry.log", env={"OTEL_TRACES_EXPORTER": "none"}),
            lambda: _answers(address, port, encrypted=tls is not None),
            within=10,
        )


def _htpasswd(user: str, password: str) -> str:
    """A line of the file: the registry knows bcrypt only. The password does not show in the list of processes."""
    command = [shutil.which("htpasswd") or "/usr/bin/htpasswd", "-niBC", "4", user]
    made = subprocess.run(command, input=password, capture_output=True, check=True, text=True)  # noqa: S603
    return made.stdout.strip() + "\n"


def _listens(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


def _answers(address: str, port: int, *, encrypted: bool) -> bool:
    """Whether it speaks. It listens before it has read its certificate, and may end then."""
    connection: HTTPConnection = (
        HTTPSConnection(address, port, timeout=2, context=ssl._create_unverified_context())  # noqa: S323 - nothing is told
        if encrypted
        else HTTPConnection(address, port, timeout=2)
    )
    try:
        connection.request("GET", "/v2/")
        connection.getresponse().read()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    return True


def _program() -> str:
    return shutil.which("docker-registry") or "/usr/bin/docker-registry"
