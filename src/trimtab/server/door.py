"""Between the wire and the server: who is it, are there too many, what was asked; and how it went, for the metrics."""

from __future__ import annotations

import asyncio
import functools
import itertools
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from trimtab.model.errors import StatusError, bad_request, too_large, unauthorized
from trimtab.server import batch
from trimtab.server.auth.identity import UNAUTHENTICATED, Authenticator, User
from trimtab.server.auth.impersonation import impersonated
from trimtab.server.auth.limits import InFlight, Limits
from trimtab.server.body import MAX_BODY
from trimtab.server.broadcast import Handover
from trimtab.server.core import Server
from trimtab.server.heavy import HEAVY, Heavy
from trimtab.server.http import Request, Response, Stream, error_response
from trimtab.server.streaming import BodyStream, gathered
from trimtab.server.wire import LARGE, Incoming

if TYPE_CHECKING:
    from trimtab.server.audit.trail import Auditor, Trail

SHORT = 128
"""Bytes of a query that is remembered."""


class Door:
    """Answers what the wire brings. `local` is who comes without credentials: the owner, on the unix socket."""

    def __init__(
        self,
        server: Server,
        authenticator: Authenticator | None,
        *,
        limits: Limits | None = None,
        local: User | None = None,
        identify: Callable[[Incoming], Awaitable[User]] | None = None,
    ) -> None:
        """`identify` tells who asks where others than the authenticator know: behind a proxy."""
        self._server = server
        self._authenticator = authenticator
        self._identify = identify
        self._local = local
        self._in_flight = InFlight(limits or Limits())
        self._heavy = Heavy()
        self._audit = itertools.count(1)
        self._run = str(uuid.uuid4())[:24].encode()  # of this run; the count makes it a request's

    async def __call__(self, incoming: Incoming) -> Response | Stream:
        started = time.perf_counter()
        warnings: list[str] = []
        given = incoming.headers.get(b"audit-id")
        identifier = given[:64] if given else self._run + b"%012x" % next(self._audit)
        incoming.headers[b"audit-id"] = identifier  # a server behind this one writes it down, too
        audit = self._server.audit
        try:
            if audit is None:
                answer = await self._answer(incoming, warnings, await self._user(incoming), None)
            else:
                answer = await self._audited(incoming, warnings, audit, identifier)
        except StatusError as error:
            answer = error_response(error)
        if isinstance(answer, Response):
            self._server.metrics.observe(incoming.method, answer.code, time.perf_counter() - started)
        answer.headers = (*answer.headers, (b"audit-id", identifier))
        if warnings:
            answer.headers += tuple((b"warning", _warning(text)) for text in warnings)
        return answer

    async def _audited(
        self, incoming: Incoming, warnings: list[str], audit: Auditor, identifier: bytes
    ) -> Response | Stream:
        """The same, with a trail in the audit log where its policy says so."""
        user, refusal = None, None
        try:
            user = await self._user(incoming)
        except StatusError as error:
            refusal = error
        trail = audit.begin(
            identifier.decode("latin-1"),
            method=incoming.method,
            path=incoming.path,
            query=_query_or_nothing(incoming.query),
            raw_query=incoming.query.decode("latin-1"),
            headers=incoming.headers,
            address=incoming.address,
            user=user,
        )
        if user is None or refusal is not None:
            refusal = refusal or unauthorized()
            if trail is not None:
                trail.refused(refusal.code, incoming.headers.get(b"authorization"), incoming.peer is not None)
            raise refusal
        if trail is None:
            return await self._answer(incoming, warnings, user, None)
        trail.received()
        media = incoming.headers.get(b"content-type", b"").decode("latin-1")
        try:
            answer = await self._answer(incoming, warnings, user, trail)
        except StatusError as error:
            answer = error_response(error)
        except asyncio.CancelledError:
            trail.left()
            raise
        if isinstance(answer, Response):
            trail.complete(answer, incoming.body, media)
            return answer
        trail.started(answer.code)
        return _traced(answer, trail)

    async def _answer(
        self, incoming: Incoming, warnings: list[str], user: User, trail: Trail | None
    ) -> Response | Stream:
        if incoming.impersonation:
            if self._identify is not None:
                raise bad_request("impersonation is the business of the API server in front: ask it")
            user = impersonated(self._server.authorizer, user, incoming.impersonation)
            if trail is not None:
                trail.impersonated(user)
        query = _query(incoming.query) if incoming.query else {}
        watching = "watch" in query and incoming.method == "GET" and query["watch"] not in ("false", "0")
        place = self._in_flight.acquire(user, watching)
        with place:
            if incoming.gathers and incoming.stream is not None:
                incoming.body, stream = await _whole(incoming.stream, user), None
            else:
                stream = incoming.stream
            if incoming.path == batch.PATH and incoming.method == "POST" and self._local is not None:
                return await batch.answer(incoming, self, user if self._server.audit is None else None)
            request = Request(
                method=incoming.method,
                path=incoming.path,
                query=query,
                headers=incoming.headers,
                body=incoming.body,
                user=user,
                warnings=warnings,
                stream=stream,
                trail=trail,
                search=incoming.query,
            )
            if len(request.body) < HEAVY:
                answer = await self._server.handle(request)
            else:
                with await self._heavy.turn(user.name):
                    answer = await self._server.handle(request)
            if not isinstance(answer, Stream):
                return answer
        try:
            return self._counted(answer, user)
        except StatusError:  # there are too many already
            await answer.close()
            raise

    def _counted(self, stream: Stream, user: User) -> Stream:
        """A watch holds its place for as long as it goes on, and gives it back also when nobody began to read."""
        place = self._in_flight.acquire(user, True)
        before = stream.ended

        def ended() -> None:
            place.__exit__(None, None, None)
            if before is not None:
                before()

        stream.ended = ended
        return stream

    async def _user(self, incoming: Incoming) -> User:
        if incoming.user is not None:
            return incoming.user
        if self._identify is not None:
            return await self._identify(incoming)
        authorization = incoming.headers.get(b"authorization")
        if authorization is None and self._local is not None:
            return self._local
        assert self._authenticator is not None  # noqa: S101 - one of the two is given
        known = self._authenticator.known(authorization, incoming.peer)
        if known is not None:
            return known
        return await self._authenticator.authenticate(authorization, incoming.peer)


