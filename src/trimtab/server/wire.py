"""HTTP/1.1 on a socket: bytes to requests, answers to bytes. The parser is llhttp, by httptools.

Life of a connection: READING (a request comes in) → ANSWERING (a task of the connection's own) → READING … → CLOSED. Requests
that arrive while one is answered wait their turn; reading pauses when too many do. A peer that is silent in the middle of a
request, or does not read its answer, is cut off.

Why not uvicorn: a get over TLS cost 137 µs of CPU with it and 104 µs with this, on the same day, before anything else
was tuned (`bench/server.py`); a watch event to each of 1,000 watchers needs broadcasts, which write to connections.
"""

from __future__ import annotations

import asyncio
import gc
import re
import ssl
from collections import deque
from email.utils import formatdate
from http import HTTPStatus
from typing import Protocol
from urllib.parse import unquote

import httptools
import msgspec

from trimtab.server.body import MAX_BODY
from trimtab.server.broadcast import Handover
from trimtab.server.http import Response, Stream

MAX_HEADER_BYTES = 64 * 1024
MAX_HEADERS = 100
MAX_OVERHEAD = 512 * 1024  # bytes of a request that are not its body, read in pieces of up to a quarter of this
MAX_QUEUED = 32
MAX_UNREAD = 4 * 1024 * 1024  # what a watcher may leave unread
CLOSED_MANY = 64  # connections: their TLS objects hold each other until a collection
LARGE = 64 * 1024
SWEEP = 5.0
HEADER_PATIENCE = 20.0  # seconds for a request to be whole once it began
IDLE_PATIENCE = 120.0
WRITE_PATIENCE = 60.0

_REASONS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Incoming(msgspec.Struct, gc=False):
    """One request as it came."""

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    body: bytes
    keep_alive: bool
    peer: bytes | None  # the client's certificate, DER
    impersonation: tuple[tuple[bytes, bytes], ...] = ()  # those headers may come several times
    refusal: Response | None = None  # what was wrong before anyone could look at it


class Handler(Protocol):
    async def __call__(self, incoming: Incoming) -> Response | Stream: ...


