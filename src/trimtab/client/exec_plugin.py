"""Credentials from a program, as kubeconfigs name it under `user.exec` (client.authentication.k8s.io, KEP-541).

It is run without a shell, with bounded output and time, and its answer is kept until it expires or the server refuses
it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from trimtab.client.config import ConfigError
from trimtab.client.credentials import Identity, bearer
from trimtab.model.clock import parse_time

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
PATIENCE = 60.0
MAX_OUTPUT = 1024 * 1024
EARLY = timedelta(seconds=10)  # renewed a little before it expires: the request takes time too


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """The program to run. `cluster` is what it is told of the cluster, when it wants to know."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    api_version: str = VERSIONS[0]
    interactive: str = "IfAvailable"  # Never, IfAvailable, Always
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None
    source: str = ""  # the file and field, for messages

    def __repr__(self) -> str:
        return f"Plugin({self.command!r})"  # arguments and environment may hold secrets


class ExecCredentials:
    """Asks a plugin when there is no credential or it expires; one run at a time."""

    def __init__(self, plugin: Plugin, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._plugin = plugin
        self._now = now
        self._kept: tuple[Identity, datetime | None] | None = None
        self._asking = asyncio.Lock()

    async def current(self) -> Identity:
        async with self._asking:
            if self._kept is None or (self._kept[1] is not None and self._now() >= self._kept[1] - EARLY):
                self._kept = read_credential(await run(self._plugin), self._plugin)
            return self._kept[0]

    def refused(self, identity: Identity) -> bool:
        if self._kept is not None and self._kept[0] is identity:  # else another call has asked anew meanwhile
            self._kept = None
        return True

    def __repr__(self) -> str:
        return f"ExecCredentials({self._plugin!r})"


async def run(plugin: Plugin) -> bytes:
    """The plugin's standard output. Its standard error goes to ours: it may tell people what to do."""
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    interactive = plugin.interactive != "Never" and terminal
    if plugin.interactive == "Always" and not interactive:
        raise ConfigError(f"{plugin.source}: {plugin.command} needs a terminal, and there is none")
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": {"interactive": interactive}}
    if plugin.cluster is not None:
        info["spec"]["cluster"] = plugin.cluster  # type: ignore[index]
    env = {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=env,
        )
    except OSError as error:
        hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
        raise ConfigError(f"{plugin.source}: {plugin.command} cannot be run: {error.strerror}{hint}") from None
    try:
        async with asyncio.timeout(None if interactive else PATIENCE):
            output = await _bounded(process, plugin)
            code = await process.wait()
    except TimeoutError:
        raise ConfigError(f"{plugin.source}: {plugin.command} did not answer within {PATIENCE:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code:
        raise ConfigError(f"{plugin.source}: {plugin.command} failed with exit code {code}")
    return output


async def _bounded(process: asyncio.subprocess.Process, plugin: Plugin) -> bytes:
    assert process.stdout is not None  # noqa: S101 - asked for above
    output = bytearray()
    while chunk := await process.stdout.read(65536):
        output += chunk
        if len(output) > MAX_OUTPUT:
            raise ConfigError(f"{plugin.source}: {plugin.command} wrote more than {MAX_OUTPUT} bytes")
    return bytes(output)


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status


def read_credential(output: bytes, plugin: Plugin) -> tuple[Identity, datetime | None]:
    """What the plugin answered, and until when it holds. Pure."""
    where = f"{plugin.source}: {plugin.command}"
    try:
        answer = msgspec.json.decode(output, type=_ExecCredential)
        expires = parse_time(answer.status.expiration_timestamp) if answer.status.expiration_timestamp else None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where} answered no ExecCredential: {error}") from None
    status = answer.status
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        raise ConfigError(
            f"{where} answered {answer.api_version} {answer.kind}, not {plugin.api_version} ExecCredential"
        )
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ConfigError(f"{where} answered a certificate without a key, or a key without a certificate")
    if not status.token and not status.client_key_data:
        raise ConfigError(f"{where} answered neither a token nor a certificate")
    identity = Identity(
        authorization=bearer(status.token) if status.token else "",
        certificate=status.client_certificate_data.encode(),
        key=status.client_key_data.encode(),
    )
    return identity, expires
