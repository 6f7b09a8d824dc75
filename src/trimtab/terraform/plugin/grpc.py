"""gRPC over HTTP/2: one message in, one message out, and a status.

A frame is a byte that says whether it is compressed, four bytes of length, and the message. The status comes in trailers.
Requests are refused as soon as they announce too much, and large ones when there are too many of them at once, so that what a
peer can make us hold is bounded.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Final

from trimtab.terraform.plugin.http2 import Stream
from trimtab.terraform.plugin.link import Broken
from trimtab.terraform.plugin.session import Headers
from trimtab.terraform.protocol.contract import InvalidRequest, Unimplemented

OK, UNKNOWN, INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = (
    0,
    2,
    3,
    5,
    8,
    12,
    13,
    14,
)

LARGEST: Final = 256 << 20
"""The largest message that Terraform's own libraries take."""

SMALL: Final = 1 << 20
"""Requests up to this size are taken however many there are."""

_HEADERS: Final[Headers] = [(":status", "200"), ("content-type", "application/grpc")]
_DONE: Final[Headers] = [("grpc-status", "0")]


class Status(Exception):  # noqa: N818
    """Ends a call with a status of gRPC's own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def frame(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def unframe(body: bytes | bytearray) -> bytes:
    """The one message of a unary call."""
    if len(body) < 5:
        raise InvalidRequest("the call has no message")
    if body[0]:
        raise Status(UNIMPLEMENTED, "compressed messages are not taken")
    if int.from_bytes(body[1:5], "big") != len(body) - 5:
        raise InvalidRequest("the call must have exactly one whole message")
    return bytes(memoryview(body)[5:])


class Service:
    """Routes calls. `calls` are made in threads; `held` paths are streams on which nothing is ever said."""

    def __init__(
        self,
        calls: Callable[[str, bytes], bytes],
        *,
        held: Mapping[str, bool],
        after: Callable[[str], None] = lambda path: None,
        largest: int = LARGEST,
    ) -> None:
        self._calls = calls
        self._held = held
        """Whether a held stream ends when the client has said its part."""
        self._after = after
        self._largest = largest

    def began(self, stream: Stream) -> None:
        if stream.headers.get(":method") != "POST":
            stream.end([(":status", "405")])
        elif not stream.headers.get("content-type", "").startswith("application/grpc"):
            stream.end([(":status", "415")])
        elif stream.path in self._held:
            stream.open(_HEADERS)

    def grew(self, stream: Stream) -> None:
        body = stream.body
        if stream.path in self._held:
            body.clear()
            return
        announced = int.from_bytes(body[1:5], "big") if len(body) >= 5 else 0
        if max(announced, len(body) - 5) > self._largest:
            stream.end(_failed(RESOURCE_EXHAUSTED, f"a message may have {self._largest} bytes at most"))
        elif len(body) > SMALL and stream.crowd > 2 * self._largest:
            stream.end(_failed(RESOURCE_EXHAUSTED, "too many large messages at once"))

    def ended(self, stream: Stream) -> None:
        ends = self._held.get(stream.path)
        if ends:
            stream.end(_DONE)
        elif ends is None:
            stream.run(lambda: self._answer(stream))

    def _answer(self, stream: Stream) -> None:
        if not stream.alive:
            return  # the client has given up before we began
        path = stream.path
        try:
            body = unframe(stream.body)
            stream.body.clear()
            answer = self._calls(path, body)
        except Unimplemented:
            stream.end(_failed(UNIMPLEMENTED, f"there is no {path}"))
        except InvalidRequest as error:
            stream.end(_failed(INVALID_ARGUMENT, str(error)))
        except Status as error:
            stream.end(_failed(error.code, str(error)))
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            stream.end(_failed(INTERNAL, f"{type(error).__name__}: {error}"))
        else:
            with contextlib.suppress(Broken):  # the client has gone; there is nobody to tell
                stream.answer(_HEADERS, frame(answer), _DONE)
        self._after(path)


def _failed(code: int, message: str) -> Headers:
    return [*_HEADERS, ("grpc-status", str(code)), ("grpc-message", percent(message[:4000]))]


def percent(text: str) -> str:
    """The form that gRPC wants for messages in headers: printable ASCII, all else as %XX of its UTF-8."""
    raw = text.encode("utf-8", "replace")
    return "".join(chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x25 else f"%{byte:02X}" for byte in raw)
