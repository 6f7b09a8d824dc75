"""The storage of another process: a client of `api`. It gives the same answers and raises the same errors.

Reads are tried again while the service is away for a moment. A commit is tried again only when it was never sent: else nobody
knows whether it was done, and only its caller, who has expectations, can find out.
"""

from __future__ import annotations

import asyncio
import io
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from trimtab.hub.storage.contract import (
    Identity,
    Row,
    RowBatch,
    RowKey,
    RowPage,
    RowQuery,
    RowWrite,
    Snapshot,
    StorageUnavailable,
)
from trimtab.hub.storage.wire import BLOBS, VERSION, ChangesQuery, Failure, IdsQuery, Line, error_of
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.hosts import is_loopback
from trimtab.storage.blobs import Blobs
from trimtab.storage.http import HttpBlobs
from trimtab.storage.retry import retried

T = TypeVar("T")

MAX_ANSWER = 1 << 30
"""The most bytes of an answer: a page of 10,000 large rows."""
LINE = 64 << 20
"""The most bytes of a line of changes."""
_PIECE = 1 << 16


class HttpStorage:
    """`Storage` behind HTTP. `token` is asked at each request; `ca` is a PEM file, instead of the system's authorities."""

    def __init__(
        self,
        url: str,
        *,
        token: Callable[[], str],
        ca: str | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        idle: float = 60.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            raise ValueError("a storage over HTTP needs https:// (http:// only on loopback): its token would be read")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("the URL of a storage takes no user, password or query: the token has a file of its own")
        self._url = url.rstrip("/")
        self._token = token
        self._tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()  # noqa: S311 - it spreads retries
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=2 * idle)
        self._blobs = HttpBlobs(
            self._url + BLOBS, token=token, ca=ca, clock=self._clock, chance=self._chance, idle=idle
        )
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"HttpStorage({self._url!r})"

    @property
    def blobs(self) -> Blobs:
        return self._blobs

    async def get(self, key: RowKey) -> Row | None:
        found: Row | None = await self._ask("get", key, Row | None)
        return found

    async def list(self, query: RowQuery) -> RowPage:
        found: RowPage = await self._ask("list", query, RowPage)
        return found

    async def commit(self, write: RowWrite) -> Row:
        found: Row = await self._ask("commit", write, Row, again=_UNSENT)
        return found

    async def changes(self, organization: str, types: Sequence[str], since: int) -> AsyncIterator[RowBatch]:
        asked = ChangesQuery(organization=organization, types=tuple(types), since=since)
        response = await self._retried(lambda: self._send("POST", "changes", asked), _AWAY)
        try:
            async for line in _lines(response.content, self._url):
                if line.failure is not None:
                    raise error_of(line.failure, self._url)
                if line.batch is not None:
                    yield line.batch
        except msgspec.DecodeError as error:
            raise self._foreign(error) from None
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._unavailable(error) from None
        finally:
            response.close()
        raise StorageUnavailable(f"{self._url} ended the changes")

    async def horizon(self) -> tuple[int, int]:
        found: tuple[int, int] = await self._ask("horizon", None, tuple[int, int], method="GET")
        return found

    async def ids(self, organization: str, type: str, project: str | None, names: Sequence[str]) -> Mapping[str, str]:  # noqa: A002
        asked = IdsQuery(organization=organization, type=type, project=project, names=tuple(names))
        found: Mapping[str, str] = await self._ask("ids", asked, dict[str, str])
        return found

    async def names(self, ids: Sequence[str]) -> Mapping[str, Identity]:
        found: Mapping[str, Identity] = await self._ask("names", tuple(ids), dict[str, Identity])
        return found

    async def versions(self, key: RowKey) -> Sequence[Snapshot]:
        found: Sequence[Snapshot] = await self._ask("versions", key, _Snapshots)
        return found

    async def organizations(self) -> Sequence[str]:
        found: Sequence[str] = await self._ask("organizations", None, _Names, method="GET")
        return found

    async def add_organization(self, name: str) -> None:
        await self._ask("organizations", name, None)

    async def ready(self) -> None:
        await self._ask("ready", None, None, method="GET")

    async def close(self) -> None:
        await self._blobs.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(
        self,
        what: str,
        body: Any,
        kind: Any,
        *,
        method: str = "POST",
        again: tuple[type[Exception], ...] | None = None,
    ) -> Any:
        async def once() -> Any:
            async with await self._send(method, what, body) as response:
                content = await _bounded(response)
            return None if kind is None else msgspec.json.decode(content, type=kind)

        return await self._retried(once, _AWAY if again is None else again)

    async def _retried(self, act: Callable[[], Awaitable[T]], temporary: tuple[type[Exception], ...]) -> T:
        try:
            return await retried(act, temporary, clock=self._clock, chance=self._chance)
        except msgspec.DecodeError as error:
            raise self._foreign(error) from None
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._unavailable(error) from None

    async def _send(self, method: str, what: str, body: Any) -> aiohttp.ClientResponse:
        """A response of success, whose body is still to be read."""
        session = self._session
        if session is None:
            connector = aiohttp.TCPConnector(limit=64)
            session = self._session = aiohttp.ClientSession(timeout=self._timeout, connector=connector)
        response = await session.request(
            method,
            f"{self._url}/{VERSION}/{what}",
            data=None if body is None else io.BytesIO(msgspec.json.encode(body)),
            headers={"Authorization": f"Bearer {self._token()}"},
            ssl=self._tls if self._tls is not None else True,
            allow_redirects=False,  # a token is for this host alone
        )
        if response.status < 300:
            return response
        async with response:
            content = await _bounded(response)
        try:
            failure = msgspec.json.decode(content, type=Failure)
        except msgspec.DecodeError:
            failure = Failure(reason="", message="no storage service")
        if response.status == 401:
            raise StorageUnavailable(f"{self._url} refuses the token: see its file")
        raise error_of(failure, f"{self._url} answered {response.status}")

    def _foreign(self, error: Exception) -> StorageUnavailable:
        return StorageUnavailable(f"{self._url} is no storage service of this release: {error}")

    def _unavailable(self, error: BaseException) -> StorageUnavailable:
        return StorageUnavailable(f"{self._url}: {error or type(error).__name__}")


_Snapshots = list[Snapshot]
_Names = list[str]
_UNSENT = (aiohttp.ClientConnectorError,)
_AWAY = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, asyncio.TimeoutError)


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    whole = bytearray()
    async for piece in response.content.iter_any():
        whole += piece
        if len(whole) > MAX_ANSWER:
            raise StorageUnavailable(f"{response.url.host} sent more than {MAX_ANSWER} bytes")
    return bytes(whole)


async def _lines(content: aiohttp.StreamReader, place: str) -> AsyncIterator[Line]:
    """One for each line, of any length up to LINE."""
    held = bytearray()
    async for piece in content.iter_chunked(_PIECE):
        start = len(held)
        held += piece
        while (end := held.find(b"\n", start)) >= 0:
            yield msgspec.json.decode(held[:end], type=Line)
            del held[: end + 1]
            start = 0
        if len(held) > LINE:
            raise StorageUnavailable(f"{place} sent a line of more than {LINE} bytes")
