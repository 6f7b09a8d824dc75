"""Blobs behind HTTP: a client of `trimtab.storage.serve`.

Bytes come to disk here first, so that their digest is known and they can be sent again. A token goes only over TLS that
is verified, or over loopback.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from trimtab.model.clock import Clock, SystemClock
from trimtab.model.hosts import is_loopback
from trimtab.storage.blobs import (
    CHUNK,
    MAX_BYTES,
    BlobDamaged,
    BlobError,
    BlobInfo,
    BlobMissing,
    BlobsUnavailable,
    BlobTooLarge,
    Collected,
    Data,
    Digest,
    check_media_type,
    check_owner,
    parse_digest,
    verified,
)
from trimtab.storage.retry import retried
from trimtab.storage.spool import Spool, spooled

T = TypeVar("T")

_BRIEF = 64 << 10  # bytes of an answer that is no blob


class HttpBlobs:
    """Fulfils `Blobs`. `token` is asked at each request; `ca` is a PEM file, instead of the system's authorities."""

    def __init__(
        self,
        url: str,
        *,
        token: Callable[[], str],
        ca: str | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        max_bytes: int = MAX_BYTES,
        idle: float = 60.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            raise ValueError(
                "blobs over HTTP need https:// (http:// only on loopback): a token would be read on the way"
            )
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError(
                "the URL of blobs over HTTP takes no user, password or query: the token has a file of its own"
            )
        self._url = url.rstrip("/")
        self._token = token
        self._tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()  # noqa: S311 - it spreads retries
        self._max_bytes = max_bytes
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=idle)
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"HttpBlobs({self._url!r})"

    async def put(
        self, data: Data, *, media_type: str = "", expected: Digest | None = None, max_bytes: int | None = None
    ) -> Digest:
        check_media_type(media_type)
        limit = self._max_bytes if max_bytes is None else min(max_bytes, self._max_bytes)
        async with spooled(data, max_bytes=limit, expected=expected) as spool:
            headers = {"X-Blob-Media-Type": media_type} if media_type else {}
            await self._ask("PUT", f"/blobs/{spool.digest}", digest=spool.digest, spool=spool, headers=headers)
            return spool.digest

    async def open(self, digest: Digest) -> AsyncIterator[bytes]:
        """A connection that breaks in the midst is an error: what was yielded cannot be taken back."""
        parse_digest(digest)
        response = await self._retried(lambda: self._send("GET", f"/blobs/{digest}", digest))
        try:
            async for chunk in verified(digest, response.content.iter_chunked(CHUNK)):
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise BlobsUnavailable(f"{self._url} ended the blob {digest} too early: {error}") from error
        finally:
            response.close()

    async def stat(self, digest: Digest) -> BlobInfo:
        headers, _ = await self._ask("HEAD", f"/blobs/{parse_digest(digest)}", digest=digest)
        return BlobInfo(digest, int(headers["Content-Length"]), headers.get("X-Blob-Media-Type", ""))

    async def pin(self, digest: Digest, owner: str) -> None:
        await self._ask("PUT", f"/blobs/{parse_digest(digest)}/pins/{_quoted(owner)}", digest=digest)

    async def unpin(self, owner: str, digest: Digest | None = None) -> None:
        blob = "" if digest is None else f"/blobs/{parse_digest(digest)}"
        await self._ask("DELETE", f"{blob}/pins/{_quoted(owner)}", digest=digest)

    async def collect(self, *, grace: float) -> Collected:
        _, body = await self._ask("POST", f"/collect?grace={grace!r}")
        try:
            return msgspec.json.decode(body, type=Collected)
        except msgspec.DecodeError as error:
            raise BlobsUnavailable(f"{self._url} is no service of blobs: {error}") from None

    async def ready(self) -> None:
        await self._ask("GET", "/ready")

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(self, method: str, path: str, **options: Any) -> tuple[Mapping[str, str], bytes]:
        """Headers and body of a short answer."""

        async def once() -> tuple[Mapping[str, str], bytes]:
            response = await self._send(method, path, **options)
            try:
                return response.headers, await response.content.read(_BRIEF)
            finally:
                response.close()

        return await self._retried(once)

    async def _retried(self, act: Callable[[], Awaitable[T]]) -> T:
        try:
            return await retried(act, _AWAY, clock=self._clock, chance=self._chance)
        except (aiohttp.ClientError, OSError) as error:
            raise BlobsUnavailable(f"blobs at {self._url}: {error or type(error).__name__}") from error

    async def _send(
        self,
        method: str,
        path: str,
        digest: Digest | None = None,
        spool: Spool | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> aiohttp.ClientResponse:
        """A response of success, whose body is still to be read."""
        session = self._session
        if session is None:
            session = self._session = aiohttp.ClientSession(timeout=self._timeout, auto_decompress=False)
        sent = {"Authorization": f"Bearer {self._token()}", "Accept-Encoding": "identity", **(headers or {})}
        if spool is not None:
            sent["Content-Length"] = str(spool.size)
        try:
            response = await session.request(
                method,
                self._url + path,
                headers=sent,
                data=None if spool is None else spool.chunks(),
                ssl=self._tls if self._tls is not None else True,
                allow_redirects=False,  # a token is for this host alone
            )
        except aiohttp.ClientConnectorCertificateError as error:  # no attempt will change it
            raise BlobsUnavailable(f"{self._url} is not trusted: {error.certificate_error}") from None
        if response.status < HTTPStatus.MULTIPLE_CHOICES:
            return response
        try:
            body = await response.content.read(_BRIEF)
        finally:
            response.close()
        raise self._failure(response.status, body, digest)

    def _failure(self, code: int, body: bytes, digest: Digest | None) -> BlobError:
        try:
            reason = msgspec.json.decode(body, type=_Failure).reason
            message = msgspec.json.decode(body, type=_Failure).message[:1024]
        except msgspec.DecodeError:
            reason = message = ""
        if digest is not None and code == HTTPStatus.NOT_FOUND and reason in ("BlobMissing", ""):
            return BlobMissing(digest)
        if digest is not None and reason == "BlobDamaged":
            return BlobDamaged(digest, "the service says so")
        if code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return BlobTooLarge(self._max_bytes)
        what = f"{self._url} answered {code}: {message}"
        if code == HTTPStatus.UNAUTHORIZED:
            what += " (see the token file of --blobs)"
        return _Busy(what) if code in _BUSY else BlobsUnavailable(what)


class _Failure(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _Busy(BlobsUnavailable):
    """May be gone at the next attempt."""


_BUSY = (429, 502, 503, 504)
_AWAY = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, asyncio.TimeoutError, _Busy)


def _quoted(owner: str) -> str:
    return quote(check_owner(owner), safe="/")