async def _whole(stream: BodyStream, user: User) -> bytes:
    limit = LARGE if UNAUTHENTICATED in user.groups else MAX_BODY  # of strangers there may be any number
    if (stream.length or 0) > limit:
        raise too_large(f"Request entity too large: limit is {limit}")
    return await gathered(stream, limit)


def _traced(stream: Stream, trail: Trail) -> Stream:
    """The end of what goes on is told, however it comes."""
    before, frames = stream.ended, stream.frames

    def ended() -> None:
        trail.ended()
        if before is not None:
            before()

    stream.ended = ended
    if trail.wants_pieces:

        async def told() -> AsyncIterator[bytes | Handover]:
            try:
                async for frame in frames:
                    if isinstance(frame, bytes):
                        trail.piece(frame)
                    yield frame
            finally:
                await frames.aclose()  # type: ignore[attr-defined]

        stream.frames = told()
    return stream


def _query_or_nothing(raw: bytes) -> dict[str, str]:
    """For who only looks on: what does not parse is refused when it is answered."""
    try:
        return _query(raw) if raw else {}
    except StatusError:
        return {}


def _query(raw: bytes) -> dict[str, str]:
    return dict(_short_query(raw)) if len(raw) <= SHORT else _parsed_query(raw)


@functools.lru_cache(maxsize=256)
def _short_query(raw: bytes) -> dict[str, str]:
    """Clients ask with the same few words all the time."""
    return _parsed_query(raw)


def _parsed_query(raw: bytes) -> dict[str, str]:
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
