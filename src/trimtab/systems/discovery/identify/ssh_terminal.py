"""Runs commands on a device: by `exec` where it has that, else typed into a shell with a terminal.

Many devices refuse `exec`; some answer one and then hang up. Then we log in once more, by the credential that has just
worked, and type the rest into a shell. A command's output is bounded in size, and in time by the profile's `timeout`.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import enum
from types import TracebackType
from typing import Self

import asyncssh

from trimtab.systems.discovery.findings import Access, NotIdentified, Outcome
from trimtab.systems.discovery.identify import ssh_screen as screen
from trimtab.systems.discovery.identify.ssh_failures import is_lost
from trimtab.systems.discovery.identify.ssh_session import Session, logged_in

LARGEST_OUTPUT = 1024 * 1024
QUIET = 0.15
"""Seconds without a byte after which a terminal is taken to wait for us."""
FIRST = 1.0
"""Seconds that a shell may take for its first byte before an empty line is typed."""
NO_ECHO = 1.0
"""Seconds of silence at a prompt after which a terminal is taken not to echo what is typed."""
WIDTH, HEIGHT = 511, 1000
"""A terminal that breaks no lines and needs no pager."""


class Way(enum.Enum):
    """How commands reach the device."""

    EXEC = enum.auto()
    SHELL = enum.auto()


class Terminal:
    """A login that runs commands, one after the other. Use it in an `async with`; the first login is made there."""

    def __init__(self, access: Access, way: Way = Way.EXEC) -> None:
        self._access = access
        self._logins = contextlib.AsyncExitStack()
        self._way = way
        self._exec_works = False
        self._shell: _Shell | None = None

    async def __aenter__(self) -> Self:
        self.session = await self._log_in()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._logins.__aexit__(kind, error, trace)

    async def run(self, command: str) -> str:
        """What the command printed."""
        if self._way is Way.EXEC:
            try:
                async with asyncio.timeout(self._timeout):
                    output = await self._execute(command)
                self._exec_works = True
                return output
            except (asyncssh.ChannelOpenError, asyncssh.ConnectionLost):
                self._way = Way.SHELL
            except TimeoutError:  # some take exec for a shell, and wait
                if self._exec_works:
                    raise
                self._way = Way.SHELL
        if self._shell is None:
            self._shell = await self._open_shell()
        async with asyncio.timeout(self._timeout):
            return await self._shell.run(command)

    async def _open_shell(self) -> _Shell:
        try:
            async with asyncio.timeout(self._timeout):
                return await _Shell.open(self.session)
        except (asyncssh.ChannelOpenError, asyncssh.ConnectionLost) as error:
            if not is_lost(error):
                raise
        self.session = await self._log_in()
        async with asyncio.timeout(self._timeout):
            return await _Shell.open(self.session)

    async def _log_in(self) -> Session:
        return await self._logins.enter_async_context(logged_in(self._access))

    @property
    def _timeout(self) -> float:
        return self._access.profile.timeout.seconds

    async def _execute(self, command: str) -> str:
        process = await self.session.connection.create_process(command, encoding=None, stderr=asyncssh.DEVNULL)
        try:
            gathered = bytearray()
            while data := await process.stdout.read(65536):
                gathered += data
                _bound(len(gathered), command)
            if self.session.lost and process.exit_status is None:
                raise asyncssh.ConnectionLost("the device hung up before the command had ended")
            return gathered.decode(errors="replace")
        finally:
            process.close()


class _Shell:
    """A shell at its prompt."""

    def __init__(self, channel: asyncssh.SSHClientChannel[bytes], display: _Display) -> None:
        self._channel = channel
        self._display = display
        self._prompt = ""

    @classmethod
    async def open(cls, session: Session) -> Self:
        display = _Display()
        channel, _ = await session.connection.create_session(
            lambda: display, encoding=None, request_pty="force", term_type="dumb", term_size=(WIDTH, HEIGHT)
        )
        shell = cls(channel, display)
        await display.changed(FIRST)
        while not shell._prompt:
            while await display.changed(QUIET):
                pass
            if screen.asks_who(screen.last_line(display.text)):
                raise NotIdentified(
                    Outcome.PROTOCOL_ERROR,
                    "The login worked, but the device's shell asks again who we are. Nothing was typed there. "
                    "Log in once by hand, and see what the device wants.",
                )
            shell._prompt = screen.prompt(display.text) or ""
            if not shell._prompt:
                shell._type("\n")
                await display.changed()
        return shell

    async def run(self, command: str) -> str:
        display = self._display
        display.clear()
        self._type(f"{command}\n")
        while True:
            waits = screen.ends_with(display.text, self._prompt)
            if waits and command in display.text:
                break
            # A prompt before the echo is of an earlier empty line, unless nothing follows: then there is no echo.
            if not await display.changed(NO_ECHO if waits else None):
                break
            if screen.asks_for_more(screen.last_line(display.text)):
                display.cut_last_line()
                self._type(" ")
        return screen.output(display.text, command)

    def _type(self, text: str) -> None:
        self._channel.write(text.encode())


class _Display(asyncssh.SSHClientSession[bytes]):
    """Gathers what a terminal shows."""

    def __init__(self) -> None:
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._changed = asyncio.Event()
        self._ended = False

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if len(self.text) <= LARGEST_OUTPUT:
            self.text += self._decoder.decode(data)
        self._changed.set()

    def eof_received(self) -> bool:
        self._end()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def clear(self) -> None:
        self.text = ""

    def cut_last_line(self) -> None:
        self.text = self.text[: -len(screen.last_line(self.text))]

    async def changed(self, within: float | None = None) -> bool:
        """Wait for more; False when nothing came in time. NotIdentified when no more can come, or it is too much."""
        try:
            async with asyncio.timeout(within):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        _bound(len(self.text), "what it shows")
        if self._ended:
            raise NotIdentified(Outcome.DISCONNECTED, "The device closed its shell before it had answered.")
        return True

    def _end(self) -> None:
        self._ended = True
        self._changed.set()


def _bound(size: int, what: str) -> None:
    if size > LARGEST_OUTPUT:
        raise NotIdentified(
            Outcome.PROTOCOL_ERROR, f"The device printed more than {LARGEST_OUTPUT} characters for {what!r}."
        )
