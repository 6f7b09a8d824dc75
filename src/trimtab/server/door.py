"""Between the wire and the server: who is it, are there too many, what was asked; and how it went, for the metrics."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl

from trimtab.model.errors import StatusError, bad_request
from trimtab.server.auth.identity import Authenticator, User
from trimtab.server.auth.impersonation import impersonated
from trimtab.server.auth.limits import InFlight, Limits
from trimtab.server.broadcast import Handover
from trimtab.server.core import Server
from trimtab.server.http import Request, Response, Stream, error_response
from trimtab.server.wire import Incoming


class Door:
    """Answers what the wire brings. `local` is who comes without credentials: the owner, on the unix socket."""

    def __init__(
        self, server: Server, authenticator: Authenticator, *, limits: Limits | None = None, local: User | None = None
    ) -> None:
        self._server = server
        self._authenticator = authenticator
        self._local = local
        self._in_flight = InFlight(limits or Limits())
        self._audit = itertools.count(1)
        self._run = str(uuid.uuid4())[:24].encode()  # of this run; the count makes it a request's

    async def __call__(self, incoming: Incoming) -> Response | Stream:
        started = time.perf_counter()
        warnings: list[str] = []
        try:
            answer = await self._answer(incoming, warnings)
        except StatusError as error:
            answer = error_response(error)
        if isinstance(answer, Stream):
            return answer
        self._server.metrics.observe(incoming.method, answer.code, time.perf_counter() - started)
        audit = incoming.headers.get(b"audit-id") or self._run + b"%012x" % next(self._audit)
        answer.headers = (*answer.headers, (b"audit-id", audit[:64]))
        if warnings:
            answer.headers += tuple((b"warning", _warning(text)) for text in warnings)
        return answer

    async def _answer(self, incoming: Incoming, warnings: list[str]) -> Response | Stream:
        user = await self._user(incoming)
        if incoming.impersonation:
            user = impersonated(self._server.authorizer, user, incoming.impersonation)
        query = _query(incoming.query) if incoming.query else {}
        watching = "watch" in query and incoming.method == "GET" and query["watch"] not in ("false", "0")
        place = self._in_flight.acquire(user, watching)
        with place:
            answer = await self._server.handle(
                Request(
                    method=incoming.method,
                    path=incoming.path,
                    query=query,
                    headers=incoming.headers,
                    body=incoming.body,
                    user=user,
                    warnings=warnings,
                )
            )
            if not isinstance(answer, Stream):
                return answer
        return self._counted(answer, user)

    def _counted(self, stream: Stream, user: User) -> Stream:
        """A watch holds its place for as long as it goes on."""
        place = self._in_flight.acquire(user, True)
        frames = stream.frames

        async def held() -> AsyncIterator[bytes | Handover]:
            with place:
                try:
                    async for frame in frames:
                        yield frame
                finally:
                    await stream.close()

        return Stream(frames=held(), media=stream.media)

    async def _user(self, incoming: Incoming) -> User:
        authorization = incoming.headers.get(b"authorization")
        if authorization is None and self._local is not None:
            return self._local
        known = self._authenticator.known(authorization, incoming.peer)
        if known is not None:
            return known
        return await self._authenticator.authenticate(authorization, incoming.peer)


def _query(raw: bytes) -> dict[str, str]:
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
