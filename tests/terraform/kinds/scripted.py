"""A server on loopback that answers as a test says: with codes, with silence, by hanging up."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

Reply = Callable[[socket.socket, str], None]
"""Does something with the connection, given the request's first line."""


def answer(code: int, body: Any = None, **headers: str) -> Reply:
    def reply(connection: socket.socket, _: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        lines = [f"HTTP/1.1 {code} Told", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    return reply


def stream(*pieces: bytes, end: bool = True) -> Reply:
    """A chunked answer, each piece a chunk; one that does not end leaves the connection open."""

    def reply(connection: socket.socket, _: str) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if end:
            connection.sendall(b"0\r\n\r\n")

    return reply


def hang_up(connection: socket.socket, _: str) -> None:
    connection.shutdown(socket.SHUT_RDWR)


class Server:
    """Answers requests in the order of the script; the last answer is for all that come after."""

    def __init__(self, *script: Reply) -> None:
        self.requests: list[str] = []
        self._script = list(script)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            raw = b""
            while data := connection.recv(65536):
                raw += data
                head, found, rest = raw.partition(b"\r\n\r\n")
                length = next(
                    (int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-l")), 0
                )
                if not found or len(rest) < length:
                    continue
                raw = rest[length:]
                with self._lock:
                    line = head.split(b"\r\n")[0].decode()
                    self.requests.append(line)
                    reply = self._script.pop(0) if len(self._script) > 1 else self._script[0]
                reply(connection, line)

    @contextlib.contextmanager
    def running(self) -> Iterator[Server]:
        accepting = threading.Thread(target=self._accept)
        accepting.start()
        try:
            yield self
        finally:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            accepting.join()
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()
            for thread in self._threads:
                thread.join()


@contextlib.contextmanager
def scripted(*script: Reply) -> Iterator[Server]:
    with Server(*script).running() as server:
        yield server
