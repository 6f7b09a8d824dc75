"""HTTP/1.1 to one server, over TCP, TLS or a unix socket: connections that are kept, one request at a time on each.

It is small because the other side is always a Kubernetes API: no redirects, cookies or proxies. A
request costs about a third of what it does with a client for everything; the benchmark of the runtime decided.

Guarantees: bodies and heads are bounded; a connection on which anything went wrong, or whose answer was not read to its
end, is never used again; a reader that is slow makes the server wait.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable

import httptools

from trimtab.client.sockets import connect

KEPT = 15.0  # seconds that an idle connection is used again; servers close them later than that
MAX_HEAD = 64 * 1024
HIGH_WATER = 1024 * 1024
RESOLUTION = 0.002  # seconds; a loop's timers may be as coarse


_BOUNDS = frozenset({b"content-length", b"transfer-encoding"})
_ASKED_FOR = frozenset({b"content-encoding", b"retry-after", b"warning"}) | _BOUNDS


class NotConnected(ConnectionError):  # noqa: N818 - it reads as what happened
    """No connection came about: nothing was sent."""


class Broken(ConnectionError):  # noqa: N818
    """The connection ended, or what came is no HTTP, after something was sent."""


class TooLong(Exception):  # noqa: N818
    """The body is over its limit."""


class Answer:
    """The head of an answer, and its body: whole, or as it comes."""

    __slots__ = ("_connection", "body", "code", "headers")

    def __init__(
        self, code: int, headers: list[tuple[bytes, bytes]], body: bytes, connection: Connection | None
    ) -> None:
        self.code = code
        self.headers = headers
        self.body = body
        self._connection = connection

    def values(self, name: bytes) -> list[str]:
        """Of all headers of a name, which is in lower case."""
        return [value.decode("latin-1") for key, value in self.headers if key == name]

    async def chunks(self, inactivity: float) -> AsyncGenerator[bytes, None]:
        """The body as it comes. TimeoutError when nothing comes for so many seconds. The connection ends with it."""
        assert self._connection is not None  # noqa: S101 - it was asked for as a stream
        try:
            while chunk := await self._connection.chunk(inactivity):
                yield chunk
        finally:
            self._connection.abort()


class Wire:
    """All connections to one server. `target` is (host, port), or the path of a unix socket."""

    def __init__(
        self, target: tuple[str, int] | str, tls: ssl.SSLContext | None, server_name: str, connect_timeout: float
    ) -> None:
        self._target = target
        self._tls = tls
        self._server_name = server_name
        self._connect_timeout = connect_timeout
        self._idle: deque[Connection] = deque()
        self._all: set[Connection] = set()

    async def ask(
        self, request: bytes, *, stream: bool, limit: int, within: float, more: AsyncIterable[bytes] | None = None
    ) -> Answer:
        """Send a request and read its answer; of a stream with a good code only the head. TimeoutError.

        `more` is sent after the request, as it comes and as the server takes it, until there is an answer."""
        connection = self._kept() or await self._connected()
        try:
            return await connection.ask(request, stream=stream, limit=limit, within=within, more=more)
        except BaseException:
            connection.abort()
            raise
        finally:
            if connection.reusable:
                self._idle.append(connection)

    def close(self) -> None:
        for connection in tuple(self._all):
            connection.abort()
        self._idle.clear()

    def _kept(self) -> Connection | None:
        """The one used last: the others may grow old and go."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and now - connection.idle_since < KEPT:
                return connection
            connection.abort()
        return None

    async def _connected(self) -> Connection:
        loop = asyncio.get_running_loop()
        made = Connection(loop, self._all)
        try:
            async with asyncio.timeout(self._connect_timeout):
                host = "" if isinstance(self._target, str) else self._target[0]
                await connect(self._target, self._tls, self._server_name or host, made)
        except TimeoutError:
            raise NotConnected(f"did not answer within {self._connect_timeout:g} s") from None
        return made


