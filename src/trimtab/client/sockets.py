"""A connected socket in an event loop: plain or TLS. It is to its protocol what one of asyncio's transports is.

The loop's own transport for TLS puts two buffers, two protocols and an exception for each read between the socket and
OpenSSL. Here OpenSSL reads and writes the socket itself, which takes half of the CPU for a small answer; the benchmark of
the runtime decided.

Guarantees: what was written goes out in order; the protocol hears when it does not go out as fast as it comes; once
`connection_lost` was called, or after `abort`, nothing more comes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

READ = 64 * 1024
RECORD = 16 * 1024  # the most that TLS carries in one piece; a read takes a whole one, and nothing stays with OpenSSL

_LATER = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Socket(asyncio.Transport):
    """Made by `connect`. It calls `protocol` from the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = loop
        self._socket = sock
        self._fd = sock.fileno()
        self._protocol = protocol
        self._unsent = memoryview(b"")
        self._open = True
        self._reading = False
        self._read: Callable[[int], bytes]
        self._write: Callable[[memoryview], int]
        if isinstance(sock, ssl.SSLSocket):
            self._size, self._read, self._write = RECORD, sock.read, sock.write
        else:
            self._size, self._read, self._write = READ, sock.recv, sock.send
        protocol.connection_made(self)
        self.resume_reading()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send, now as much as goes, the rest when it can. Nothing while the rest of an earlier write waits."""
        if self._unsent:
            self._unsent = memoryview(b"".join((self._unsent, data)))
        elif self._open:
            self._unsent = memoryview(data)
            self._send()
            if self._unsent:
                self._protocol.pause_writing()

    def pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def resume_reading(self) -> None:
        if self._open and not self._reading:
            self._reading = True
            self._loop.add_reader(self._fd, self._receive)

    def abort(self) -> None:
        self._close(None)

    def is_closing(self) -> bool:
        return not self._open

    def _receive(self) -> None:
        try:
            data = self._read(self._size)
        except _LATER:
            return
        except OSError as error:
            self._close(error)
            return
        if data:
            self._protocol.data_received(data)
        else:
            self._protocol.eof_received()
            self._close(None)

    def _send(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[self._write(self._unsent) :]
        except _LATER:
            self._loop.add_writer(self._fd, self._send_on)
        except OSError as error:
            self._loop.call_soon(self._cut_off, error)  # not from within a write

    def _send_on(self) -> None:
        self._loop.remove_writer(self._fd)
        if self._open:
            self._send()
            if not self._unsent:
                self._protocol.resume_writing()

    def _cut_off(self, error: OSError) -> None:
        """The peer takes no more. It may have said why."""
        while self._open:
            try:
                data = self._read(self._size)
            except OSError:
                break
            if not data:
                break
            self._protocol.data_received(data)
        self._close(error)

    def _close(self, error: Exception | None) -> None:
        if not self._open:
            return
        self._open = False
        self.pause_reading()
        self._loop.remove_writer(self._fd)
        self._unsent = memoryview(b"")
        self._socket.close()
        self._loop.call_soon(self._protocol.connection_lost, error)


async def connect(
    target: tuple[str, int] | str, tls: ssl.SSLContext | None, server_name: str | None, protocol: asyncio.Protocol
) -> None:
    """Connect to (host, port), or to the path of a unix socket. The name is that which the certificate must bear."""
    loop = asyncio.get_running_loop()
    sock = await (_connected(loop, socket.AF_UNIX, target) if isinstance(target, str) else _any_of(loop, *target))
    try:
        if tls is not None:
            sock = tls.wrap_socket(sock, server_hostname=server_name, do_handshake_on_connect=False)
            await _shake_hands(loop, sock)
        Socket(loop, sock, protocol)
    except BaseException:
        sock.close()
        raise


async def _any_of(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """The first of the host's addresses that answers."""
    failure: OSError = OSError(f"{host} has no address")
    for family, _, _, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            sock = await _connected(loop, family, address)
        except OSError as error:
            failure = error
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
    raise failure


async def _connected(loop: asyncio.AbstractEventLoop, family: int, address: object) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, address)  # type: ignore[arg-type]
    except BaseException:
        sock.close()
        raise
    return sock


async def _shake_hands(loop: asyncio.AbstractEventLoop, sock: ssl.SSLSocket) -> None:
    while True:
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            await _ready(loop, loop.add_reader, loop.remove_reader, sock)
        except ssl.SSLWantWriteError:
            await _ready(loop, loop.add_writer, loop.remove_writer, sock)
        else:
            return


async def _ready(
    loop: asyncio.AbstractEventLoop,
    add: Callable[..., object],
    remove: Callable[[int], object],
    sock: ssl.SSLSocket,
) -> None:
    ready = asyncio.Event()
    add(sock.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        remove(sock.fileno())
