"""What passes between the wire and the verbs: a request, and one of two kinds of answer.

Nothing here knows a web server. `door.py` makes requests of connections; `local.py` makes them of method calls.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import msgspec
import orjson

from trimtab.model.errors import StatusError
from trimtab.server.auth.identity import User
from trimtab.server.broadcast import Handover

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


class Stream(msgspec.Struct, kw_only=True):
    """An answer that goes on: a watch, or a large list. The reader may leave at any time; `frames` is then closed.

    A watch that has caught up may end with a Handover: then its events come from a broadcast. `flow` hides that.
    """

    frames: AsyncIterator[bytes | Handover]
    media: bytes = JSON

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
        await self.frames.aclose()  # type: ignore[attr-defined]


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
