"""The one HTTP client towards the world: registries, cloud APIs, metrics servers, any REST API.

    async with Outbound(Budget(), Tls(ca=pem), HostPin(hosts=("registry.example.com",))) as outbound:
        async with outbound.request("GET", url, headers={"Authorization": bearer(token)}) as response:
            async for piece in response.stream(max_bytes=10 << 20): ...
        tags = await outbound.json("GET", tags_url, scope="registry.example.com")

Flow: the scope gives a slot, a token and its pause → the request, with redirects → the answer; or again, as the retry
rules and the retry budget allow. A 429 or 503 with Retry-After stops the whole scope until then.

Guarantees: certificates are verified unless `insecure`; only pinned hosts and allowed addresses are connected to,
checked on the address that is used; credentials do not leave their origin; time, sizes, redirects and retries are
bounded; nothing is sent twice that may not be; no error shows a secret; cancellation frees slot and connection.

Assumptions: `timeout` is for the whole call, with its waits and its body; `math.inf` leaves a stream bounded only by
the silence it may keep (`Limits.read`). Any status is an answer to `request` and `fetch`; only `json` wants a success.

With `unix` all connections go to that socket, whatever host a URL names: `http://lxd/1.0`. Names are checked as ever;
there are no addresses to check.

Caveats: redirects count against the scope of the first request. Behind a proxy the address check sees the proxy, so
that the two cannot be had together.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec
import orjson
from aiohttp.abc import AbstractResolver

from trimtab import __version__
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.redacted import Redacted, basic
from trimtab.runtime.outbound.budget import Budget, Late, Scope, Scopes
from trimtab.runtime.outbound.errors import BudgetSpent, NotAllowed, OutboundError, Refused
from trimtab.runtime.outbound.pin import AddressRefused, HostPin
from trimtab.runtime.outbound.redirect import MOST, STATUSES, Hop, RedirectRefused, followed, url_of
from trimtab.runtime.outbound.response import Response, failed
from trimtab.runtime.outbound.retry import IDEMPOTENT, failure_of, pause_before_retry, retry_after
from trimtab.runtime.outbound.tls import Tls, context

Body = bytes | Mapping[str, Any] | list[Any] | Callable[[], AsyncIterable[bytes]]
"""Bytes, what becomes JSON, or a function that gives a new stream for each attempt."""
Headers = Mapping[str, str | Redacted]

EXCERPT = 4096


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What is waited for (seconds) and taken in at most."""

    total: float = 60.0
    connect: float = 10.0
    read: float = 30.0  # of silence
    body: int = 16 * 1024 * 1024
    connections: int = 128
    connections_per_host: int = 16