class Listener:
    """All connections of one address."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self.date = b""
        self._framed = self._chunk = b""
        self._closed = 0

    async def listen(self, host: str, port: int, context: ssl.SSLContext) -> int:
        """Listen with TLS; returns the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self, self._handler), host, port, ssl=context, backlog=4096, ssl_handshake_timeout=20.0
        )
        self._start()
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    async def listen_unix(self, path: str) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: Connection(self, self._handler), path, backlog=4096)
        self._start()

    async def close(self) -> None:
        """Stop listening; requests under way are given up."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.abort()
        if self._server is not None:
            await self._server.wait_closed()

    def _start(self) -> None:
        self._tick()
        self._sweeper = asyncio.create_task(self._sweep())

    def _tick(self) -> None:
        self.date = b"date: " + formatdate(usegmt=True).encode() + b"\r\n"

    async def _sweep(self) -> None:
        """Keep the date, and cut off who is silent for too long."""
        loop = asyncio.get_running_loop()
        second = 0
        while True:
            await asyncio.sleep(1.0)
            self._tick()
            second += 1
            if second % SWEEP:
                continue
            now = loop.time()
            for connection in list(self._connections):
                if connection.overdue(now):
                    connection.abort()

    def chunk(self, framed: bytes) -> bytes:
        """A broadcast hands the same bytes to all: they are framed once."""
        if framed is not self._framed:
            self._framed, self._chunk = framed, _chunk(framed)
        return self._chunk

    def add(self, connection: Connection) -> None:
        self._connections.add(connection)

    def discard(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._closed += 1
        if self._closed >= CLOSED_MANY:
            self._closed = 0
            asyncio.get_running_loop().call_soon(gc.collect, 1)


class Connection(asyncio.Protocol):
    """One peer. Parser callbacks fill a request; a task answers requests in order."""

    def __init__(self, listener: Listener, handler: Handler) -> None:
        self._listener = listener
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._queue: deque[Incoming] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._stalled = 0.0  # since when the peer does not read
        self._paused = False
        self._answering = False
        self._began = 0.0  # when the request that is coming in began; 0 between requests
        self._quiet_since = self._loop.time()
        self._reset()

    # The loop calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        tls = transport.get_extra_info("ssl_object")
        self._peer: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
        self._listener.add(self)
        self._task = self._loop.create_task(self._run())

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything: connection and parser hold each other, and would wait for the garbage collector."""
        self._listener.discard(self)
        self._task.cancel()
        self._queue.clear()
        self._reset()
        del self._parser

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
            if self._began:
                self._received += len(data)
                if self._received - self._length > MAX_OVERHEAD:  # the parser keeps a header until it ends
                    self._refuse(_plain(431, b"431 Request Header Fields Too Large\n"))
        except httptools.HttpParserUpgrade:
            self._refuse(_plain(400, b"upgrades are not supported\n"))
        except httptools.HttpParserError:
            self._refuse(_plain(400, b"400 Bad Request\n"))

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()
        self._stalled = self._loop.time()

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    # The parser calls these.

    def on_message_begin(self) -> None:
        self._reset()
        self._began = self._loop.time()

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > MAX_HEADER_BYTES:
            self._refuse(_plain(414, b"414 URI Too Long\n"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value)
        if self._size > MAX_HEADER_BYTES or len(self._headers) >= MAX_HEADERS:
            self._refuse(_plain(431, b"431 Request Header Fields Too Large\n"))
            return
        name = name.lower()
        if name.startswith(b"impersonate-"):
            self._impersonation += ((name, value),)
        self._headers[name] = value

    def on_headers_complete(self) -> None:
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and not self._answering:
            self._transport.write(_CONTINUE)

    def on_body(self, chunk: bytes) -> None:
        self._length += len(chunk)
        if self._length <= MAX_BODY:
            self._chunks.append(chunk)
        else:
            self._chunks.clear()  # the handler sees that it was too long; the bytes are not kept

    def on_message_complete(self) -> None:
        self._began = 0.0
        path, _, query = self._url.partition(b"?")
        text = path.decode("latin-1")
        incoming = Incoming(
            method=self._parser.get_method().decode("latin-1"),
            path=unquote(text) if "%" in text else text,
            query=query,
            headers=self._headers,
            body=self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks),
            keep_alive=self._parser.should_keep_alive(),
            peer=self._peer,
            impersonation=self._impersonation,
        )
        if b"%" in path and _BAD_ESCAPE.search(path):
            incoming.refusal = _plain(400, b"400 Bad Request")
        if self._length > MAX_BODY:
            incoming.refusal = _TOO_LARGE
        self._enqueue(incoming)

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._impersonation: tuple[tuple[bytes, bytes], ...] = ()
        self._size = 0
        self._length = 0
        self._received = 0
        self._chunks: list[bytes] = []

    def _enqueue(self, incoming: Incoming) -> None:
        self._queue.append(incoming)
        if len(self._queue) > MAX_QUEUED and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _refuse(self, response: Response) -> None:
        """What cannot even be read ends the connection, after the answers that are due."""
        self._enqueue(Incoming("", "", b"", {}, b"", False, None, (), response))
        if not self._transport.is_closing():
            self._transport.pause_reading()

    # The listener calls these.

    def overdue(self, now: float) -> bool:
        if self._began and now - self._began > HEADER_PATIENCE:
            return True
        if self._drained is not None and now - self._stalled > WRITE_PATIENCE:
            return True
        return not self._answering and not self._queue and now - self._quiet_since > IDLE_PATIENCE

    def abort(self) -> None:
        self._transport.abort()
        self._task.cancel()

    # The task.

    async def _run(self) -> None:
        try:
            while True:
                if not self._queue:
                    self._wake = self._loop.create_future()
                    await self._wake
                    self._wake = None
                incoming = self._queue.popleft()
                if self._paused and not self._queue:
                    self._paused = False
                    self._transport.resume_reading()
                self._answering = True
                await self._answer(incoming)
                self._answering = False
                self._quiet_since = self._loop.time()
                if not incoming.keep_alive:
                    break
        except (ConnectionError, TimeoutError):
            pass  # the peer has left, or does not read
        finally:
            if not self._transport.is_closing():
                self._transport.close()

    async def _answer(self, incoming: Incoming) -> None:
        answer = incoming.refusal or await self._handler(incoming)
        if isinstance(answer, Stream):
            await self._stream(answer, incoming)
            return
        head = [_REASONS.get(answer.code) or f"HTTP/1.1 {answer.code} \r\n".encode(), self._listener.date]
        head += [b"%b: %b\r\n" % header for header in answer.headers]
        if answer.code != 304:  # a cache takes the headers of a 304 over into what it keeps
            head.append(b"content-type: %b\r\ncontent-length: %d\r\n" % (answer.media, len(answer.body)))
        head.append(b"cache-control: no-cache, private\r\n")
        if not incoming.keep_alive:
            head.append(b"connection: close\r\n")
        head.append(b"\r\n")
        silent = incoming.method == "HEAD" or answer.code == 304
        if len(answer.body) < LARGE and not silent:
            head.append(answer.body)
            silent = True
        self._transport.write(b"".join(head))
        if not silent:
            self._transport.write(answer.body)  # not worth a copy
        if self._drained is not None:
            await self._drain()

    async def _stream(self, answer: Stream, incoming: Incoming) -> None:
        head = b"HTTP/1.1 200 OK\r\n%bcontent-type: %b\r\ncache-control: no-cache, private\r\ntransfer-encoding: chunked\r\n\r\n"
        self._transport.write(head % (self._listener.date, answer.media))
        try:
            async for frame in answer.frames:
                if not isinstance(frame, bytes):
                    await self._follow(frame)
                    continue
                self._transport.write(_chunk(frame))
                if self._drained is not None:
                    await self._drain()
            self._transport.write(b"0\r\n\r\n")
        finally:
            await answer.close()

    async def _follow(self, handover: Handover) -> None:
        """Let a broadcast write to this connection until it ends, or the watch's time is over."""
        self._over = self._loop.create_future()
        handover.broadcast.attach(self, handover.since)
        try:
            async with asyncio.timeout_at(handover.deadline):
                await self._over
        except TimeoutError:
            if last := handover.farewell():
                self._transport.write(_chunk(last))
        finally:
            handover.broadcast.detach(self)

    # A broadcast calls these.

    def feed(self, framed: bytes) -> None:
        self._transport.write(self._listener.chunk(framed))
        if self._drained is not None and self._transport.get_write_buffer_size() > MAX_UNREAD:
            self.abort()  # it does not read; when it comes back it goes on where it was

    def end(self, framed: bytes) -> None:
        if framed:
            self._transport.write(_chunk(framed))
        if not self._over.done():
            self._over.set_result(None)

    async def _drain(self) -> None:
        drained = self._drained
        if drained is not None:
            async with asyncio.timeout(WRITE_PATIENCE):
                await asyncio.shield(drained)


def _chunk(frame: bytes) -> bytes:
    """A chunk of RFC 9112 §7.1."""
    return b"%x\r\n%b\r\n" % (len(frame), frame)


def _plain(code: int, text: bytes) -> Response:
    return Response(code=code, body=text, media=b"text/plain; charset=utf-8")


_TOO_LARGE = Response(
    code=413,
    body=b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Request entity too large: '
    b'limit is %d","reason":"RequestEntityTooLarge","code":413}\n' % MAX_BODY,
)
