"""One request to an API server behind this one, and its answer back, both as they come.

Guarantees: whoever asks was authenticated and authorized here first; nothing that the client says of who it is reaches the
other server, only what we know. Bodies of any size pass in both directions with bounded memory. A client that leaves ends
the call; an answer that breaks off is never taken for a whole one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from trimtab.model.errors import StatusError, bad_request
from trimtab.model.logs import log
from trimtab.server.aggregation.remote import Headers, Remote, failures, told, why
from trimtab.server.aggregation.services import ApiService
from trimtab.server.auth.identity import User
from trimtab.server.http import Answer, Request, Response, Stream
from trimtab.server.streaming import LONGEST, Cut
from trimtab.server.target import Target

if TYPE_CHECKING:
    import aiohttp

PATIENCE = 60.0  # seconds until an answer begins, and between two pieces of it; a watch may be silent for longer
SMALL = 256 * 1024
HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade")
)  # fmt: skip
NOT_SENT = HOP_BY_HOP | {"host", "content-length", "authorization", "expect", "audit-id"}
NOT_RETURNED = HOP_BY_HOP | {"content-length", "content-type", "date", "cache-control", "audit-id"}
TEXT = b"text/plain; charset=utf-8"
REDIRECTED = b"the backend attempted to redirect this request, which is not permitted"
LATE = "the server was unable to return a response in the time allotted, but may still be processing the request"


async def forward(
    remote: Remote, service: ApiService, request: Request, *, watching: bool, as_: User | None = None
) -> Answer:
    """`as_` is who asks, where that is not the request's user."""
    if not {".", ".."}.isdisjoint(request.path.split("/")):
        raise bad_request("a path that goes to another server may not have the segments . and ..")
    if not service.available:
        return refused("service unavailable")
    try:
        address = await remote.address(service)
    except LookupError as error:
        log.warning("a request to another API server has nowhere to go", service=service.name, error=str(error))
        return refused("service unavailable")
    patience = None if watching else PATIENCE + (LONGEST if request.stream is not None else 0)
    target = quote(request.path, safe="/:@!$&'()*+,;=-._~")
    if request.search:
        target += "?" + request.search.decode("latin-1")
    headers = sent(request.headers) + told(as_ or request.user) + audited(request)
    if request.stream is not None and request.stream.length is not None:
        headers.append(("content-length", str(request.stream.length)))
    body = request.stream if request.stream is not None else request.body or None
    try:
        async with asyncio.timeout(patience):
            response = await remote.send(service, address, request.method, target, headers, data=_payload(body))
    except TimeoutError:
        raise StatusError(504, "Timeout", LATE, {}) from None
    except failures() as error:
        return refused(f"error trying to reach service: {why(error)}")
    except ValueError as error:  # after the others: some of them are ValueErrors too
        return refused(str(error), 500)
    try:
        return await answered(response, head=request.method == "HEAD", watching=watching)
    except Cut as error:  # nothing of it has gone to the client yet
        return refused(f"error trying to reach service: {error}", 502)
    except BaseException:
        response.close()
        raise


async def answered(response: aiohttp.ClientResponse, *, head: bool, watching: bool) -> Answer:
    """Whole when it is small, else as it comes."""
    if 300 <= response.status < 400 and "location" in response.headers:
        response.close()
        return Response(code=502, body=REDIRECTED, media=TEXT)
    media = response.headers.get("content-type", "application/octet-stream").encode("utf-8", "surrogateescape")
    headers = returned(response)
    pieces = Pieces(response, None if watching else PATIENCE)
    if head:
        await pieces.aclose()
        return Stream(code=response.status, frames=pieces, media=media, length=_length(response), headers=headers)
    if watching:
        return Stream(code=response.status, frames=pieces, media=media, headers=headers)
    if await pieces.read_ahead(SMALL):
        return Response(code=response.status, body=pieces.taken(), media=media, headers=headers)
    return Stream(code=response.status, frames=pieces, media=media, length=_length(response), headers=headers)


class Pieces:
    """The body of an answer. Closed before its end, it takes its connection with it."""

    def __init__(self, response: aiohttp.ClientResponse, patience: float | None) -> None:
        self._response = response
        self._patience = patience
        self._ahead: list[bytes] = []

    async def read_ahead(self, most: int) -> bool:
        """Whether all of it came within so many bytes."""
        size = 0
        while size <= most:
            piece = await self._next()
            if not piece:
                return True
            self._ahead.append(piece)
            size += len(piece)
        return False

    def taken(self) -> bytes:
        return b"".join(self._ahead)

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> bytes:
        if self._ahead:
            return self._ahead.pop(0)
        piece = await self._next()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def _next(self) -> bytes:
        try:
            async with asyncio.timeout(self._patience):
                return await self._response.content.readany()
        except failures() as error:
            self._response.close()
            raise Cut(f"the other server broke off: {why(error)}") from None

    async def aclose(self) -> None:
        self._response.close()


def sent(headers: Mapping[bytes, bytes]) -> Headers:
    """What another server is told of a request: neither credentials nor what a client says of who it is."""
    named = {name.strip().lower() for name in headers.get(b"connection", b"").decode("latin-1").split(",")}
    found = []
    for raw, value in headers.items():
        name = raw.decode("latin-1")
        plain = name.replace("_", "-")  # some servers take the two for the same
        if name in NOT_SENT or name in named or plain.startswith(("x-remote-", "impersonate-")):
            continue
        found.append((name, value.decode("utf-8", "surrogateescape")))
    return found


def audited(request: Request) -> Headers:
    """The name of the request, so that both servers' audit logs have it under the same."""
    name = request.trail.identifier if request.trail is not None else request.header(b"audit-id")[:64]
    return [("Audit-ID", name)] if name else []


def returned(response: aiohttp.ClientResponse) -> tuple[tuple[bytes, bytes], ...]:
    named = {name.strip().lower() for name in response.headers.get("connection", "").split(",")}
    return tuple(
        (name.lower(), value)
        for name, value in response.raw_headers
        if (plain := name.decode("latin-1").lower()) not in NOT_RETURNED and plain not in named
    )


def refused(text: str, code: int = 503) -> Response:
    """As Go's http.Error."""
    return Response(
        code=code, body=text.encode() + b"\n", media=TEXT, headers=((b"x-content-type-options", b"nosniff"),)
    )


def target_of(path: str) -> Target | None:
    """What a path below a group and version names, as the real server reads it for any kind; None: no resource. A part that
    is empty stays: who answers may read it so, and what is judged must be what is answered."""
    parts = path.strip("/").split("/")[1:]
    if len(parts) < 3:
        return None
    group, version, *rest = parts
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in ("status", "finalize"):
            rest = rest[2:]
    padded = [*rest, "", ""]
    return Target(group, version, namespace, padded[0], padded[1], padded[2], watch)


def _payload(body: object) -> object:
    if isinstance(body, bytes):
        import io

        return io.BytesIO(body) if len(body) > 65_536 else body  # as bytes it would complain of large ones
    return body if body is None else _iterated(body)


async def _iterated(body: object):  # type: ignore[no-untyped-def]
    async for piece in body:  # type: ignore[attr-defined]
        yield piece


def _length(response: aiohttp.ClientResponse) -> int | None:
    text = response.headers.get("content-length", "")
    return int(text) if text.isdigit() and len(text) < 19 else None
