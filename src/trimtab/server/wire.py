"""HTTP/1.1 on a socket: bytes to requests, answers to bytes. The parser is llhttp, by httptools.

Life of a connection: READING (a request comes in) → ANSWERING (a task of the connection's own) → READING … → CLOSED. Requests
that arrive while one is answered wait their turn; reading pauses when too many do. A peer that is silent in the middle of a
request, or does not read its answer, is cut off. A request with a streamed body (`streaming.py`) is answered while it still
comes in; one that is answered before its end is the last on its connection. A large body that is no stream is handed over
in the same way, so that nothing of it is kept before it is known who sends it: the door gathers it.

Why not uvicorn: a get over TLS cost 137 µs of CPU with it and 104 µs with this, on the same day, before anything else
was tuned (`bench/server.py`); a watch event to each of 1,000 watchers needs broadcasts, which write to connections.
"""

from __future__ import annotations

import asyncio
import gc
import re
import ssl
from collections import deque
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import Protocol
from urllib.parse import unquote

import httptools
import msgspec

from trimtab.model.logs import log
from trimtab.server.auth.identity import User
from trimtab.server.body import MAX_BODY
from trimtab.server.broadcast import MAX_UNREAD, Handover
from trimtab.server.http import Response, Stream
from trimtab.server.streaming import BodyStream, Cut, is_streamed

MAX_HEADER_BYTES = 64 * 1024
MAX_HEADERS = 100
MAX_OVERHEAD = 512 * 1024  # bytes of a request that are not its body, read in pieces of up to a quarter of this
MAX_QUEUED = 32
ALL_UNREAD = 64 * 1024 * 1024  # what all watchers may leave unread, if many do
LEAST_UNREAD = 256 * 1024
CLOSED_MANY = 64  # connections: their TLS objects hold each other until a collection
LARGE = 64 * 1024
SWEEP = 5.0
HEADER_PATIENCE = 20.0  # seconds for a request to be whole once it began
IDLE_PATIENCE = 120.0
WRITE_PATIENCE = 60.0
LINGER = 5.0  # seconds in which the rest of a body that nobody reads may still come
MAX_LINGER = 64 * 1024 * 1024  # bytes of it

_REASONS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NO_CACHE = b"cache-control: no-cache, private\r\n"
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
    stream: BodyStream | None = None  # the body, where it is read as it comes; `body` is then empty
    gathers: bool = False  # that body is a large one, which is to be read whole once it is known who sends it
    proxied: tuple[tuple[bytes, bytes], ...] = ()  # what a proxy in front says of who asks; each may come several times
    address: str = ""  # of the peer; none on a unix socket
    user: User | None = None  # who asks, where that is known already: with the batch that it came in


class Handler(Protocol):
    async def __call__(self, incoming: Incoming) -> Response | Stream: ...


