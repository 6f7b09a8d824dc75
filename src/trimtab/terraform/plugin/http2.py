"""The server's side of an HTTP/2 connection: requests to a handler, answers to the peer.

A peer that breaks the protocol, stops reading or dies loses its own connection and nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

import h2.errors
import h2.events
import h2.exceptions

from trimtab.terraform.plugin.link import Broken, Link
from trimtab.terraform.plugin.pool import Pool
from trimtab.terraform.plugin.session import Headers, Session, text


class Handler(Protocol):
    """Called by the thread that reads, so none of these may wait."""

    def began(self, stream: Stream) -> None: ...
    def grew(self, stream: Stream) -> None: ...
    def ended(self, stream: Stream) -> None: ...


class Stream:
    """One request and its answer. `body` holds what has come of the request."""

    __slots__ = ("_connection", "body", "headers", "id", "refused")

    def __init__(self, connection: Connection, stream_id: int, headers: dict[str, str]) -> None:
        self._connection = connection
        self.id = stream_id
        self.headers = headers
        self.body = bytearray()
        self.refused = False

    @property
    def path(self) -> str:
        return self.headers.get(":path", "")

    @property
    def alive(self) -> bool:
        return self._connection.wants(self.id)

    @property
    def crowd(self) -> int:
        """Bytes that this connection holds of all its requests."""
        return self._connection.held()

    def run(self, work: Callable[[], None]) -> None:
        """In a thread of the connection's. Returns at once."""
        self._connection.pool.run(work)

    def answer(self, headers: Headers, body: bytes, trailers: Headers) -> None:
        """Waits while the peer takes no more. Raises Broken when the peer no longer wants it."""
        self._connection.answer(self, headers, body, trailers)

    def open(self, headers: Headers) -> None:
        """Begins an answer that will end some other time."""
        with contextlib.suppress(Broken):  # nobody is left to be told
            self._connection.send(self, headers, end=False, wait=False)

    def end(self, headers: Headers) -> None:
        """An answer without a body, or the end of an open one. Whatever else comes is not listened to."""
        self.refused = True
        self.body.clear()
        with contextlib.suppress(Broken):
            self._connection.send(self, headers, end=True, wait=False)


class Connection(Session):
    def __init__(self, link: Link, handler: Handler) -> None:
        super().__init__(link, client_side=False)
        self.pool = Pool()
        self._handler = handler
        self._streams: dict[int, Stream] = {}
        self._calls: list[tuple[Callable[[Stream], None], Stream]] = []

    def run(self) -> None:
        try:
            with contextlib.suppress(Broken):
                self.begin()
                self.read()
        finally:
            self.close()

    def close(self) -> None:
        super().close()
        self.pool.close()

    def goodbye(self) -> None:
        """Says that no more requests are taken."""
        with self.changed:
            self.h2.close_connection()
            self.queue()
        self.link.flush(wait=False)

    def held(self) -> int:
        with self.changed:
            return sum(len(stream.body) for stream in self._streams.values())

    def wants(self, stream: int) -> bool:
        return stream in self._streams and not self.closed

    def answer(self, stream: Stream, headers: Headers, body: bytes, trailers: Headers) -> None:
        """In one go when the peer takes it all, as it nearly always does."""
        with self.changed:
            self.send_headers(stream.id, headers, end=False)
            at = self.send_some(stream.id, body, 0, end=False)
            if at == len(body):
                self._finish(stream, trailers)
            self.queue()
        self.link.flush()
        if at < len(body):
            self.send_rest(stream.id, body, at, end=False)
            self.send(stream, trailers, end=True)

    def send(self, stream: Stream, headers: Headers, *, end: bool, wait: bool = True) -> None:
        with self.changed:
            if end:
                self._finish(stream, headers)
            else:
                self.send_headers(stream.id, headers, end=False)
            self.queue()
        self.link.flush(wait=wait)

    def _finish(self, stream: Stream, headers: Headers) -> None:
        self.send_headers(stream.id, headers, end=True)
        del self._streams[stream.id]
        if stream.refused:
            self._stop_listening(stream.id)

    def take(self, data: bytes) -> None:
        super().take(data)
        calls, self._calls = self._calls, []
        for call, stream in calls:  # without the lock: a handler may answer
            if not stream.refused:
                call(stream)

    def event(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived(stream_id=int(number), headers=headers):
                stream = Stream(self, number, text(headers))
                self._streams[number] = stream
                self._calls.append((self._handler.began, stream))
            case h2.events.DataReceived(stream_id=int(number), data=data):
                self.acknowledge(event)
                known = self._streams.get(number)
                if known is not None and not known.refused:
                    known.body += data or b""
                    self._calls.append((self._handler.grew, known))
            case h2.events.StreamEnded(stream_id=int(number)) if number in self._streams:
                self._calls.append((self._handler.ended, self._streams[number]))
            case h2.events.StreamReset(stream_id=int(number)):
                self._streams.pop(number, None)
                self.changed.notify_all()
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                self.changed.notify_all()
            case _:
                pass  # h2 answers pings and settings by itself

    def _stop_listening(self, stream: int) -> None:
        """After a refusal the rest of the request is of no use: RFC 9113 §8.1 has NO_ERROR for it."""
        with contextlib.suppress(h2.exceptions.StreamClosedError):  # it had all come already
            self.h2.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)
