"""A watch: lines of JSON as the server sends them, on a connection of its own, that ends when it is told to.

`http.client` cannot go on reading after a time-out, and without one nobody could interrupt it. So the answer is read from
the socket here, in short turns; `Unchunked` takes the transfer coding off (RFC 9112, 7.1).
"""

from __future__ import annotations

import http.client
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from trimtab.terraform.kinds.access import Access

TURN = 0.2
"""Seconds between two looks at whether to go on."""
CONNECT = 10.0
HEAD = 64 << 10
LONGEST = 16 << 20
"""Bytes of one event, at most."""


class Event(NamedTuple):
    type: str  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
    object: dict[str, Any]


class Unchunked:
    """Takes bytes of a chunked body, gives the bytes of the content. ValueError when it is not one."""

    def __init__(self) -> None:
        self._raw = b""
        self._left = 0
        self._ends = False  # the two bytes after a chunk are to come
        self.done = False

    def feed(self, data: bytes) -> bytes:
        self._raw += data
        content = b""
        while self._raw and not self.done:
            if self._left:
                taken, self._raw = self._raw[: self._left], self._raw[self._left :]
                self._left -= len(taken)
                content += taken
                self._ends = not self._left
                continue
            if self._ends:
                if len(self._raw) < 2:
                    break
                self._raw, self._ends = self._raw[2:], False
                continue
            line, found, rest = self._raw.partition(b"\r\n")
            if not found:
                if len(line) > 1024:
                    raise ValueError("the size of a chunk is too long")
                break
            self._left, self._raw = int(line.split(b";")[0], 16), rest
            self.done = self._left == 0
        return content


def watch(access: Access, target: str, *, within: float, cancelled: threading.Event) -> Iterator[Event]:
    """OSError and ValueError when the connection or the answer fails; an answer that is no 200 is one ERROR event."""
    deadline = time.monotonic() + within
    with _connected(access) as connection:
        connection.sendall(_request(access, target))
        turns = _turns(connection, deadline, cancelled)
        code, chunked, left, rest = _head(turns)
        decoder = Unchunked() if chunked else None
        pending = decoder.feed(rest) if decoder else rest
        while True:
            line, found, after = pending.partition(b"\n")
            if found:
                pending = after
                if line.strip():
                    yield _event(line) if code == 200 else Event("ERROR", _document(line))
                continue
            if len(pending) > LONGEST:
                raise ValueError(f"an event of more than {LONGEST} bytes")
            data = None if (decoder.done if decoder else left <= 0) else next(turns, None)
            if data is None:
                if code != 200:
                    yield Event("ERROR", {"code": code, **_document(pending)})
                return
            left -= len(data)
            pending += decoder.feed(data) if decoder else data


def _connected(access: Access) -> socket.socket:
    plain = socket.create_connection((access.host, access.port), timeout=CONNECT)
    if access.tls is None:
        return plain
    try:
        return access.tls.wrap_socket(plain, server_hostname=access.host)
    except BaseException:
        plain.close()
        raise


def _request(access: Access, target: str) -> bytes:
    host = f"[{access.host}]" if ":" in access.host else access.host
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}:{access.port}", "Accept: application/json", "Connection: close"]
    if access.token:
        lines.append(f"Authorization: Bearer {access.token}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _turns(connection: socket.socket, deadline: float, cancelled: threading.Event) -> Iterator[bytes]:
    """What arrives, until the peer closes, the time is up, or we are told to stop."""
    connection.settimeout(TURN)
    while time.monotonic() < deadline and not cancelled.is_set():
        try:
            data = connection.recv(65536)
        except TimeoutError:
            continue
        if not data:
            return
        yield data


def _head(turns: Iterator[bytes]) -> tuple[int, bool, int, bytes]:
    """The code, whether the body is chunked, how much is to come if not, and what came already."""
    raw = b""
    for data in turns:
        raw += data
        head, found, rest = raw.partition(b"\r\n\r\n")
        if found:
            first, *lines = head.decode("latin-1").split("\r\n")
            named = {
                name.strip().lower(): value.strip().lower() for name, _, value in (x.partition(":") for x in lines)
            }
            length = named.get("content-length", "")
            chunked = "chunked" in named.get("transfer-encoding", "")
            left = int(length) - len(rest) if length.isdigit() else sys.maxsize
            return int(first.split()[1]), chunked, left, rest
        if len(raw) > HEAD:
            raise http.client.LineTooLong("header")
    return 200, False, 0, b""  # told to stop before an answer came


def _event(line: bytes) -> Event:
    event = json.loads(line)
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
        raise ValueError("a line of a watch is no event")
    return Event(str(event.get("type")), event["object"])


def _document(raw: bytes) -> dict[str, Any]:
    try:
        document = json.loads(raw)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