class Listener:
    """All connections of one address."""

    def __init__(self, handler: Handler, *, proxied: tuple[bytes, ...] = ()) -> None:
        """`proxied` are beginnings of the names, in lower case, of headers by which a proxy in front tells who asks."""
        self._handler = handler
        self.proxied = proxied
        self.passed_on: Callable[[bytes], bool] | None = None
        """Whether a request for this URL goes on to another server; None while there is none."""
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self.date = b""
        self._framed = self._chunk = b""
        self._closed = 0
        self.stalled = 0  # peers that do not read as fast as they are written to

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

    def allowance(self) -> int:
        """What a peer that does not read may have waiting: less, the more of them there are."""
        return max(LEAST_UNREAD, min(MAX_UNREAD, ALL_UNREAD // max(1, self.stalled)))

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
        self._stream: BodyStream | None = None  # the body that is coming in piece by piece
        self._held = False  # reading waits for who reads that body
        self._reset()

    # The loop calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        tls = transport.get_extra_info("ssl_object")
        self._peer: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
        name = transport.get_extra_info("peername")
        self._address: str = name[0] if isinstance(name, tuple) else ""
        self._listener.add(self)
        self._task = self._loop.create_task(self._run())

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything: connection and parser hold each other, and would wait for the garbage collector."""
        self._listener.discard(self)
        if self._drained is not None:
            self._drained = None
            self._listener.stalled -= 1
        if self._stream is not None:
            self._stream.fail(Cut("the connection ended in the midst of a body"))
            self._stream = None
        self._task.cancel()
        del self._task  # which holds how it was cancelled, and so us
        self._queue.clear()
        self._reset()
        del self._parser

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
            if self._began or self._stream is not None:
                self._received += len(data)
                if self._received - self._length > MAX_OVERHEAD:  # the parser keeps a header until it ends
                    self._refuse(_plain(431, b"431 Request Header Fields Too Large\n"))
        except httptools.HttpParserUpgrade:
            self._stay()
        except httptools.HttpParserError:
            self._refuse(_plain(400, b"400 Bad Request\n"))

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()
        self._stalled = self._loop.time()
        self._listener.stalled += 1

    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is None:
            return
        self._listener.stalled -= 1
        if not drained.done():
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
        self._count += 1
        if self._size > MAX_HEADER_BYTES or self._count > MAX_HEADERS:
            self._refuse(_plain(431, b"431 Request Header Fields Too Large\n"))
            return
        if self._headed:  # a trailer: a proxy in front lets pass there what it strips from headers
            return
        name = name.lower()
        if name == b"host" and name in self._headers:
            self._refuse(_plain(400, b"400 Bad Request: too many Host headers\n"))
            return
        if name.startswith(b"impersonate-"):
            self._impersonation += (
                (name, value.strip(b" \t")),
            )  # spaces around a value are none of it (RFC 9110 §5.5)
        elif self._listener.proxied and name.startswith(self._listener.proxied):
            self._proxied += ((name, value.strip(b" \t")),)
        self._headers.setdefault(name, value)

    def on_headers_complete(self) -> None:
        self._headed = True
        version = self._parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._refuse(_plain(505, b"505 HTTP Version Not Supported\n"))
            return
        if version == "1.1" and b"host" not in self._headers:
            self._refuse(_plain(400, b"400 Bad Request: missing required Host header\n"))
            return
        if self._headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            self._refuse(_plain(501, b"501 Not Implemented: unsupported transfer encoding\n"))
            return
        expected = self._headers.get(b"expect", b"").lower() == b"100-continue"
        if is_streamed(self._parser.get_method(), self._url) or (
            self._listener.passed_on is not None and self._is_large() and self._listener.passed_on(self._url)
        ):
            self._begin_stream(expected)
        elif self._is_large():
            self._begin_stream(expected, gathers=True)
        elif expected and not self._answering:
            self._transport.write(_CONTINUE)

    def _is_large(self) -> bool:
        length = self._headers.get(b"content-length", b"")
        return b"transfer-encoding" in self._headers or (length.isdigit() and (len(length) > 9 or int(length) > LARGE))

    def _begin_stream(self, expected: bool, *, gathers: bool = False) -> None:
        """Let it be answered from now on, while its body comes."""
        length = self._headers.get(b"content-length", b"")
        self._stream = BodyStream(
            length=int(length) if length.isdigit() and len(length) < 19 else None,
            begin=lambda: self._transport.write(_CONTINUE) if expected else None,
            pause=self._hold,
            resume=self._unhold,
        )
        self._began = 0.0  # who reads the body waits for it from now on
        incoming = self._incoming(self._stream)
        incoming.gathers = gathers
        if gathers and (self._stream.length or 0) > MAX_BODY:
            incoming.refusal = TOO_LARGE
        self._enqueue(incoming)

    def on_body(self, chunk: bytes) -> None:
        self._length += len(chunk)
        if self._stream is not None:
            self._stream.feed(chunk)
            return
        self._chunks.append(chunk)  # a small one: its length was told

    def on_message_complete(self) -> None:
        self._began = 0.0
        if self._stream is not None:
            self._stream.end()
            self._stream = None
            return
        self._enqueue(self._incoming(None))

    def _incoming(self, stream: BodyStream | None) -> Incoming:
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
            stream=stream,
            proxied=self._proxied,
            address=self._address,
        )
        if b"%" in path and _BAD_ESCAPE.search(path):
            incoming.refusal = _plain(400, b"400 Bad Request")
        return incoming

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._impersonation: tuple[tuple[bytes, bytes], ...] = ()
        self._proxied: tuple[tuple[bytes, bytes], ...] = ()
        self._headed = False
        self._count = 0
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
        if self._stream is not None:
            self._stream.fail(Cut("what came in the midst of a body is no HTTP"))
        self._enqueue(Incoming("", "", b"", {}, b"", False, None, (), response))
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def _stay(self) -> None:
        """Nobody here speaks another protocol. The request that asked for it is whole and is answered as if it had not asked,
        and is the last: where the next one begins, the parser does not say."""
        if self._queue and self._stream is None:
            self._queue[-1].keep_alive = False
            self._transport.pause_reading()
        else:
            self._refuse(_plain(400, b"upgrades are not supported\n"))

    # A body that is read as it comes calls these.

    def _hold(self) -> None:
        self._held = True
        self._transport.pause_reading()

    def _unhold(self) -> None:
        self._held = False
        if not self._paused and not self._transport.is_closing():
            self._transport.resume_reading()

    # The listener calls these.

    def overdue(self, now: float) -> bool:
        if self._began and now - self._began > HEADER_PATIENCE:
            return True
        if self._drained is not None and now - self._stalled > WRITE_PATIENCE:
            return True
        return not self._answering and not self._queue and now - self._quiet_since > IDLE_PATIENCE

    def abort(self) -> None:
        self._transport.abort()

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
                    if not self._held:
                        self._transport.resume_reading()
                self._answering = True
                await self._answer(incoming)
                if incoming.stream is not None and not incoming.stream.whole:
                    await self._linger(incoming.stream)
                    break
                self._answering = False
                self._quiet_since = self._loop.time()
                if not incoming.keep_alive:
                    break
        except (ConnectionError, TimeoutError):
            pass  # the peer has left, or does not read
        except Exception as error:  # in the midst of an answer: that its end is missing tells the peer
            if not (isinstance(error, RuntimeError) and self._transport.is_closing()):  # uvloop's word for who has left
                log.exception("an answer broke off")
        finally:
            if not self._transport.is_closing():
                self._transport.close()

    async def _answer(self, incoming: Incoming) -> None:
        answer = incoming.refusal or await self._handler(incoming)
        if incoming.stream is not None and not incoming.stream.whole:
            incoming.keep_alive = False
        if isinstance(answer, Stream):
            await self._send_stream(answer, incoming)
            return
        head = [_REASONS.get(answer.code) or f"HTTP/1.1 {answer.code} \r\n".encode(), self._listener.date]
        head += [b"%b: %b\r\n" % header for header in answer.headers]
        if answer.code != 304:  # a cache takes the headers of a 304 over into what it keeps
            head.append(b"content-type: %b\r\ncontent-length: %d\r\n" % (answer.media, len(answer.body)))
        head.append(b"cache-control: %b\r\n" % answer.cache if answer.cache else _NO_CACHE)
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

    async def _linger(self, stream: BodyStream) -> None:
        """The answer is out and more of the body may come. To close now could take the answer away from a peer that still
        writes, so what comes is dropped, for a while."""
        stream.give_up()
        limit, until = self._length + MAX_LINGER, self._loop.time() + LINGER
        while not stream.whole and self._length < limit and self._loop.time() < until:
            if self._transport.is_closing():
                return
            await asyncio.sleep(0.02)

    async def _send_stream(self, answer: Stream, incoming: Incoming) -> None:
        sized = answer.length is not None
        framing = (
            b"transfer-encoding: chunked\r\n" if answer.length is None else b"content-length: %d\r\n" % answer.length
        )
        status = _REASONS.get(answer.code) or f"HTTP/1.1 {answer.code} \r\n".encode()
        head = [status, self._listener.date, b"content-type: %b\r\n" % answer.media]
        head += [b"%b: %b\r\n" % header for header in answer.headers]
        head.append(framing + b"cache-control: no-cache, private\r\n\r\n")
        self._transport.write(b"".join(head))
        try:
            if incoming.method == "HEAD":
                return
            async for frame in answer.frames:
                if not isinstance(frame, bytes):
                    await self._follow(frame)
                    continue
                self._transport.write(frame if sized else _chunk(frame))
                if self._drained is not None:
                    await self._drain()
            if not sized:
                self._transport.write(b"0\r\n\r\n")
        finally:
            await answer.close()

    async def _follow(self, handover: Handover) -> None:
        """Let a broadcast write to this connection until it ends, or the watch's time is over."""
        self._over = self._loop.create_future()
        self._broadcast = handover.broadcast
        handover.broadcast.attach(self, handover.since)
        try:
            async with asyncio.timeout_at(handover.deadline):
                last = await self._over
        except TimeoutError:
            last = handover.farewell()
        finally:
            handover.broadcast.detach(self)
        await self._drain()  # who is cut off reads what it was given, and then why
        if last:
            self._transport.write(_chunk(last))

    # A broadcast calls these.

    def feed(self, framed: bytes) -> None:
        behind = self._drained is not None  # one that has read all is not slow, however much comes at once
        self._transport.write(self._listener.chunk(framed))
        if behind and self._transport.get_write_buffer_size() > self._listener.allowance():
            self.end(self._broadcast.cut(self))

    def end(self, framed: bytes) -> None:
        if not self._over.done():
            self._over.set_result(framed)

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


TOO_LARGE = Response(
    code=413,
    body=b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Request entity too large: '
    b'limit is %d","reason":"RequestEntityTooLarge","code":413}\n' % MAX_BODY,
)
