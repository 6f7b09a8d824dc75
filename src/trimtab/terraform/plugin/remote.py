"""A provider that is another program: an older implementation, or one written in Go, behind the same endpoint as ours.

It is started as Terraform would start it, with the same line, the same TLS and the same protocol. It speaks protocol 5 or 6 as
it chooses; `launch` gives one that speaks 6. Its log goes where ours goes.
"""

from __future__ import annotations

import binascii
import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from trimtab.terraform.plugin import boot
from trimtab.terraform.plugin.client import Client
from trimtab.terraform.plugin.grpc import UNIMPLEMENTED, Status
from trimtab.terraform.plugin.identity import Identity
from trimtab.terraform.plugin.link import Broken, Link
from trimtab.terraform.plugin.services import SHUTDOWN
from trimtab.terraform.plugin.tls import client_context
from trimtab.terraform.protocol.contract import Encoded, Message, ProviderServer, Unimplemented
from trimtab.terraform.protocol.server import tables
from trimtab.terraform.protocol.upgrade import Upgraded
from trimtab.terraform.protocol.wire import Table, binary, decode, encode, enum

START: Final = 60.0
"""Seconds until its line must have come, as Terraform has it."""
SHUTDOWN_WAIT: Final = 2.0
LONGEST_LINE: Final = 1 << 16
OUTPUT: Final = "/plugin.GRPCStdio/StreamStdio"
_OUTPUT = Table("StdioData", channel=enum(1), data=binary(2))


class NoProvider(Exception):  # noqa: N818
    """The program is not a provider that we can speak with."""


def launch(command: Sequence[str], identity: Identity) -> tuple[ProviderServer, Callable[[], None]]:
    """The provider as a server of protocol 6, and how to end it."""
    remote = RemoteProvider(command, identity)
    return (remote if remote.protocol == 6 else Upgraded(remote)), remote.close


class RemoteProvider:
    """Answers in the messages of its own `protocol`. Safe to call from many threads."""

    def __init__(self, command: Sequence[str], identity: Identity) -> None:
        self.name = os.path.basename(command[0])
        self._process = subprocess.Popen(  # noqa: S603 - the program that we were told to run
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=_environment(identity)
        )
        try:
            self.protocol, link = _connect(_line(self._process), identity)
            self._client = Client(link)
            self._client.listen(OUTPUT, _pass_on)
        except BaseException as error:
            self._end()
            if self._process.stdout is not None:
                self._process.stdout.close()
            if isinstance(error, Broken):
                raise NoProvider(str(error)) from error
            raise
        threading.Thread(target=_drain, args=(self._process,), name="output", daemon=True).start()
        service, self._tables = tables(self.protocol)
        self._prefix = f"/{service}/"

    def call(self, method: str, request: Message) -> Message | Encoded:
        if method not in self._tables:
            raise Unimplemented(method)
        wants, gives = self._tables[method]
        try:
            answer = self._client.call(self._prefix + method, encode(request, wants))
        except Status as error:
            if error.code == UNIMPLEMENTED:
                raise Unimplemented(method) from error
            raise
        return decode(answer, gives)

    def stop(self) -> None:
        """Returns at once; the provider is told in a thread of its own."""
        threading.Thread(target=self._tell_stop, name="stop", daemon=True).start()

    def close(self) -> None:
        """Asks it to go, and ends it when it does not."""
        with contextlib.suppress(Status):  # it goes so fast that its answer is lost
            self._client.call(SHUTDOWN, b"")
        self._client.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SHUTDOWN_WAIT)
        self._end()

    def _tell_stop(self) -> None:
        with contextlib.suppress(Status):  # it is gone already
            self._client.call(self._prefix + ("StopProvider" if self.protocol == 6 else "Stop"), b"")

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


def _environment(identity: Identity) -> dict[str, str]:
    with open(identity.path, encoding="ascii") as file:
        certificate, end, _ = file.read().partition("-----END CERTIFICATE-----\n")
    return {
        **os.environ,
        boot.COOKIE: boot.COOKIE_VALUE,
        "PLUGIN_PROTOCOL_VERSIONS": "5,6",
        "PLUGIN_MIN_PORT": "10000",
        "PLUGIN_MAX_PORT": "25000",
        "PLUGIN_CLIENT_CERT": certificate + end,
    }


def _pass_on(message: bytes) -> None:
    """What the provider printed, which would hold it up if nobody took it."""
    sys.stderr.write(decode(message, _OUTPUT).get("data", b"").decode("utf-8", "replace"))


def _drain(process: subprocess.Popen[bytes]) -> None:
    """After its line a provider should say nothing there; if it does, it must not be held up by it."""
    if process.stdout is not None:
        with process.stdout as output:
            while output.read(4096):
                pass


def _line(process: subprocess.Popen[bytes]) -> str:
    if process.stdout is None:
        raise NoProvider("the provider has no output")
    handle = process.stdout.fileno()
    data = b""
    until = time.monotonic() + START
    while b"\n" not in data:
        ready, _, _ = select.select([handle], [], [], max(0.0, until - time.monotonic()))
        part = os.read(handle, 4096) if ready else b""
        if not part or len(data) > LONGEST_LINE:
            raise NoProvider(f"the provider said nothing that a provider says, but {data[:200]!r}")
        data += part
    return data.partition(b"\n")[0].decode("utf-8", "replace").strip()


def _connect(line: str, identity: Identity) -> tuple[int, Link]:
    fields = line.split("|")
    if len(fields) < 6 or fields[0] != str(boot.CORE_PROTOCOL) or fields[1] not in ("5", "6") or fields[4] != "grpc":
        raise NoProvider(f"the provider said nothing that a provider says, but {line[:200]!r}")
    try:
        certificate = binascii.a2b_base64(fields[5] + "=" * (-len(fields[5]) % 4))
        context = client_context(identity.path, certificate)
        link = Link(_dial(fields[2], fields[3]))
    except (ValueError, OSError) as error:
        raise NoProvider(f"cannot reach the provider at {fields[3]}: {error}") from error
    try:
        link.secure(context, "localhost")
    except Broken as error:
        link.close()
        raise NoProvider(str(error)) from error
    return int(fields[1]), link


def _dial(network: str, name: str) -> socket.socket:
    if network == "unix":
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(name)
        except OSError:
            sock.close()
            raise
        return sock
    host, _, port = name.rpartition(":")
    return socket.create_connection((host, int(port)))
