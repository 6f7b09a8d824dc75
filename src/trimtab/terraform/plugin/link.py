"""Bytes to and from one peer, with TLS or without.

One thread reads; any thread writes. OpenSSL's objects must not be used by two threads at once, so TLS runs in memory
(`ssl.MemoryBIO`) under a lock that is never held while the socket waits: a peer that does not read cannot stop us reading.

Writing is in two steps. `put` takes bytes in the order of its calls and never waits. `flush` sends what was put; a flush that
must not wait leaves the rest to whoever is sending just now, who looks again when done.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from typing import Final

HANDSHAKE: Final = 20.0
"""Seconds that a peer has for its TLS handshake, unless said otherwise."""
BACKLOG: Final = 16 << 20
"""Bytes that may wait for a peer that does not read: twice what all threads of a connection put before they wait."""
_CHUNK: Final = 1 << 16


class Broken(Exception):  # noqa: N818
    """The peer is gone, or says what cannot be understood."""


class Link:
    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._queue = bytearray()

    def secure(self, context: ssl.SSLContext, server_name: str | None = None, *, within: float = HANDSHAKE) -> None:
        """The handshake; `server_name` is given by clients. Raises Broken when the peer is not who may connect."""
        tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )
        until = time.monotonic() + within
        try:
            while True:
                try:
                    tls.do_handshake()
                except ssl.SSLWantReadError:
                    self._hurry_until(until)
                    self._send(self._outgoing.read())
                    self._incoming.write(self._socket.recv(_CHUNK) or _end())
                else:
                    self._send(self._outgoing.read())
                    break
            self._socket.settimeout(None)
        except (ssl.SSLError, OSError) as error:
            self._send_last(self._outgoing.read())  # the alert that says why
            raise Broken(f"TLS: {error}") from error
        if tls.selected_alpn_protocol() != "h2":
            raise Broken("TLS: the peer does not speak HTTP/2")
        self._tls = tls

    def _hurry_until(self, until: float) -> None:
        """For the whole of a handshake, not for each of its parts: a byte now and then would hold it open."""
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the handshake took too long")
        self._socket.settimeout(left)

    def read(self) -> bytes:
        """What the peer sent, or b"" at its end."""
        while True:
            if self._tls is not None:
                clear = self._open()
                if clear is not None:
                    return clear
            raw = self._receive()
            if not raw or self._tls is None:
                return raw
            with self._lock:
                self._incoming.write(raw)

    def put(self, data: bytes) -> None:
        with self._lock:
            if self._tls is None:
                self._queue += data
            else:
                try:
                    self._seal(self._tls, data)
                except ssl.SSLError as error:
                    raise Broken(f"TLS: {error}") from error
            if len(self._queue) > BACKLOG:
                raise Broken("the peer does not read")

    def flush(self, *, wait: bool = True) -> None:
        while self._queue:
            if not self._sending.acquire(blocking=wait):
                return
            try:
                with self._lock:
                    data = bytes(self._queue)
                    self._queue.clear()
                self._send(data)
            finally:
                self._sending.release()

    def hurry(self) -> None:
        """From now on a peer that does not read is not waited for."""
        self._socket.settimeout(0.2)

    def close(self) -> None:
        """Ends reads and writes that other threads wait in."""
        with contextlib.suppress(OSError):  # the peer was first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _seal(self, tls: ssl.SSLObject, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[tls.write(left) :]  # one record at a time
        self._queue += self._outgoing.read()

    def _open(self) -> bytes | None:
        """Clear text of what came, b"" when the peer said goodbye, None when more must come."""
        tls = self._tls
        if tls is None:
            return None
        parts = []
        with self._lock:
            try:
                while True:
                    part = tls.read(_CHUNK)
                    if not part:
                        break
                    parts.append(part)
            except ssl.SSLWantReadError:
                if not parts:
                    return None
            except ssl.SSLZeroReturnError:
                pass
            except ssl.SSLError as error:
                raise Broken(f"TLS: {error}") from error
            self._queue += self._outgoing.read()  # answers of TLS itself, such as to a change of keys
        return b"".join(parts)

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(_CHUNK)
        except OSError:
            return b""

    def _send(self, data: bytes) -> None:
        if data:
            try:
                self._socket.sendall(data)
            except OSError as error:
                raise Broken(str(error)) from error

    def _send_last(self, data: bytes) -> None:
        with contextlib.suppress(Broken, OSError):  # it would not have heard it
            self._send(data)


def _end() -> bytes:
    raise Broken("the peer went away during its TLS handshake")
