"""Answers of HTTP that can be given up: read in short turns, with a look between two of them at whether to go on.

A write is given up later than a read: as long as its answer may come, it can be told whether it was carried out.
"""

from __future__ import annotations

import functools
import http.client
import io
import socket
import threading
import time
from typing import Any

from trimtab.terraform.kinds.watching import CONNECT, TURN

SILENCE = 60.0
"""Seconds that a server may be silent, before an answer and in the middle of one."""
GRACE = 5.0
"""Seconds more that the answer to a write may take when Terraform was interrupted."""


class Interrupted(Exception):  # noqa: N818 - it is what happened to us
    """Terraform was interrupted while we waited for a server; `doubtful` when that may do what it was asked."""

    doubtful = False


def answered(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    data: bytes | None,
    headers: dict[str, str],
    cancelled: threading.Event,
) -> http.client.HTTPResponse:
    """The head of the answer; its body is read with the same patience."""
    if connection.sock is None:
        connection.timeout = CONNECT
        connection.connect()
    connection.sock.settimeout(SILENCE)
    connection.request(method, target, body=data, headers=headers)
    connection.sock.settimeout(TURN)
    grace = 0.0 if method == "GET" else GRACE
    connection.response_class = functools.partial(_Answer, cancelled=cancelled, grace=grace)  # type: ignore[assignment]
    return connection.getresponse()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, cancelled: threading.Event, grace: float, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(_Turns(sock, self.fp, cancelled, grace))


class _Turns(io.RawIOBase):
    """The socket as a file. What `http.client` made of it is kept, since it keeps the socket open."""

    def __init__(self, sock: socket.socket, held: Any, cancelled: threading.Event, grace: float) -> None:
        self._sock, self._held = sock, held
        self._cancelled, self._grace = cancelled, grace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        began = time.monotonic()
        interrupted = 0.0
        while True:
            try:
                return self._sock.recv_into(buffer)
            except TimeoutError:
                now = time.monotonic()
                if self._cancelled.is_set():
                    interrupted = interrupted or now
                    if now - interrupted >= self._grace:
                        doubt = ": whether it did what it was asked is not known" if self._grace else ""
                        interruption = Interrupted(f"interrupted while the server was silent{doubt}")
                        interruption.doubtful = bool(self._grace)
                        raise interruption from None
                if now - began >= SILENCE:
                    raise

    def close(self) -> None:
        self._held.close()
        super().close()
