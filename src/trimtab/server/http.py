"""What passes between the wire and the verbs: a request, and one of two kinds of answer.

Nothing here knows a web server. `door.py` makes requests of connections; `local.py` makes them of method calls.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from trimtab.model.errors import StatusError
from trimtab.server.auth.identity import User
from trimtab.server.broadcast import Handover
from trimtab.server.streaming import BodyStream

if TYPE_CHECKING:
    from trimtab.server.audit.trail import Trail

JSON = b"application/json"
MAX_WARNINGS = 50


class Request(msgspec.Struct, kw_only=True):
    """One request after authentication. `query` has the first value of each parameter."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[bytes, bytes]
    body: bytes
    user: User
    warnings: list[str] = []
    parsed: Any = None  # the body's document, where it was read beforehand
    stream: BodyStream | None = None  # the body, where it is too large for memory; `body` is then empty
    trail: Trail | None = None  # what the audit log is to know of it
    search: bytes = b""  # the query as it came

    def annotate(self, key: str, value: str) -> None:
        """Tell the audit log something beside the request: a key of a domain's own, and a short value."""
        if self.trail is not None:
            self.trail.annotate(key, value)

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")

    def warn(self, text: str) -> None:
        """Tell the client something beside the answer. There is an end to it: each warning is a header."""
        if len(self.warnings) < MAX_WARNINGS and text not in self.warnings:
            self.warnings.append(text)


class Response(msgspec.Struct, kw_only=True):
    """A whole answer."""

    code: int = 200
    body: bytes = b""
    media: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()
    cache: bytes = b""  # what caches may do with it; "" is nothing


class Stream(msgspec.Struct, kw_only=True):
    """An answer that goes on: a watch, a large list, or a file. The reader may leave at any time; `frames` is then closed.

    A watch that has caught up may end with a Handover: then its events come from a broadcast. `flow` hides that. With a
    `length` the frames have so many bytes in sum, or end with an error, which cuts the connection. `ended` is called once
    the stream is closed, also when nobody read of it.
    """

    frames: AsyncIterator[bytes | Handover]
    code: int = 200
    media: bytes = JSON
    length: int | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    ended: Callable[[], None] | None = None

    async def flow(self) -> AsyncGenerator[bytes, None]:
        """The same as bytes only."""
        try:
            async for frame in self.frames:
                if isinstance(frame, bytes):
                    yield frame
                else:
                    async for piece in frame.follow():
                        yield piece
        finally:
            await self.close()

    async def close(self) -> None:
        try:
            await self.frames.aclose()  # type: ignore[attr-defined]
        finally:
            ended, self.ended = self.ended, None
            if ended is not None:
                ended()


Answer = Response | Stream


def json_response(document: Any, code: int = 200) -> Response:
    return Response(code=code, body=orjson.dumps(document) + b"\n")


def error_response(error: StatusError) -> Response:
    response = json_response(error.status(), error.code)
    headers: list[tuple[bytes, bytes]] = []
    if error.retry_after:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    if error.code == 401:
        headers.append((b"www-authenticate", b'Bearer realm="trimtab"'))
    response.headers = tuple(headers)
    return response
