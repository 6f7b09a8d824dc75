"""A service with one credential: a request goes out, an answer comes back or a CallError that says what it means.

Guarantees: the credential goes to the endpoint's origin only, and to a poll host only where an operation is followed;
nothing that writes is sent twice; a write whose fate is not known says so (`uncertain`); what is no JSON, is cut off, is
too large or too deep never becomes an answer, and neither does a success with an error inside. No text shows a secret.

Caveat: GET and HEAD are asked for again a few times when the connection breaks or a gateway answers 502, 503 or 504.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import orjson

from trimtab.model.clock import Clock, SystemClock
from trimtab.model.redacted import Redacted, bearer
from trimtab.runtime.outbound import Budget, HostPin, Outbound, OutboundError, Response
from trimtab.runtime.outbound import Limits as Bounds
from trimtab.runtime.outbound.errors import BudgetSpent, NotAllowed, TimedOut, TlsFailed, TooLarge, Unreachable
from trimtab.runtime.outbound.retry import retry_after
from trimtab.runtime.outbound.tls import TlsError
from trimtab.systems.rest.calling.bodies import BodyError, decoded, unwrapped, wrapped
from trimtab.systems.rest.calling.contract import Answer, CallError, ErrorClass, Request
from trimtab.systems.rest.calling.endpoint import Endpoint, EndpointError, origin_of, parsed
from trimtab.systems.rest.calling.errors import READS, Problem, described, error_inside, error_of, ruled
from trimtab.systems.rest.calling.login import Login
from trimtab.systems.rest.calling.throttling import Throttle, scope_of

MOST_BYTES = 16 * 1024 * 1024
ATTEMPTS = 3


class Service:
    """Fulfils `contract.Caller`. Keeps its connections until it is closed."""

    def __init__(
        self,
        endpoint: str,
        login: Login = Login(),  # noqa: B008 - frozen
        *,
        headers: Mapping[str, str] | None = None,
        poll_hosts: tuple[str, ...] = (),
        throttle: Throttle | None = None,
        concurrent: int = 16,
        timeout: float = 30.0,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        ended: Callable[[str, str, float], None] | None = None,
        connection: str = "",
    ) -> None:
        """`ended` is told the verb, the result and the seconds of each call. EndpointError when the endpoint cannot be used."""
        self.endpoint, self.connection = endpoint, connection or endpoint
        self.in_flight = 0
        self._at: Endpoint = parsed(endpoint)
        self._login, self._headers, self._poll_hosts, self._timeout = login, dict(headers or {}), poll_hosts, timeout
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()  # noqa: S311 - jitter
        self._throttle = throttle or Throttle(clock=self._clock, chance=self._chance)
        self._concurrent = concurrent
        self._outbound = self._client(())
        self._polling = self._client(poll_hosts) if poll_hosts else self._outbound
        self._retired = False
        self._ended = ended
        self._token = Redacted("")

    async def call(self, request: Request) -> Answer:
        """The answer. Raises CallError for whatever is no success."""
        started, result = self._clock.monotonic(), "cancelled"
        self.in_flight += 1
        try:
            answer = await self._called(request)
            result = "ok"
            return answer
        except CallError as error:
            result = error.kind.value
            raise
        finally:
            self.in_flight -= 1
            if self._ended is not None:
                self._ended(request.verb, result, self._clock.monotonic() - started)
            if self._retired and not self.in_flight:
                await self.close()

    async def _called(self, request: Request) -> Answer:
        url = self._url(request)
        scope = scope_of(url)
        headers, query = await self._credential()
        await self._throttle.enter(request, scope)
        response = await self._sent(request, _with_query(url, query), headers)
        return await self._read(request, response, scope)

    async def retire(self) -> None:
        """Close it as soon as nothing is in flight."""
        self._retired = True
        if not self.in_flight:
            await self.close()

    async def close(self) -> None:
        await self._outbound.close()
        if self._polling is not self._outbound:
            await self._polling.close()
        if self._login.close is not None:
            await self._login.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Service({self._at.base})"

    def _client(self, more: tuple[str, ...]) -> Outbound:
        return Outbound(
            Budget(
                concurrent=self._concurrent,
                rate=_UNBOUNDED,  # the throttle's matter, which knows reads from writes
                burst=_UNBOUNDED,
                attempts=ATTEMPTS,
                again=(502, 503, 504),
                longest_wish=2.0,
            ),
            self._login.tls,
            HostPin(hosts=(self._at.host, *more)),
            limits=Bounds(total=self._timeout, read=self._timeout, body=MOST_BYTES),
            clock=self._clock,
            chance=self._chance,
            unix=self._at.unix,
        )

    def _url(self, request: Request) -> str:
        """The absolute URL, when it may be asked for."""
        try:
            url = self._at.absolute(request.url)
            if self._at.owns(url):
                return url
            if request.verb == "poll" and self._at.may_poll(url, self._poll_hosts):
                return url
            host = origin_of(url)
        except EndpointError as error:
            raise self._refused(request, str(error)) from None
        if request.verb == "poll":
            why = (
                f"the poll URL leaves the endpoint, to {host}: name its host in the RestService's pollHosts to allow it"
            )
        else:
            why = f"the URL leaves the endpoint, to {host}"
        raise self._refused(request, why)

    def _refused(self, request: Request, why: str) -> CallError:
        return CallError(
            ErrorClass.TERMINAL, described(request, why, self._secrets()), code="NotAllowed", request=request
        )

    async def _credential(self) -> tuple[dict[str, Redacted], Mapping[str, Redacted]]:
        headers = dict(self._login.headers)
        if self._login.token is not None:
            self._token = await self._login.token()
            headers["Authorization"] = bearer(self._token)
        return headers, self._login.query

    async def _sent(self, request: Request, url: str, credential: Mapping[str, Redacted]) -> Response:
        headers: dict[str, str | Redacted] = {"Accept": "application/json", **self._headers, **request.headers}
        body: bytes | None = None
        if request.body is not None:
            headers["Content-Type"] = request.content_type
            body = self._encoded(request)
        if request.idempotency_key:
            headers["Idempotency-Key"] = request.idempotency_key
        named = {name.lower() for name in credential}
        headers = {name: value for name, value in headers.items() if name.lower() not in named} | dict(credential)
        outbound = self._polling if request.verb == "poll" else self._outbound
        try:
            return await outbound.fetch(
                request.method,
                url,
                scope=scope_of(url),
                headers=headers,
                body=body,
                timeout=request.timeout,
                idempotent=request.method in READS,
            )
        except OutboundError as error:
            raise self._lost(request, error) from None
        except TlsError as error:
            raise CallError(ErrorClass.AUTH, described(request, str(error)), request=request) from None
        except ValueError as error:  # a line end in a header, a key that is no text
            why = f"it cannot be sent: {error}"
            raise CallError(ErrorClass.TERMINAL, described(request, why, self._secrets()), request=request) from None

    def _encoded(self, request: Request) -> bytes:
        try:
            return orjson.dumps(wrapped(request.body, request.wrap))
        except orjson.JSONEncodeError as error:
            raise CallError(
                ErrorClass.TERMINAL, described(request, f"the body is no JSON: {error}"), request=request
            ) from None

    def _lost(self, request: Request, error: OutboundError) -> CallError:
        """What it means that there is no answer."""
        kind = ErrorClass.TRANSIENT
        after: float | None = None
        if isinstance(error, NotAllowed):
            kind = ErrorClass.TERMINAL
        elif isinstance(error, TlsFailed):
            kind = ErrorClass.AUTH
        elif isinstance(error, TooLarge):
            kind = ErrorClass.UNKNOWN
        elif isinstance(error, BudgetSpent):
            kind, after = ErrorClass.THROTTLED, 5.0
        why = str(error).removeprefix(f"{error.method} {error.url}: ")
        unsure = error.sent and request.method not in READS
        if unsure and isinstance(error, Unreachable | TimedOut):
            why += "; whether it took effect is not known"
        return CallError(
            kind,
            described(request, why, self._secrets()),
            code=type(error).__name__,
            retry_after=after,
            uncertain=unsure,
            request=request,
        )

    async def _read(self, request: Request, response: Response, scope: str) -> Answer:
        headers = self._clean({name.lower(): value for name, value in response.headers.items()})
        wish = retry_after(headers.get("retry-after"), self._clock.now())
        refused = False
        try:
            return await self._answer(request, response, headers, wish)
        except CallError as error:
            refused = error.kind is ErrorClass.THROTTLED
            raise
        finally:
            self._throttle.learn(request, scope, headers, refused=refused, wish=wish)

    async def _answer(
        self, request: Request, response: Response, headers: Mapping[str, str], wish: float | None
    ) -> Answer:
        content = await response.read()
        ok = response.ok or (response.status == 304 and _asked_for(request))
        try:
            raw = decoded(content, headers.get("content-type", ""), strict=ok and request.verb != "delete")
        except BodyError as error:
            raise self._unreadable(request, response.status, str(error), wish) from None
        text = "" if raw is not None or not content else content[:2048].decode("utf-8", "replace")
        if not ok or error_inside(raw):
            status, secrets = _status(response.status, raw), self._secrets()
            raise error_of(request, status, raw, text=text, retry_after=wish, headers=headers, secrets=secrets)
        return Answer(
            status=response.status,
            headers=headers,
            body=unwrapped(raw, request.envelope),
            raw=raw,
            url=_without_query(response.url, self._login.query),
        )

    def _unreadable(self, request: Request, status: int, why: str, wish: float | None) -> CallError:
        """A page of some proxy on the way, or half an answer: it is never taken for what the service says."""
        kind = ErrorClass.TRANSIENT if status < 400 or status >= 500 else ErrorClass.UNKNOWN
        if status in (401, 403):
            kind = ErrorClass.AUTH
        if status == 429:
            kind = ErrorClass.THROTTLED
        return CallError(
            ruled(status, Problem(why), request.rules) or kind,
            described(request, f"{status}: {why}", self._secrets()),
            status=status,
            code="Unreadable",
            retry_after=wish,
            uncertain=request.method not in READS and (status < 400 or status >= 500),
            request=request,
        )

    def _secrets(self) -> tuple[Redacted, ...]:
        login = self._login
        return (*login.headers.values(), *login.query.values(), *login.secrets, self._token)

    def _clean(self, headers: dict[str, str]) -> dict[str, str]:
        """A service may repeat our key in the URLs that it gives, which are kept in a status."""
        for name in ("location", "operation-location", "azure-asyncoperation", "content-location"):
            if name in headers:
                headers[name] = _without_query(headers[name], self._login.query)
        return headers


_UNBOUNDED = 1_000_000


def _asked_for(request: Request) -> bool:
    return any(name.lower() in ("if-none-match", "if-modified-since") for name in request.headers)


def _status(status: int, raw: Any) -> int:
    """LXD tells the status of an error inside too."""
    inner = raw.get("error_code") if isinstance(raw, Mapping) else None
    return inner if status < 400 and isinstance(inner, int) and 400 <= inner < 600 else status


def _with_query(url: str, query: Mapping[str, Redacted]) -> str:
    if not query:
        return url
    url = _without_query(url, query)
    pairs = "&".join(f"{quote(name)}={quote(value.reveal(), safe='')}" for name, value in query.items())
    return f"{url}{'&' if '?' in url else '?'}{pairs}"


def _without_query(url: str, query: Mapping[str, Redacted]) -> str:
    if not query or "?" not in url:
        return url
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in query]
    return urlunsplit(parts._replace(query=urlencode(kept)))
