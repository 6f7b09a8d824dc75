"""Bytes to a server and replies from it, over TLS, with nothing in between that would mend them."""

import contextlib
import re
import socket
import ssl
import time
from collections.abc import Iterable
from types import TracebackType
from typing import NamedTuple, Self

PATIENCE = 8.0  # seconds in which a whole request must be answered, or its connection closed

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n")


class Reply(NamedTuple):
    """An answer; `body` is what has come of it when it is a stream."""

    code: int
    head: bytes
    body: bytes


class Silence(AssertionError):  # noqa: N818 - it reads as what happened
    """Neither an answer nor an end of the connection in time."""


class Line:
    """One connection."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        plain = socket.create_connection(address, timeout=PATIENCE)
        self._socket = context.wrap_socket(plain, server_hostname=address[0], suppress_ragged_eofs=True)
        self._buffer = b""
        self.ended = False

    def send(self, *pieces: bytes) -> None:
        """Sends; a peer that hangs up meanwhile is no error."""
        with contextlib.suppress(OSError):
            for piece in pieces:
                self._socket.sendall(piece)

    def finish(self) -> None:
        """Says that nothing more will come."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_WR)

    def reply(self, *, to: str = "GET", within: float = PATIENCE) -> Reply | None:
        """The next answer; None when the connection ended first."""
        deadline = time.monotonic() + within
        while (match := _STATUS.match(self._buffer)) is None or b"\r\n\r\n" not in self._buffer:
            assert match is not None or len(self._buffer) < 4096, f"no HTTP: {self._buffer[:200]!r}"
            if not self._more(deadline):
                assert not self._buffer, f"cut off: {self._buffer[:200]!r}"
                return None
        head, _, rest = self._buffer.partition(b"\r\n\r\n")
        code = int(match[1])
        if code == 100:
            self._buffer = rest
            return self.reply(to=to, within=deadline - time.monotonic())
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if b"transfer-encoding" in lines:
            self.ended = True  # a stream goes on for as long as it likes
            return Reply(code, head, rest)
        length = 0 if to == "HEAD" or code == 304 else int(lines[b"content-length"])
        while len(rest) < length:
            assert self._more(deadline), f"a body was cut off after {len(rest)} of {length} bytes"
            rest = self._buffer.partition(b"\r\n\r\n")[2]
        self._buffer = rest[length:]
        self.ended = self.ended or lines.get(b"connection") == b"close"
        return Reply(code, head, rest[:length])

    def ends(self, within: float = PATIENCE) -> bool:
        """Whether the server closes the connection in time."""
        deadline = time.monotonic() + within
        with contextlib.suppress(Silence):
            while self._more(deadline):
                pass
            return True
        return False

    def _more(self, deadline: float) -> bool:
        self._socket.settimeout(max(deadline - time.monotonic(), 0.01))
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            raise Silence("the server is silent") from None
        except OSError:
            data = b""
        self._buffer += data
        self.ended = self.ended or not data
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()


def written(method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes | None) -> bytes:
    """A request as it goes over the wire, whatever is in it."""
    lines = [b"%b %b HTTP/1.1" % (method.encode(), target), b"Host: localhost"]
    lines += [b"%b: %b" % header for header in headers]
    if body is not None:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")
