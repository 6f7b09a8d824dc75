"""The wires: one ASGI application that authenticates, limits, carries bytes in and out, and knows when a client has left."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from trimtab.model.errors import StatusError, bad_request
from trimtab.server.auth.identity import Authenticator, User
from trimtab.server.auth.limits import InFlight, Limits
from trimtab.server.body import MAX_BODY
from trimtab.server.core import Server
from trimtab.server.http import Request, Response, Stream, error_response
from trimtab.server.metrics import Metrics

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

STALLED = 60.0  # seconds that a watcher may take to read what was sent
BODIES = ("POST", "PUT", "PATCH", "DELETE")


class Application:
    """`local` is who connects without credentials: the owner, on the unix socket; None on the network."""

    def __init__(
        self, server: Server, authenticator: Authenticator, *, limits: Limits | None = None, local: User | None = None
    ) -> None:
        self._server = server
        self._authenticator = authenticator
        self._local = local
        self._in_flight = InFlight(limits or Limits())
        self._audit = itertools.count()
        self._metrics: Metrics = server.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        method = scope["method"]
        request: Request | None = None
        try:
            user = await self._user(headers, scope)
            query = _query(scope["query_string"])
            long_running = method == "GET" and query.get("watch", "false") not in ("false", "0")
            with self._in_flight.acquire(user, long_running):
                body = await _body(receive, headers) if method in BODIES else b""
                request = Request(
                    method=method, path=scope["path"], query=query, headers=headers, body=body, user=user, warnings=[]
                )
                started = asyncio.get_running_loop().time()
                answer = await self._server.handle(request)
                if isinstance(answer, Stream):
                    await _stream(answer, receive, send)
                    return
                self._metrics.observe(request, answer.code, asyncio.get_running_loop().time() - started)
        except StatusError as error:
            answer = error_response(error)
        await self._respond(answer, request, method, send)

    async def _user(self, headers: dict[bytes, bytes], scope: Scope) -> User:
        authorization = headers.get(b"authorization")
        if authorization is None and self._local is not None:
            return self._local
        certificate = scope["state"].get("peer") if "state" in scope else None
        known = self._authenticator.known(authorization, certificate)
        return known if known is not None else await self._authenticator.authenticate(authorization, certificate)

    async def _respond(self, answer: Response, request: Request | None, method: str, send: Send) -> None:
        body = answer.body
        headers = [
            (b"audit-id", b"%012x" % next(self._audit)),
            (b"cache-control", b"no-cache, private"),
            (b"content-type", answer.media),
            (b"content-length", b"%d" % len(body)),
            *answer.headers,
        ]
        if request is not None:
            headers += [(b"warning", _warning(text)) for text in request.warnings]
        await send({"type": "http.response.start", "status": answer.code, "headers": headers})
        await send({"type": "http.response.body", "body": body if method != "HEAD" and answer.code != 304 else b""})


async def _body(receive: Receive, headers: dict[bytes, bytes]) -> bytes:
    declared = headers.get(b"content-length", b"0")
    if declared.isdigit() and int(declared) > MAX_BODY:
        raise _too_large()
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise bad_request("the client left before its request was whole")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > MAX_BODY:
            raise _too_large()
        chunks.append(chunk)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large() -> StatusError:
    message = f"Request entity too large: limit is {MAX_BODY}"
    return StatusError(413, "RequestEntityTooLarge", message, {})


async def _stream(answer: Stream, receive: Receive, send: Send) -> None:
    """Send frames until they end, the client leaves, or it does not read for too long."""
    headers = [(b"cache-control", b"no-cache, private"), (b"content-type", answer.media)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    pump = asyncio.create_task(_pump(answer, send))
    left = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait({pump, left}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pump, left):
            task.cancel()
        await asyncio.gather(pump, left, return_exceptions=True)


async def _pump(answer: Stream, send: Send) -> None:
    try:
        async for frame in answer.frames:
            async with asyncio.timeout(STALLED):
                await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        pass  # the client does not read: the connection ends
    finally:
        await answer.frames.aclose()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _query(raw: bytes) -> dict[str, str]:
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=200)
    except ValueError as error:
        raise bad_request(f"the query does not parse: {error}") from None
    query: dict[str, str] = {}
    for name, value in pairs:
        query.setdefault(name, value)
    return query


def _warning(text: str) -> bytes:
    """RFC 7234 §5.5. Control characters have no place in a header."""
    clean = "".join(char if char.isprintable() else " " for char in text)[:4096]
    escaped = clean.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode()
