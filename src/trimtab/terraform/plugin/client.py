"""The client's side: gRPC calls to a provider, from many threads over one connection."""

from __future__ import annotations

import threading
import urllib.parse
from collections.abc import Callable

import h2.errors
import h2.events
import h2.exceptions

from trimtab.terraform.plugin.grpc import LARGEST, OK, UNAVAILABLE, UNKNOWN, Status, frame, unframe
from trimtab.terraform.plugin.link import Broken, Link
from trimtab.terraform.plugin.session import Session, text


class _Reply:
    __slots__ = ("body", "headers", "heard", "over")

    def __init__(self, heard: Callable[[bytes], None] | None = None) -> None:
        self.heard = heard
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.over = False


class Client(Session):
    """Raises Status for whatever the other side, or its end, makes of a call."""

    def __init__(self, link: Link, *, largest: int = LARGEST) -> None:
        super().__init__(link, client_side=True)
        self._largest = largest
        self._replies: dict[int, _Reply] = {}
        self.begin()
        threading.Thread(target=self._run, name="replies", daemon=True).start()

    def call(self, path: str, message: bytes) -> bytes:
        reply, body = _Reply(), frame(message)
        try:
            with self.changed:
                number = self._open(path, reply)
                at = self.send_some(number, body, 0, end=True)
                self.queue()
            try:
                self.link.flush()
                self.send_rest(number, body, at, end=True)
                with self.changed:
                    while not reply.over:
                        self.demand(number)
                        self.changed.wait()
            finally:
                with self.changed:
                    self._replies.pop(number, None)
        except Broken as error:
            if not reply.over:  # else it was answered before it was heard out
                raise Status(UNAVAILABLE, str(error)) from error
        return _result(reply)

    def listen(self, path: str, heard: Callable[[bytes], None]) -> None:
        """Opens a stream of messages, which `heard` gets in the thread that reads. It ends with the connection."""
        with self.changed:
            number = self._open(path, _Reply(heard))
            self.send_some(number, frame(b""), 0, end=True)
            self.queue()
        self.link.flush()

    def wants(self, stream: int) -> bool:
        reply = self._replies.get(stream)
        return reply is not None and not reply.over

    def event(self, event: h2.events.Event) -> None:
        number = getattr(event, "stream_id", None)
        reply = self._replies.get(number or 0)
        match event:
            case h2.events.DataReceived(data=data):
                self.acknowledge(event)
                if reply is not None:
                    reply.body += data or b""
                    if reply.heard is not None:
                        _hear(reply, reply.heard)
                    if len(reply.body) > self._largest + 5:
                        self.h2.reset_stream(number or 0, h2.errors.ErrorCodes.CANCEL)
                        reply.over = True
            case h2.events.ResponseReceived(headers=headers) | h2.events.TrailersReceived(headers=headers):
                if reply is not None:
                    reply.headers.update(text(headers))
            case h2.events.StreamEnded() | h2.events.StreamReset() if reply is not None:
                reply.over = True
            case _:
                pass
        self.changed.notify_all()

    def _open(self, path: str, reply: _Reply) -> int:
        while not self.closed and self.h2.open_outbound_streams >= self.h2.remote_settings.max_concurrent_streams:
            self.changed.wait()
        if self.closed:
            raise Broken("the other side is gone")
        try:
            number = self.h2.get_next_available_stream_id()
        except h2.exceptions.NoAvailableStreamIDError as error:
            raise Broken(str(error)) from error
        self._replies[number] = reply
        self.send_headers(
            number,
            [
                (":method", "POST"),
                (":scheme", "https"),
                (":path", path),
                (":authority", "localhost"),
                ("content-type", "application/grpc"),
                ("te", "trailers"),
            ],
            end=False,
        )
        return number

    def _run(self) -> None:
        try:
            self.read()
        finally:
            self.close()


def _hear(reply: _Reply, heard: Callable[[bytes], None]) -> None:
    """Takes whole messages off what came."""
    body = reply.body
    while len(body) >= 5 and len(body) >= (end := 5 + int.from_bytes(body[1:5], "big")):
        heard(bytes(body[5:end]))
        del body[:end]


def _result(reply: _Reply) -> bytes:
    code = reply.headers.get("grpc-status", "")
    if not code.isdecimal():
        raise Status(UNKNOWN, f"no status came, but {reply.headers.get(':status', 'nothing')}")
    if int(code) != OK:
        raise Status(int(code), urllib.parse.unquote(reply.headers.get("grpc-message", "")))
    return unframe(reply.body)