class Connection(asyncio.Protocol):
    """One connection. The parser calls the `on_` methods."""

    def __init__(self, loop: asyncio.AbstractEventLoop, registry: set[Connection]) -> None:
        self._loop = loop
        self._registry = registry
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._failure: Exception | None = None
        self.idle_since = 0.0
        self._busy = False
        self._full = False  # the server does not take what is sent as fast as it comes
        self._begin(False, 0)

    def _begin(self, stream: bool, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._code = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._complete = False
        self._unread = 0  # bytes since the last of a body
        self._to_the_end = False  # the body ends with the connection
        self._keep = False

    @property
    def reusable(self) -> bool:
        return self._transport is not None and not self._busy and self._failure is None

    async def ask(
        self, request: bytes, *, stream: bool, limit: int, within: float, more: AsyncIterable[bytes] | None = None
    ) -> Answer:
        if self._transport is None:
            raise self._failure or Broken("the connection is closed")
        self._begin(stream, limit)
        self._busy = True
        self._transport.write(request)
        whole = more is None or await self._send(more, within)
        if not self._complete and self._failure is None:
            await self._wait(within)
        if self._stream and self._code:
            return Answer(self._code, self._headers, b"", self)
        if not self._complete:
            raise self._failure or Broken("the answer is not whole")
        self._busy = not (self._keep and whole)
        self.idle_since = self._loop.time()
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        return Answer(self._code, self._headers, self._decoded(body), None)

    async def _send(self, pieces: AsyncIterable[bytes], within: float) -> bool:
        """Whether all of it was sent: who has answered, or is gone, gets no more."""
        async for piece in pieces:
            if self._complete or self._failure is not None or self._transport is None:
                return False
            self._transport.write(piece)
            while self._full and not self._complete and self._failure is None:
                await self._wait(within)
        return True

    def _decoded(self, body: bytes) -> bytes:
        coding = next((value for key, value in self._headers if key == b"content-encoding"), b"")
        if coding != b"gzip":
            return body
        reader = zlib.decompressobj(wbits=31)
        try:
            read = reader.decompress(body, self._limit + 1)
        except zlib.error as error:
            raise Broken(f"the body is no gzip: {error}") from None
        if len(read) > self._limit:
            raise TooLong
        return read

    async def chunk(self, inactivity: float) -> bytes:
        """What has come, b"" at the end."""
        if not self._parts and not self._complete and self._failure is None:
            await self._wait(inactivity)
        if not self._parts and not self._complete:
            raise self._failure or Broken("the answer is not whole")
        taken = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if self._transport is not None:
            self._transport.resume_reading()
        return taken

    def abort(self) -> None:
        self._leave()
        if self._transport is not None:
            transport, self._transport = self._transport, None
            transport.abort()

    def _leave(self) -> None:
        self._registry.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _wait(self, within: float) -> None:
        self._waiter = self._loop.create_future()
        self._deadline = deadline = self._loop.time() + within
        if self._timer is None or self._timer.when() > deadline:
            self._set_timer(deadline)
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _set_timer(self, when: float) -> None:
        """One that outlasts answers and is set anew when it rings too early: to set one for each costs as much as to
        parse the answer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._waiter is None:
            return
        if self._loop.time() < self._deadline - RESOLUTION:
            self._set_timer(self._deadline)
        else:
            self._fail(TimeoutError())

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        self._wake()
        if self._transport is not None:
            self._transport.abort()

    # --- the transport calls -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._registry.add(self)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake()

    def data_received(self, data: bytes) -> None:
        if not self._busy:
            self._fail(Broken("an answer came that nobody asked for"))
            return
        self._unread += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(self._failure or Broken(f"the answer is no HTTP: {error}"))
        if self._unread > MAX_HEAD:
            self._fail(Broken("the answer has too much that is no body"))

    def eof_received(self) -> None:
        if self._to_the_end and not self._complete:
            self.on_message_complete()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._leave()
        if self._failure is None:
            self._failure = Broken(str(error) if error is not None else "the server closed the connection")
        self._wake()

    # --- the parser calls --------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._complete:
            raise ValueError("a second answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._code:  # later ones are trailers, which nobody asked for
            name = name.lower()
            if name in _ASKED_FOR:
                self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._code = self._parser.get_status_code()
        self._keep = self._parser.should_keep_alive()
        bounded = any(name in _BOUNDS for name, _ in self._headers)
        self._to_the_end = not bounded and self._code not in (204, 304)
        if self._stream and self._code >= 200:
            if self._code >= 300:
                self._stream = False  # a refusal is read whole
            else:
                self._wake()

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)
        self._size += len(body)
        self._unread = 0
        if self._stream:
            self._wake()
            if self._size > HIGH_WATER and self._transport is not None:
                self._transport.pause_reading()
        elif self._size > self._limit:
            self._parts.clear()
            self._fail(TooLong())

    def on_message_complete(self) -> None:
        if 100 <= self._code < 200:  # more is to come
            self._begin(self._stream, self._limit)
            return
        self._complete = self._failure is None
        self._wake()
