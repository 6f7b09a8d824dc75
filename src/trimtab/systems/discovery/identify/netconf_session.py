"""A NETCONF session on an SSH login (RFC 6241, 6242): hellos, then one rpc after the other, then close-session.

Nothing is written behind our hello before the device's has come: some servers lose what comes along with a hello.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection
from typing import Self

import asyncssh

from trimtab.systems.discovery.findings import NotIdentified, Outcome
from trimtab.systems.discovery.identify import netconf_framing as framing
from trimtab.systems.discovery.identify import netconf_xml as xml
from trimtab.systems.discovery.identify.ssh_failures import is_lost
from trimtab.systems.discovery.identify.ssh_session import Session

PATIENCE = 1.0
"""How long a device may take to answer close-session, in seconds."""

_CAPABILITY = ("capabilities", "capability")


BREATH = 0.05
"""Seconds between our hello and the first request: some servers (yuma123) hang for ever when they read both at once, and
nothing tells that they have read the hello."""


class NetconfSession:
    """An open session. `capabilities` are those of the device's hello."""

    def __init__(self, stdin: asyncssh.SSHWriter[bytes], stdout: asyncssh.SSHReader[bytes], timeout: float) -> None:
        self._stdin, self._stdout, self._timeout = stdin, stdout, timeout
        self._decoder: framing.Decoder = framing.EndOfMessage()
        self._frame = framing.ended
        self._messages: deque[bytes] = deque()
        self._sent = 0
        self.capabilities: tuple[str, ...] = ()

    @classmethod
    async def open(cls, session: Session, newest: str, timeout: float) -> Self:
        """`newest` is the newest base version to offer: 1.0 or 1.1. NotIdentified, TimeoutError."""
        async with asyncio.timeout(timeout):
            try:
                stdin, stdout, _ = await session.connection.open_session(subsystem="netconf", encoding=None)
            except asyncssh.ChannelOpenError as error:
                if is_lost(error):
                    raise
                raise NotIdentified(
                    Outcome.PROTOCOL_ERROR,
                    "The login worked, but there is no NETCONF at this port. Enable it on the device, or set the port.",
                ) from error
            opened = cls(stdin, stdout, timeout)
            await opened._greet(newest)
            await asyncio.sleep(BREATH)
            return opened

    async def get(self, subtree: str, wanted: Collection[xml.Path]) -> xml.Message:
        """The answer to a `<get>`, read at the wanted paths below `<data>`."""
        return await self._ask(xml.get(self._next_id(), subtree), [("data", *path) for path in wanted])

    async def close(self) -> None:
        """Says goodbye. A device that does not answer it is left."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._ask(xml.rpc(self._next_id(), "<close-session/>"), ())
        except (NotIdentified, TimeoutError, asyncssh.Error, OSError):
            return  # all is said already

    async def _greet(self, newest: str) -> None:
        ours = [xml.BASE_1_0, xml.BASE_1_1] if newest == "1.1" else [xml.BASE_1_0]
        self._stdin.write(framing.ended(xml.hello(ours)))
        greeting = await self._read([_CAPABILITY])
        if greeting.root != "hello":
            raise _wrong(f"it began with <{greeting.root}>, not with <hello>")
        self.capabilities = tuple(greeting.texts.get(_CAPABILITY, ()))
        common = set(ours) & set(self.capabilities)
        if xml.BASE_1_1 in common:
            rest = self._decoder.rest()
            self._decoder, self._frame = framing.Chunked(), framing.chunked
            if rest.strip():  # and not only a line end behind the hello
                self._decode(rest)
        elif xml.BASE_1_0 not in common:
            raise _wrong("it offers no base version that the profile allows")

    async def _ask(self, request: bytes, wanted: Collection[xml.Path]) -> xml.Message:
        async with asyncio.timeout(self._timeout):
            self._stdin.write(self._frame(request))
            reply = await self._read(wanted)
        if reply.root != "rpc-reply":
            raise _wrong(f"it answered with <{reply.root}>, not with <rpc-reply>")
        return reply

    async def _read(self, wanted: Collection[xml.Path]) -> xml.Message:
        while not self._messages:
            data = await self._stdout.read(65536)
            if not data:
                raise NotIdentified(Outcome.DISCONNECTED, "The device closed the NETCONF session in the middle.")
            self._decode(data)
        try:
            return await xml.read(self._messages.popleft(), wanted)
        except xml.BadMessage as error:
            raise _wrong(str(error)) from error

    def _decode(self, data: bytes) -> None:
        try:
            self._messages.extend(self._decoder.feed(data))
        except framing.BadFraming as error:
            raise _wrong(str(error)) from error

    def _next_id(self) -> int:
        self._sent += 1
        return self._sent


def _wrong(why: str) -> NotIdentified:
    return NotIdentified(
        Outcome.PROTOCOL_ERROR,
        f"The device does not speak NETCONF as it should: {why}. Check what listens at the port.",
    )
