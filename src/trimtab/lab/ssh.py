"""A network device that speaks SSH and NETCONF, played by asyncssh: for tests of what devices do, and for the demo.

It counts logins, and locks the account after some that failed, as devices do; `locked` never becomes true against a
client that behaves. Faults make it misbehave. `python -m trimtab.lab.ssh --help` runs one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import asyncssh

from trimtab.lab.ssh_channel import Asked, Channel
from trimtab.lab.ssh_personalities import LINUX, PERSONALITIES, Fault, Personality

METHODS = frozenset({"publickey", "password", "keyboard-interactive"})


class SshDevice:
    """Serves from `async with` on; `port` is known then."""

    def __init__(
        self,
        personality: Personality = LINUX,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        username: str = "admin",
        password: str = "admin",  # noqa: S107 - a played device
        authorized_key: asyncssh.SSHKey | None = None,
        methods: frozenset[str] = METHODS,
        host_key: asyncssh.SSHKey | None = None,
        question: str = "Password: ",
        lock_after: int = 3,
        fault: Fault = Fault.NONE,
        algorithms: dict[str, Sequence[str]] | None = None,
    ) -> None:
        self.personality = personality
        self.address, self.port = address, port
        self.username, self.password, self.authorized_key = username, password, authorized_key
        self.methods, self.question = methods, question
        self.host_key = host_key or asyncssh.generate_private_key("ssh-ed25519")
        self.fault = fault
        self.connections = 0
        self.logins = 0
        self.credentials: list[str] = []
        """The way by which each credential came."""
        self.failed_logins = 0
        self.tried = asyncio.Event()
        """A credential came."""
        self.left = asyncio.Event()
        """A connection ended."""
        self.asked = Asked()
        self._lock_after = lock_after
        self._algorithms = algorithms or {}
        self._server: asyncssh.SSHAcceptor | asyncio.Server | None = None
        self._open: set[asyncssh.SSHServerConnection | asyncio.StreamWriter] = set()

    @property
    def pin(self) -> str:
        return self.host_key.get_fingerprint()

    @property
    def commands(self) -> list[str]:
        """The commands that were run."""
        return self.asked.commands

    @property
    def requests(self) -> list[str]:
        """The rpcs that came."""
        return self.asked.requests

    @property
    def locked(self) -> bool:
        return self.failed_logins >= self._lock_after

    async def __aenter__(self) -> Self:
        if self.fault in _RAW:
            server = await asyncio.start_server(self._misbehave, self.address, self.port)
            self._server, self.port = server, server.sockets[0].getsockname()[1]
            return self
        self._server = acceptor = await asyncssh.listen(
            self.address,
            self.port,
            server_factory=lambda: _Server(self),
            server_host_keys=[self.host_key],
            server_version=self.personality.version,
            encoding=None,
            line_editor=False,
            config=None,
            **self._algorithms,
        )
        self.port = acceptor.get_port()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._open):
            if isinstance(connection, asyncssh.SSHServerConnection):
                connection.abort()
            else:
                connection.close()
        await self._server.wait_closed()

    def judge(self, right: bool) -> bool:
        """One login, refused when the account is locked."""
        right = right and not self.locked
        if right:
            self.logins += 1
        else:
            self.failed_logins += 1
        return right

    async def _misbehave(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        with contextlib.suppress(ConnectionError):
            match self.fault:
                case Fault.GARBAGE:
                    writer.write(_GARBAGE)
                case Fault.GARBAGE_PACKETS:
                    writer.write(f"SSH-2.0-{self.personality.version}\r\n".encode() + _GARBAGE)
                case Fault.CHATTER:
                    while not reader.at_eof():
                        writer.write(b"Please wait...\r\n" * 64)
                        await writer.drain()
                case Fault.SLOW:
                    for byte in f"SSH-2.0-{self.personality.version}\r\n".encode():
                        writer.write(bytes([byte]))
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(reader.read(), 1)
                            break  # the other side has gone
            await reader.read()
        writer.close()
        self._open.discard(writer)


_RAW = {Fault.SILENT, Fault.GARBAGE, Fault.GARBAGE_PACKETS, Fault.SLOW, Fault.CHATTER}
_GARBAGE = bytes(range(128, 256)) * 128


class _Server(asyncssh.SSHServer):
    """One connection to the device."""

    def __init__(self, device: SshDevice) -> None:
        self._device = device

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._device.connections += 1
        self._device._open.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._device._open.discard(self._connection)
        self._device.left.set()

    def begin_auth(self, username: str) -> bool:
        if self._device.fault is Fault.BANNER:
            for _ in range(64):
                self._connection.send_auth_banner("All work is recorded. " * 400)
        elif self._device.personality.banner:
            self._connection.send_auth_banner(self._device.personality.banner)
        return True

    def auth_completed(self) -> None:
        if self._device.fault is Fault.DROP_AFTER_LOGIN:
            self._connection.abort()

    def public_key_auth_supported(self) -> bool:
        return "publickey" in self._device.methods

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        known = self._device.authorized_key
        right = known is not None and key.public_data == known.public_data
        return await self._judge("publickey", username, right)

    def password_auth_supported(self) -> bool:
        return "password" in self._device.methods

    async def validate_password(self, username: str, password: str) -> bool:
        return await self._judge("password", username, password == self._device.password)

    def kbdint_auth_supported(self) -> bool:
        return "keyboard-interactive" in self._device.methods

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> tuple[str, str, str, list[Any]]:
        return "", "", "en", [(self._device.question, False)]

    async def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
        return await self._judge("keyboard-interactive", username, list(responses) == [self._device.password])

    def session_requested(self) -> Channel:
        device = self._device
        return Channel(device.personality, device.fault, device.asked, self._connection)

    async def _judge(self, way: str, username: str, right: bool) -> bool:
        self._device.credentials.append(way)
        self._device.tried.set()
        if self._device.fault is Fault.DROP_AT_LOGIN:
            self._connection.abort()
            return False
        if self._device.fault is Fault.HANG_AT_LOGIN:
            await asyncio.get_running_loop().create_future()
        return self._device.judge(right and username == self._device.username)


async def _serve(options: argparse.Namespace) -> None:
    fault = Fault[options.fault.upper().replace("-", "_")]
    personality = PERSONALITIES[options.personality]
    device = SshDevice(
        personality,
        address=options.address,
        port=options.port,
        username=options.username,
        password=options.password,
        fault=fault,
    )
    async with device:
        print(f"{options.personality} at {device.address} port {device.port}, host key {device.pin}", flush=True)
        await asyncio.get_running_loop().create_future()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m trimtab.lab.ssh", description="A device that speaks SSH.")
    parser.add_argument("--personality", choices=sorted(PERSONALITIES), default="linux")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--username", default="admin")
    parser.add_argument("--password", default="admin")
    parser.add_argument(
        "--fault", choices=[fault.name.lower().replace("_", "-") for fault in Fault], default="none", metavar="FAULT",
        help="; ".join(f"{fault.name.lower().replace('_', '-')}: {fault.value}" for fault in Fault),
    )  # fmt: skip
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