class Outbound:
    """Made once for what shares a budget and a pin; keeps its connections until it is closed."""

    def __init__(
        self,
        budget: Budget = Budget(),  # noqa: B008 - frozen
        tls: Tls = Tls(),  # noqa: B008
        host_pin: HostPin = HostPin(),  # noqa: B008
        *,
        limits: Limits = Limits(),  # noqa: B008
        clock: Clock | None = None,
        chance: random.Random | None = None,
        resolver: AbstractResolver | None = None,
        proxy_from_environment: bool = False,
        user_agent: str = f"trimtab/{__version__}",
        unix: Path | None = None,
    ) -> None:
        if proxy_from_environment and not (host_pin.private and host_pin.loopback):
            raise ValueError(
                "behind a proxy addresses cannot be checked: refuse private ones, or use a proxy, not both"
            )
        if proxy_from_environment and unix is not None:
            raise ValueError("a unix socket is not reached by a proxy")
        self._budget, self._tls, self._pin, self._limits = budget, tls, host_pin, limits
        self._unix = unix
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()  # noqa: S311 - jitter
        self._scopes = Scopes(budget, self._clock, self._chance)
        self._resolver = resolver
        self._proxy_from_environment = proxy_from_environment
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[bool, ssl.SSLContext] = {}
        self._making = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        scope: str | None = None,
        headers: Headers | None = None,
        body: Body | None = None,
        timeout: float | None = None,
        idempotent: bool | None = None,
    ) -> AsyncIterator[Response]:
        """The answer, whatever its status, with its body still to be read. `scope` is the host unless it is named."""
        asked = self._asked(method, url, scope, headers, body, timeout, idempotent)
        await self._enter(asked)
        try:
            response = await self._answer(asked, None)
            try:
                yield response
            finally:
                response.close()
        finally:
            asked.scope.leave()

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        scope: str | None = None,
        headers: Headers | None = None,
        body: Body | None = None,
        timeout: float | None = None,
        idempotent: bool | None = None,
        max_bytes: int | None = None,
    ) -> Response:
        """The answer, whatever its status, with its body read: one that breaks off half-way is retried too."""
        asked = self._asked(method, url, scope, headers, body, timeout, idempotent)
        await self._enter(asked)
        try:
            return await self._answer(asked, self._limits.body if max_bytes is None else max_bytes)
        finally:
            asked.scope.leave()

    async def json(
        self,
        method: str,
        url: str,
        *,
        scope: str | None = None,
        headers: Headers | None = None,
        body: Body | None = None,
        timeout: float | None = None,
        idempotent: bool | None = None,
        max_bytes: int | None = None,
    ) -> Any:
        """The document in a successful answer, None when it is empty; Refused for any other."""
        response = await self.fetch(
            method,
            url,
            scope=scope,
            headers={"Accept": "application/json", **(headers or {})},
            body=body,
            timeout=timeout,
            idempotent=idempotent,
            max_bytes=max_bytes,
        )
        content = await response.read()
        if not response.ok:
            raise Refused(response.method, response.url, response.status, content[:EXCERPT])
        return await response.json() if content else None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _asked(
        self,
        method: str,
        url: str,
        scope: str | None,
        headers: Headers | None,
        body: Body | None,
        timeout: float | None,
        idempotent: bool | None,
    ) -> _Asked:
        method = method.upper()
        try:
            target = url_of(url).with_fragment(None)
        except ValueError:
            raise NotAllowed(method, url, "it is no URL") from None
        if target.scheme not in ("http", "https") or not target.host:
            raise NotAllowed(method, url, "it is neither http nor https")
        sent = {"User-Agent": self._user_agent}
        if target.user is not None:
            sent["Authorization"] = basic(target.user, Redacted(target.password or "")).reveal()
            target = target.with_user(None)
        if isinstance(body, Mapping | list):
            sent["Content-Type"] = "application/json"
            body = orjson.dumps(body)
        given = {name: v.reveal() if isinstance(v, Redacted) else v for name, v in (headers or {}).items()}
        unpack = not any(name.lower() == "accept-encoding" for name in given)
        sent["Accept-Encoding"] = "gzip"
        named = {name.lower() for name in given}
        sent = {name: value for name, value in sent.items() if name.lower() not in named} | given
        return _Asked(
            hop=Hop(method, target, sent, body is not None),
            body=body,
            unpack=unpack,
            scope=self._scopes.of(scope if scope is not None else f"{target.host}:{target.port}"),
            deadline=self._clock.monotonic() + (self._limits.total if timeout is None else timeout),
            idempotent=method in IDEMPOTENT if idempotent is None else idempotent,
        )

    async def _enter(self, asked: _Asked) -> None:
        try:
            await asked.scope.enter(asked.deadline)
        except Late as late:
            raise BudgetSpent(asked.hop.method, str(asked.hop.url), str(late)) from None

    async def _answer(self, asked: _Asked, whole: int | None) -> Response:
        """Attempts until one succeeds or no other may follow. `whole`: the body is a part of the attempt."""
        asked.scope.earn()
        attempt = 1
        while True:
            outcome = await self._attempt(asked, whole)
            wish = outcome.retry_after if isinstance(outcome, Response) else None
            pause = self._pause(asked, outcome, attempt, wish)
            if pause is None:
                if isinstance(outcome, OutboundError):
                    raise outcome
                return outcome
            if isinstance(outcome, Response):
                outcome.close()
            if wish is None:  # else the whole scope waits, and this request with it
                await self._clock.sleep(pause)
            attempt += 1

    def _pause(
        self, asked: _Asked, outcome: Response | OutboundError, attempt: int, wish: float | None
    ) -> float | None:
        """Seconds until the next attempt; None: this outcome is the last. A server's wish is kept by all."""
        if isinstance(outcome, Response) and outcome.status not in self._budget.again:
            return None
        failure = failure_of(outcome.status if isinstance(outcome, Response) else outcome)
        if failure is None:
            return None
        if wish is not None:
            asked.scope.pause(wish)
        pause = pause_before_retry(
            self._budget, failure, attempt, idempotent=asked.idempotent, wish=wish, chance=self._chance
        )
        if pause is None or self._clock.monotonic() + pause > asked.deadline or not asked.scope.spend():
            return None
        return pause

    async def _attempt(self, asked: _Asked, whole: int | None) -> Response | OutboundError:
        response: Response | None = None
        done = False
        try:
            await asked.scope.turn(asked.deadline)
            response = await self._redirected(asked)
            if whole is not None:
                await response.read(whole)
            done = True
        except Late as late:
            return BudgetSpent(asked.hop.method, str(asked.hop.url), str(late))
        except OutboundError as error:
            return error
        finally:
            if response is not None and (whole is not None or not done):
                response.close()
        return response

    async def _redirected(self, asked: _Asked) -> Response:
        hop = asked.hop
        for _ in range(MOST + 1):
            response = await self._send(asked, hop)
            location = response.headers.get("Location")
            if response.status not in STATUSES or location is None:
                return response
            response.close()
            try:
                hop = followed(hop, response.status, location)
            except RedirectRefused as refused:
                raise NotAllowed(hop.method, str(hop.url), str(refused)) from None
        raise NotAllowed(asked.hop.method, str(asked.hop.url), f"it is redirected more than {MOST} times")

    async def _send(self, asked: _Asked, hop: Hop) -> Response:
        url = str(hop.url)
        if not self._pin.allows(hop.url.host or "", hop.url.port or 0):
            raise NotAllowed(hop.method, url, "its host is not among those that this client may talk to")
        left = asked.deadline - self._clock.monotonic()
        timeout = aiohttp.ClientTimeout(
            total=None if left == math.inf else max(left, 0.001),
            sock_connect=self._limits.connect,
            sock_read=self._limits.read,
        )
        data = asked.body if hop.with_body else None
        try:
            response = await self._connected().request(
                hop.method,
                hop.url,
                headers=hop.headers,
                data=data() if callable(data) else data,
                timeout=timeout,
                ssl=await self._context(hop.with_identity) if hop.url.scheme == "https" else True,
                allow_redirects=False,
            )
        except aiohttp.ClientConnectorError as raised:
            if isinstance(raised.os_error, AddressRefused):
                raise NotAllowed(hop.method, url, str(raised.os_error)) from None
            raise failed(raised, hop.method, url) from None
        except (TimeoutError, aiohttp.ClientError, OSError) as raised:
            raise failed(raised, hop.method, url) from None
        return Response(
            response,
            method=hop.method,
            unpack=asked.unpack,
            max_bytes=self._limits.body,
            retry_after=retry_after(response.headers.get("Retry-After"), self._clock.now()),
        )

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._connector(),
                trust_env=self._proxy_from_environment,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
            self._session._retry_connection = False  # it would go round our own rules
        return self._session

    def _connector(self) -> aiohttp.BaseConnector:
        most, most_per_host = self._limits.connections, self._limits.connections_per_host
        if self._unix is not None:
            return aiohttp.UnixConnector(str(self._unix), limit=most, limit_per_host=most_per_host)
        return aiohttp.TCPConnector(
            limit=most,
            limit_per_host=most_per_host,
            resolver=self._resolver,
            use_dns_cache=self._resolver is None,  # one that was passed in does as it sees fit
            socket_factory=self._pin.socket,
        )

    async def _context(self, with_identity: bool) -> ssl.SSLContext:
        async with self._making:
            if with_identity not in self._contexts:  # reads files, so in a thread
                made = await asyncio.to_thread(context, self._tls, with_identity=with_identity)
                self._contexts[with_identity] = made
            return self._contexts[with_identity]


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller wants."""

    hop: Hop
    body: bytes | Callable[[], AsyncIterable[bytes]] | None
    unpack: bool
    scope: Scope
    deadline: float
    idempotent: bool

    def __repr__(self) -> str:
        return f"Asked({self.hop!r})"  # the body may be secret
