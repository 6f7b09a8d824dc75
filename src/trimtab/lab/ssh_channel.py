"""One channel to a played device: a command, a shell that echoes and pages, or NETCONF."""

from __future__ import annotations

import asyncssh
import msgspec

from trimtab.lab.ssh_netconf import NetconfServer
from trimtab.lab.ssh_personalities import Exec, Fault, Personality


class Asked(msgspec.Struct):
    """What a device was asked, in order."""

    commands: list[str] = []
    requests: list[str] = []


class Channel(asyncssh.SSHServerSession[bytes]):
    """A command, a shell or NETCONF on one channel."""

    def __init__(
        self, personality: Personality, fault: Fault, asked: Asked, connection: asyncssh.SSHServerConnection
    ) -> None:
        self._personality, self._fault, self._asked, self._connection = personality, fault, asked, connection
        self._command: str | None = None
        self._netconf: NetconfServer | None = None
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
        self._netconf = NetconfServer(script, self._fault, self._asked.requests, self._connection, self._channel)
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
        if self._fault is Fault.DROP_IN_ANSWER:
            self._connection.close()
            return
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
            if self._personality.echo:
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
        if self._fault is Fault.DROP_IN_ANSWER:
            self._write("".join(lines))
            self._connection.close()
            return
        now, self._held = (lines[: self._page], lines[self._page :]) if self._page else (lines, [])
        self._write("".join(f"{line}\r\n" for line in now))
        self._write(self._personality.pager if self._held else self._personality.prompt)

    def _run(self, command: str) -> str | None:
        self._asked.commands.append(command)
        if self._fault is Fault.HANG:
            return None
        if self._fault is Fault.DROP_IN_ANSWER:
            return "Version 15"
        if self._fault is Fault.FLOOD:
            return "All work and no play.\n" * 100_000
        return self._personality.commands.get(command, self._personality.error + "\n")

    def _write(self, text: str) -> None:
        self._channel.write(text.encode())
