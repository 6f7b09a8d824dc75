"""One HTTP/2 connection, at either end: the `h2` package's state machine, a link, and the rules for threads.

One thread reads. It gives what it reads to h2 and what comes out to `event`, which must not wait. Any thread writes, as far as
the peer's flow control lets it; when it does not, the writer waits for the reader to see a larger window. All of h2 is used
under one lock, which is never held over input or output. When the peer breaks the protocol or goes, `closed` becomes true and
all who wait are woken.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from trimtab.terraform.plugin.link import Broken, Link

Headers = list[tuple[str, str]]

STREAMS: Final = 1000
WINDOW: Final = 1 << 20
"""What a peer may send ahead on one stream."""
CONNECTION_WINDOW: Final = 16 << 20
_BATCH: Final = 1 << 15
"""What a thread puts before it sends; see the link's BACKLOG."""


def text(headers: Iterable[tuple[bytes | str, bytes | str]] | None) -> dict[str, str]:
    """Headers are bytes to HTTP/2; what is no text in them is not worth losing the connection for."""
    return {_text(name): _text(value) for name, value in headers or ()}


def _text(data: bytes | str) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "replace")


class Session(ABC):
    def __init__(self, link: Link, *, client_side: bool) -> None:
        self.link = link
        self.changed = threading.Condition()
        """Guards h2 and all that is said of streams; told when windows or streams change."""
        self.closed = False
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=client_side, header_encoding=None, validate_outbound_headers=False)
        )
        codes = h2.settings.SettingCodes
        values = {
            codes.MAX_CONCURRENT_STREAMS: STREAMS,
            codes.INITIAL_WINDOW_SIZE: WINDOW,
            codes.MAX_HEADER_LIST_SIZE: 1 << 16,
        }
        if client_side:
            values[codes.ENABLE_PUSH] = 0
        self.h2.local_settings = h2.settings.Settings(client=client_side, initial_values=values)

    @abstractmethod
    def event(self, event: h2.events.Event) -> None:
        """Called by the reader under the lock."""

    @abstractmethod
    def wants(self, stream: int) -> bool:
        """Whether anyone still cares for the stream. Called under the lock."""

    def begin(self) -> None:
        with self.changed:
            self.h2.initiate_connection()
            self.h2.increment_flow_control_window(CONNECTION_WINDOW - 65535)
            self.queue()
        self.link.flush()

    def read(self) -> None:
        """Until the peer's end, or ours."""
        with contextlib.suppress(Broken):  # the peer is gone; that is how connections end
            while data := self.link.read():
                self.take(data)
                self.link.flush(wait=False)

    def take(self, data: bytes) -> None:
        with self.changed:
            try:
                for event in self.h2.receive_data(data):
                    if isinstance(event, h2.events.ConnectionTerminated):
                        raise Broken("the peer said goodbye")  # h2 sends no more after it
                    self.event(event)
            except h2.exceptions.ProtocolError as error:
                self.queue()  # GOAWAY, with the reason
                self.link.flush(wait=False)
                raise Broken(str(error)) from error
            self.queue()

    def send_headers(self, stream: int, headers: Headers, *, end: bool) -> None:
        """Under the lock; the caller queues and flushes."""
        self.demand(stream)
        try:
            self.h2.send_headers(stream, headers, end_stream=end)
        except h2.exceptions.ProtocolError as error:
            raise Broken(str(error)) from error

    def send_some(self, stream: int, body: bytes, at: int, *, end: bool) -> int:
        """Sends on from `at` what the peer takes now, and says how far that was. Under the lock, as above."""
        limit = min(len(body), at + min(self._room(stream), _BATCH))
        try:
            while at < limit:
                until = min(limit, at + self.h2.max_outbound_frame_size)
                self.h2.send_data(stream, body[at:until], end_stream=end and until == len(body))
                at = until
        except h2.exceptions.ProtocolError as error:
            raise Broken(str(error)) from error
        return at

    def send_rest(self, stream: int, body: bytes, at: int, *, end: bool) -> None:
        """Waits while the peer takes no more. Raises Broken when nobody wants it any longer."""
        while at < len(body):
            with self.changed:
                while not self._room(stream):
                    self.changed.wait()
                at = self.send_some(stream, body, at, end=end)
                self.queue()
            self.link.flush()

    def queue(self) -> None:
        self.link.put(self.h2.data_to_send())

    def demand(self, stream: int) -> None:
        if self.closed or not self.wants(stream):
            raise Broken("the other side is gone or has given up")

    def acknowledge(self, event: h2.events.DataReceived) -> None:
        """Lets the peer send as much again."""
        with contextlib.suppress(h2.exceptions.StreamClosedError):  # then h2 has given the connection its part back
            if event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id or 0)

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self.link.close()

    def _room(self, stream: int) -> int:
        self.demand(stream)
        try:
            return max(0, self.h2.local_flow_control_window(stream))
        except h2.exceptions.ProtocolError as error:
            raise Broken(str(error)) from error
