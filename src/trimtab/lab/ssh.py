"""A network device that speaks SSH and NETCONF, played by asyncssh: for tests of what devices do, and for the demo.

It counts logins, and locks the account after some that failed, as devices do; `locked` never becomes true against a
client that behaves. Faults make it misbehave. `python -m trimtab.lab.ssh --help` runs one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import enum
import re
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import asyncssh

from trimtab.lab.ssh_personalities import LINUX, PERSONALITIES, Exec, Netconf, Personality
from trimtab.systems.discovery.identify import netconf_framing as framing
from trimtab.systems.discovery.identify import netconf_xml as xml

METHODS = frozenset({"publickey", "password", "keyboard-interactive"})


class Fault(enum.Enum):
    """How the device misbehaves."""

    NONE = "none"
    SILENT = "accepts connections and says nothing"
    GARBAGE = "sends bytes that are no SSH"
    GARBAGE_PACKETS = "sends bytes that are no SSH after its version line"
    SLOW = "sends its version line one byte a second"
    CHATTER = "sends lines before its version line, without end"
    BANNER = "sends a banner without end"
    DROP_AT_LOGIN = "hangs up when it gets a credential"
    HANG_AT_LOGIN = "never answers a credential"
    DROP_AFTER_LOGIN = "hangs up once it has let somebody in"
    HANG = "never answers a command or a get"
    FLOOD = "prints without end"
    DROP_IN_GET = "hangs up in the middle of the answer to a get"
    BAD_FRAMING = "answers a get with a malformed chunk"
    BAD_XML = "answers a get with a document type and entities"


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
        self.commands: list[str] = []
        self.requests: list[str] = []
        self._lock_after = lock_after
        self._algorithms = algorithms or {}
        self._server: asyncssh.SSHAcceptor | asyncio.Server | None = None
        self._open: set[asyncssh.SSHServerConnection | asyncio.StreamWriter] = set()

    @property
    def pin(self) -> str:
        return self.host_key.get_fingerprint()

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

    def judge(self, way: str, right: bool) -> bool:
        """One login, refused when the account is locked."""
        self.credentials.append(way)
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
                        await asyncio.sleep(1)
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

    def session_requested(self) -> _Channel:
        return _Channel(self._device, self._connection)

    async def _judge(self, way: str, username: str, right: bool) -> bool:
        if self._device.fault is Fault.DROP_AT_LOGIN:
            self._device.credentials.append(way)
            self._connection.abort()
            return False
        if self._device.fault is Fault.HANG_AT_LOGIN:
            self._device.credentials.append(way)
            await asyncio.get_running_loop().create_future()
        return self._device.judge(way, right and username == self._device.username)


class _Channel(asyncssh.SSHServerSession[bytes]):
    """A command, a shell or NETCONF on one channel."""

    def __init__(self, device: SshDevice, connection: asyncssh.SSHServerConnection) -> None:
        self._device, self._connection = device, connection
        self._personality = device.personality
        self._command: str | None = None
        self._netconf: _NetconfServer | None = None
        self._line = b""
        self._page = self._personality.page
        self._held: list[str] = []  # lines behind the pager

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def connection_lost(self, exc: Exception | None) -> None:
        if self._command is not None and self._personality.exec is Exec.ONCE:
            self._connection.close()

    def pty_requested(self, term_type: str, term_size: object, term_modes: object) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return self._personality.exec is not Exec.REFUSED

    def shell_requested(self) -> bool:
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        script = self._personality.netconf
        if subsystem != "netconf" or script is None:
            return False
        self._netconf = _NetconfServer(self._device, self._connection, self._channel, script)
        return True

    def session_started(self) -> None:
        if self._netconf is not None:
            self._netconf.greet()
        elif self._command is not None:
            self._execute(self._command)
        else:
            self._write(self._personality.welcome + self._personality.prompt)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if self._netconf is not None:
            self._netconf.receive(data)
        elif self._command is None:
            for byte in data:
                self._key(bytes([byte]))

    def _execute(self, command: str) -> None:
        printed = self._run(command)
        if printed is None or self._personality.exec is Exec.WAITS:
            return
        self._channel.write(printed.encode())
        self._channel.exit(0)

    def _key(self, key: bytes) -> None:
        if self._held:
            self._write("\r" + " " * len(self._personality.pager) + "\r")
            self._show(self._held)
        elif key in b"\r\n":
            self._write("\r\n")
            command, self._line = self._line.decode(errors="replace").strip(), b""
            self._enter(command)
        else:
            self._line += key
            self._channel.write(key)

    def _enter(self, command: str) -> None:
        if not command:
            self._write(self._personality.prompt)
        elif command == "terminal length 0":
            self._page = 0
            self._write(self._personality.prompt)
        elif command == "exit":
            self._channel.exit(0)
        elif (printed := self._run(command)) is not None:
            self._show(printed.rstrip("\n").split("\n"))

    def _show(self, lines: list[str]) -> None:
        now, self._held = (lines[: self._page], lines[self._page :]) if self._page else (lines, [])
        self._write("".join(f"{line}\r\n" for line in now))
        self._write(self._personality.pager if self._held else self._personality.prompt)

    def _run(self, command: str) -> str | None:
        self._device.commands.append(command)
        if self._device.fault is Fault.HANG:
            return None
        if self._device.fault is Fault.FLOOD:
            return "All work and no play.\n" * 100_000
        return self._personality.commands.get(command, self._personality.error + "\n")

    def _write(self, text: str) -> None:
        self._channel.write(text.encode())


class _NetconfServer:
    """The server side of a NETCONF session that answers every get alike."""

    def __init__(
        self,
        device: SshDevice,
        connection: asyncssh.SSHServerConnection,
        channel: asyncssh.SSHServerChannel[bytes],
        script: Netconf,
    ) -> None:
        self._device, self._connection, self._channel, self._script = device, connection, channel, script
        self._decoder: framing.Decoder = framing.EndOfMessage()
        self._frame = framing.ended
        self._greeted = False

    def greet(self) -> None:
        bases = [f"urn:ietf:params:netconf:base:{version}" for version in self._script.versions]
        self._channel.write(framing.ended(xml.hello([*bases, *self._script.capabilities])))

    def receive(self, data: bytes) -> None:
        for message in self._decoder.feed(data):
            text = message.decode()
            if self._greeted:
                self._answer(text)
                continue
            self._greeted = True
            if xml.BASE_1_1 in text and "1.1" in self._script.versions:
                rest = self._decoder.rest()
                self._decoder, self._frame = framing.Chunked(), framing.chunked
                self.receive(rest)
                return

    def _answer(self, request: str) -> None:
        self._device.requests.append(request)
        found = re.search(r'message-id="([^"]*)"', request)
        head = f'<rpc-reply xmlns="{xml.BASE}" message-id="{found.group(1) if found else ""}">'
        if "<close-session" in request:
            self._channel.write(self._frame(f"{head}<ok/></rpc-reply>".encode()))
            self._channel.exit(0)
            return
        reply = self._frame(f"{head}{self._script.reply}</rpc-reply>".encode())
        match self._device.fault:
            case Fault.HANG:
                return
            case Fault.DROP_IN_GET:
                self._channel.write(reply[: len(reply) // 2])
                self._connection.close()
            case Fault.BAD_FRAMING:
                self._channel.write(b"\n#0\n\n##\n")
            case Fault.BAD_XML:
                self._channel.write(self._frame(_LAUGHS.encode()))
            case Fault.FLOOD:
                self._channel.write(b"\n#4294967295\n" if self._frame is framing.chunked else b"<data>" * 1_000_000)
            case _:
                self._channel.write(reply)


_LAUGHS = """<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<rpc-reply><data>&b;</data></rpc-reply>"""


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
