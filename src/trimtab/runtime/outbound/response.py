"""An answer, whose body is never taken in beyond a bound.

What was compressed because we offered it is decompressed here, a piece at a time, and counts as what it becomes: a small
body that unpacks into a large one is found out before it is there.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any

import aiohttp
import orjson

from trimtab.runtime.outbound.errors import (
    NotAllowed,
    OutboundError,
    TimedOut,
    TlsFailed,
    TooLarge,
    Unreachable,
    Unreadable,
    shown,
)

PIECE = 64 * 1024


class Response:
    """Status and headers of an answer; the body is read when asked for, once."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        *,
        method: str,
        unpack: bool,
        max_bytes: int,
        retry_after: float | None,
    ) -> None:
        self.method = method
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.url = str(response.url)
        self.retry_after = retry_after
        self._response = response
        self._unpack = unpack and response.headers.get("Content-Encoding", "").strip().lower() in ("gzip", "x-gzip")
        self._max_bytes = max_bytes
        self._body: bytes | None = None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    async def read(self, max_bytes: int | None = None) -> bytes:
        """The whole body. TooLarge when it is larger than `max_bytes`."""
        if self._body is None:
            pieces = [piece async for piece in self.stream(max_bytes)]
            self._body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return self._body

    async def json(self, max_bytes: int | None = None) -> Any:
        """The body as JSON. A body of megabytes is better read in a worker process."""
        body = await self.read(max_bytes)
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError:
            raise Unreadable(self.method, self.url, "the answer is no JSON") from None

    async def stream(self, max_bytes: int | None = None) -> AsyncGenerator[bytes, None]:
        """The body in pieces. TooLarge at the piece that goes beyond `max_bytes`."""
        if self._body is not None:
            yield self._body
            return
        most = self._max_bytes if max_bytes is None else max_bytes
        announced = self._response.content_length
        if announced is not None and announced > most and self.method != "HEAD":
            raise self._too_large(most)
        taken = came = 0
        unpacker = _Unpacker() if self._unpack else None
        try:
            while chunk := await self._response.content.readany():
                came += len(chunk)
                if came > most + PIECE:  # compressed bytes that come to nothing
                    raise self._too_large(most)
                for piece in (chunk,) if unpacker is None else unpacker.feed(chunk):
                    taken += len(piece)
                    if taken > most:
                        raise self._too_large(most)
                    yield piece
                    if unpacker is not None:
                        await asyncio.sleep(0)  # the next piece may be there already, and the next
        except zlib.error:
            raise Unreadable(self.method, self.url, "the answer is no gzip, as it says") from None
        except (TimeoutError, aiohttp.ClientError, OSError) as raised:
            raise failed(raised, self.method, self.url) from None
        if unpacker is not None and came and not unpacker.complete:
            raise Unreachable(self.method, self.url, "the answer broke off", sent=True)

    def close(self) -> None:
        """The connection is kept when the body was read to its end."""
        if self._response.content.is_eof():
            self._response.release()
            return
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()  # without a goodbye that a hung peer would not answer
        self._response.close()

    def _too_large(self, most: int) -> TooLarge:
        return TooLarge(self.method, self.url, f"the answer is over {most} bytes")

    def __repr__(self) -> str:
        return f"Response({self.method} {shown(self.url)}: {self.status})"


class _Unpacker:
    """gzip, of one member or more, to pieces of a bounded size."""

    def __init__(self) -> None:
        self._member = _member()
        self.complete = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            if self.complete:
                self._member, self.complete = _member(), False
            piece = self._member.decompress(chunk, PIECE)
            self.complete = self._member.eof
            chunk = self._member.unused_data if self.complete else self._member.unconsumed_tail
            if piece:
                yield piece


def _member() -> zlib._Decompress:
    return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)


def failed(raised: Exception, method: str, url: str) -> OutboundError:
    """An error of aiohttp as one of ours."""
    if isinstance(raised, aiohttp.ClientConnectorCertificateError):
        problem = raised.certificate_error
        why = getattr(problem, "verify_message", "") or type(problem).__name__
        return TlsFailed(method, url, f"its certificate is not trusted: {why}")
    if isinstance(raised, aiohttp.ClientSSLError | ssl.SSLError):
        return TlsFailed(method, url, f"no TLS came about: {_tls_reason(raised)}")
    if isinstance(raised, aiohttp.ClientConnectorError):
        return Unreachable(method, url, f"it does not answer: {_why(raised.os_error)}", sent=False)
    if isinstance(raised, aiohttp.ConnectionTimeoutError):
        return TimedOut(method, url, "no connection came about in time", sent=False, final=False)
    if isinstance(raised, aiohttp.ServerTimeoutError):
        return TimedOut(method, url, "it fell silent", sent=True, final=False)
    if isinstance(raised, TimeoutError):
        return TimedOut(method, url, "the time for it is over", sent=True, final=True)
    if isinstance(raised, aiohttp.InvalidURL):
        return NotAllowed(method, url, "it is no valid URL")
    if isinstance(raised, aiohttp.ClientResponseError):
        return Unreadable(method, url, f"the answer is no HTTP ({type(raised).__name__})")
    return Unreachable(method, url, f"the connection broke ({type(raised).__name__})", sent=True)


def _why(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno and error.errno > 0 else (error.strerror or str(error))


def _tls_reason(raised: Exception) -> str:
    problem = getattr(raised, "os_error", raised)
    return str(getattr(problem, "reason", None) or type(problem).__name__)
