"""`Blobs` over HTTP: any place for blobs, for clients that have a token.

    PUT    /blobs/{digest}               the bytes; X-Blob-Media-Type is the media type
    GET    /blobs/{digest}               HEAD: size and media type
    PUT    /blobs/{digest}/pins/{owner}  DELETE: unpin one
    DELETE /pins/{owner}                 unpin all of an owner
    POST   /collect?grace=SECONDS        {"count": …, "bytes": …}
    GET    /ready                        whether the place can be used

A failure is `{"reason": …, "message": …}`, and its reason is the name of the error that the client raises again. A client
chooses nothing but a digest: what it sends is verified before it is there. TLS is for whoever runs the application.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from trimtab.model.logs import log
from trimtab.storage.blobs import (
    MAX_BYTES,
    BlobDamaged,
    BlobError,
    BlobMissing,
    Blobs,
    BlobsUnavailable,
    BlobTooLarge,
    Digest,
    parse_digest,
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

UPLOADS = 16
"""At once; more are told to come again. Each may hold a file of the largest size."""

IDLE = 60.0
"""Seconds without a byte after which a transfer is given up."""


class Failure(msgspec.Struct, frozen=True):
    """The body of an answer that is no success."""

    reason: str
    message: str


def application(blobs: Blobs, *, token: Callable[[], str], max_bytes: int = MAX_BYTES) -> web.Application:
    """`token` is asked at each request, so that it can be renewed; while it is empty nobody gets in."""
    service = _Service(blobs, max_bytes)
    app = web.Application(middlewares=[_authenticated(token), _typed_failures])
    app.add_routes(
        [
            web.put("/blobs/{digest}", service.put),
            web.get("/blobs/{digest}", service.get, allow_head=False),
            web.head("/blobs/{digest}", service.head),
            web.put("/blobs/{digest}/pins/{owner:.+}", service.pin),
            web.delete("/blobs/{digest}/pins/{owner:.+}", service.unpin),
            web.delete("/pins/{owner:.+}", service.unpin),
            web.post("/collect", service.collect),
            web.get("/ready", service.ready),
        ]
    )
    return app


class _Service:
    def __init__(self, blobs: Blobs, max_bytes: int) -> None:
        self._blobs = blobs
        self._max_bytes = max_bytes
        self._uploads = 0

    async def put(self, request: web.Request) -> web.StreamResponse:
        digest = _digest(request)
        if request.content_length is not None and request.content_length > self._max_bytes:
            raise BlobTooLarge(self._max_bytes)
        if self._uploads >= UPLOADS:
            failure = _failure(HTTPStatus.SERVICE_UNAVAILABLE, "Busy", "too many uploads at once")
            failure.headers["Retry-After"] = "1"
            return failure
        self._uploads += 1
        try:
            media_type = request.headers.get("X-Blob-Media-Type", "")
            await self._blobs.put(_body(request), media_type=media_type, expected=digest, max_bytes=self._max_bytes)
        finally:
            self._uploads -= 1
        return web.Response(status=HTTPStatus.CREATED)

    async def get(self, request: web.Request) -> web.StreamResponse:
        info = await self._blobs.stat(_digest(request))
        response = web.StreamResponse(headers=_headers(info.media_type))
        response.content_length = info.size
        await response.prepare(request)
        try:
            async for chunk in self._blobs.open(info.digest):
                async with asyncio.timeout(IDLE):
                    await response.write(chunk)
        except (BlobError, TimeoutError) as error:
            log.warning("a blob could not be sent to its end", digest=info.digest, error=str(error))
            if request.transport is not None:  # the answer has begun: all that is left is to end it too early
                request.transport.abort()
        return response

    async def head(self, request: web.Request) -> web.StreamResponse:
        info = await self._blobs.stat(_digest(request))
        return web.Response(headers={**_headers(info.media_type), "Content-Length": str(info.size)})

    async def pin(self, request: web.Request) -> web.StreamResponse:
        await self._blobs.pin(_digest(request), request.match_info["owner"])
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def unpin(self, request: web.Request) -> web.StreamResponse:
        digest = _digest(request) if "digest" in request.match_info else None
        await self._blobs.unpin(request.match_info["owner"], digest)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def collect(self, request: web.Request) -> web.StreamResponse:
        grace = float(request.query.get("grace", "nan"))
        if not 0 <= grace <= 10 * 365 * 86400:
            raise ValueError("grace must be a number of seconds, not less than 0")
        collected = await self._blobs.collect(grace=grace)
        return web.Response(body=msgspec.json.encode(collected), content_type="application/json")

    async def ready(self, request: web.Request) -> web.StreamResponse:
        await self._blobs.ready()
        return web.Response(status=HTTPStatus.NO_CONTENT)


def _authenticated(token: Callable[[], str]) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "")
        wanted = token()
        # Digests of equal length: the comparison says nothing about the length of the token.
        if not wanted or not hmac.compare_digest(_hashed(given), _hashed(f"Bearer {wanted}")):
            return _failure(HTTPStatus.UNAUTHORIZED, "Unauthorized", "a valid token is needed", close=True)
        return await handler(request)

    return middleware


@web.middleware
async def _typed_failures(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ValueError as error:
        return _failure(HTTPStatus.BAD_REQUEST, "Invalid", str(error))
    except BlobError as error:
        code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), HTTPStatus.BAD_GATEWAY)
        return _failure(code, type(error).__name__, str(error), close=request.can_read_body)


_CODES = {
    BlobMissing: HTTPStatus.NOT_FOUND,
    BlobDamaged: HTTPStatus.UNPROCESSABLE_ENTITY,
    BlobTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    BlobsUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}


async def _body(request: web.Request) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(IDLE):
            chunk = await request.content.readany()
        if not chunk:
            return
        yield chunk


def _failure(code: int, reason: str, message: str, *, close: bool = False) -> web.Response:
    body = msgspec.json.encode(Failure(reason, message))
    response = web.Response(status=code, body=body, content_type="application/json")
    if close:  # a body that nobody reads must not be waited for
        response.force_close()
    return response


def _headers(media_type: str) -> dict[str, str]:
    """Stored bytes are never run by a browser."""
    return {
        "Content-Type": "application/octet-stream",
        "X-Blob-Media-Type": media_type,
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": "attachment",
    }


def _digest(request: web.Request) -> Digest:
    return parse_digest(request.match_info["digest"])


def _hashed(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
