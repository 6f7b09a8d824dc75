"""How NETCONF messages lie in a stream (RFC 6242): ended by `]]>]]>` in 1.0, in chunks in 1.1. Pure and incremental.

However the bytes are cut into pieces, a decoder gives the same messages. What is not framed as the section says, or is
over the limit, is a BadFraming, and the stream is of no more use then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

LARGEST_MESSAGE = 16 * 1024 * 1024
END = b"]]>]]>"
LARGEST_CHUNK = 4294967295
"""RFC 6242 §4.2."""
_LONGEST_HEADER = len(f"\n#{LARGEST_CHUNK}\n")


class BadFraming(ValueError):  # noqa: N818 - it reads as what it is
    """The stream is not framed as NETCONF is. The message says how."""


class Decoder(Protocol):
    """Takes bytes as they come, gives the messages that they complete."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """BadFraming. Messages that were complete before the fault are given first."""
        ...

    def rest(self) -> bytes:
        """What came after the last complete message: for a decoder that takes over."""
        ...


class EndOfMessage:
    """The framing of base 1.0, and of every hello (§4.3)."""

    def __init__(self, limit: int = LARGEST_MESSAGE) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._buffer += data
        while (end := self._buffer.find(END, self._searched)) >= 0:
            message = bytes(self._buffer[:end])
            del self._buffer[: end + len(END)]
            self._searched = 0
            _bound(len(message), self._limit)
            yield message
        self._searched = max(0, len(self._buffer) - len(END) + 1)
        _bound(self._searched, self._limit)

    def rest(self) -> bytes:
        return bytes(self._buffer)


class Chunked:
    r"""The framing of base 1.1 (§4.2): `\n#<size>\n<bytes>` one or more times, then `\n##\n`."""

    def __init__(self, limit: int = LARGEST_MESSAGE) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._message = bytearray()
        self._left = 0  # bytes of the current chunk that are still to come
        self._chunks = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._buffer += data
        while self._buffer:
            if self._left:
                self._take()
            elif (size := self._header()) is None:
                return
            elif size:
                self._left = size
                self._chunks += 1
                _bound(len(self._message) + size, self._limit)
            else:
                if not self._chunks:
                    raise BadFraming("a message ends without a chunk")
                message, self._message, self._chunks = bytes(self._message), bytearray(), 0
                yield message

    def rest(self) -> bytes:
        return bytes(self._buffer)

    def _take(self) -> None:
        piece = self._buffer[: self._left]
        self._message += piece
        self._left -= len(piece)
        del self._buffer[: len(piece)]

    def _header(self) -> int | None:
        """The size of the chunk that begins, 0 at the end of the message, None when more bytes are needed."""
        start = bytes(self._buffer[:_LONGEST_HEADER])
        if not b"\n#".startswith(start[:2]):
            raise BadFraming(f"a chunk begins with {start[:8]!r}")
        end = start.find(b"\n", 2)
        digits = start[2:] if end < 0 else start[2:end]
        if digits[:1] == b"#":
            if len(digits) > 1:
                raise BadFraming("the end of a message is longer than it may be")
        elif digits and not (digits.isdigit() and digits[:1] != b"0" and int(digits) <= LARGEST_CHUNK):
            raise BadFraming(f"a chunk's size is {digits!r}")
        if end < 0:
            return None
        if not digits:
            raise BadFraming("a chunk has no size")
        del self._buffer[: end + 1]
        return 0 if digits == b"#" else int(digits)


def ended(message: bytes) -> bytes:
    """A message in the framing of 1.0."""
    return message + END


def chunked(message: bytes) -> bytes:
    """A message in the framing of 1.1."""
    return b"\n#%d\n%b\n##\n" % (len(message), message)


def _bound(size: int, limit: int) -> None:
    if size > limit:
        raise BadFraming(f"a message is larger than {limit} bytes")
