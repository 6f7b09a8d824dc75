"""An open connection to a device, offered to gRPC as a unix socket.

flow        The connection is made and judged first (TCP, TLS, the device's key); then gRPC connects to a socket in a
            folder that only we may enter, and bytes go to and fro as they are.
guarantees  One connection to the device a link: gRPC cannot connect to it again by itself, so a credential never goes
            to a key that was not judged. What broke is known exactly (`lost`), not guessed from a message of gRPC.
            A slow side slows the other: no more than a transport's buffer is held.
caveats     One more hop in this process: see `bench/peers/gnmi_rate.py` for what it costs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from pathlib import Path
from typing import Any

FIRST = 16
CLOSING = 1.0
GREETING = 64 * 1024
"""What a device may send before it is asked: settings of HTTP/2."""


class Link:
    """One connection, from `connect` to `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listener: socket.socket | None = None
        self._joining: asyncio.Task[Any] | None = None
        self._device = _Side()
        self._local = _Side(self._device)

    @property
    def target(self) -> str:
        """What gRPC connects to."""
        return f"unix:{self._path}"

    @property
    def lost(self) -> bool:
        """Whether the device has broken off."""
        return self._device.gone.is_set()

    @property
    def error(self) -> Exception | None:
        """With what it broke off, if that was not a plain end."""
        return self._device.error

    @property
    def first(self) -> bytes:
        """The first bytes that the device sent."""
        return self._device.first

    @property
    def certificate(self) -> bytes | None:
        """What the device showed, in DER."""
        session: ssl.SSLObject | None = self._device.transport.get_extra_info("ssl_object")
        return session.getpeercert(binary_form=True) if session else None

    async def connect(self, address: str, port: int, context: ssl.SSLContext | None, server_name: str) -> None:
        """In plain text without a context. OSError (ssl.SSLError among them) when there is no connection."""
        loop = asyncio.get_running_loop()
        name = server_name if context else None
        await loop.create_connection(lambda: self._device, address, port, ssl=context, server_hostname=name)

    def offer(self) -> None:
        """Let gRPC come, once. OSError when this machine has no room for a socket."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        self._listener.bind(os.fspath(self._path))
        self._listener.listen(1)
        asyncio.get_running_loop().add_reader(self._listener.fileno(), self._accept, self._listener)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            taken, _ = listener.accept()
            self._withdraw()
            loop = asyncio.get_running_loop()
            self._joining = loop.create_task(loop.connect_accepted_socket(lambda: self._local, taken))

    def _withdraw(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
            self._path.unlink(missing_ok=True)

    async def close(self) -> None:
        """When this returns the sockets are closed too."""
        self._withdraw()
        self._device.end()
        self._local.end()
        with contextlib.suppress(TimeoutError):  # they close by themselves a little later
            async with asyncio.timeout(CLOSING):
                if self._joining is not None:
                    await asyncio.wait([self._joining])
                for side in (self._device, self._local):
                    if side.transport is not None:
                        await side.gone.wait()


class _Side(asyncio.Protocol):
    """One end. What comes before the other end is there is kept, which is no more than the device's greeting."""

    def __init__(self, peer: _Side | None = None) -> None:
        self.transport: Any = None
        self.gone = asyncio.Event()
        self.error: Exception | None = None
        self.first = b""
        self._peer = peer
        self._early = bytearray()
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        if self._ended:
            self.transport.abort()
        elif self._peer is not None:
            self._peer.join(self)

    def join(self, peer: _Side) -> None:
        self._peer = peer
        peer.transport.write(bytes(self._early))
        if self.gone.is_set():
            peer.transport.close()

    def end(self) -> None:
        """At once, or as soon as it has begun."""
        self._ended = True
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if len(self.first) < FIRST:
            self.first += data[: FIRST - len(self.first)]
        if self._peer is None:
            self._early += data
            if len(self._early) > GREETING:
                self.transport.abort()
        elif not self._peer.transport.is_closing():
            self._peer.transport.write(data)

    def pause_writing(self) -> None:
        if self._peer is not None and not self._peer.transport.is_closing():
            self._peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._peer is not None and not self._peer.transport.is_closing():
            self._peer.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self.error = error
        self.gone.set()
        if self._peer is not None:
            self._peer.transport.close()
