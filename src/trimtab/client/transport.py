"""What carries a client's calls: HTTP to anywhere, or a call into a server in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote, urlencode

import msgspec
import orjson

from trimtab.client.config import ConfigError
from trimtab.model.errors import StatusError


class Unreachable(ConnectionError):  # noqa: N818 - it reads as what happened
    """No answer: the server is not there, or the connection broke. Whether a write took place is then unknown."""


class Silent(TimeoutError):  # noqa: N818
    """No answer in time."""


FAILURES = (StatusError, OSError, TimeoutError, ConfigError)
"""How a call may fail for a while: whoever runs for long waits these out and tries again."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request, independent of what carries it."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def url(self) -> str:
        return f"{self.path}?{urlencode(self.query, quote_via=quote)}" if self.query else self.path

    @property
    def safe(self) -> bool:
        """Whether it may be sent again when nobody knows what became of it."""
        return self.method in ("GET", "HEAD")


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a call. Codes from 400 on were already raised as StatusErrors."""

    code: int
    body: bytes


class Transport(Protocol):
    async def call(self, call: Call) -> Reply:
        """Raises StatusError for a refusal, Unreachable or Silent when there is no answer."""
        ...

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        """The lines of an answer that goes on. Raises Silent when nothing comes for `inactivity` seconds."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Batching(Protocol):
    """A transport that may carry many applies in one request."""

    @property
    def batches(self) -> bool:
        """Whether the server takes them so."""
        ...

    async def batch(self, calls: Sequence[Call]) -> list[Reply | StatusError]:
        """What `call` would say of each, in their order. Raises what `call` does when there is no answer for any."""
        ...


def document_of(body: bytes) -> dict[str, Any]:
    """The object in an answer. A page with code 200, as portals send it, is a StatusError like any other failure."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise StatusError(500, "InternalError", f"the server's answer is no object of the API: {_excerpt(body)}")
    return document


def refusal(code: int, body: bytes, retry_after: int | None = None) -> StatusError:
    """The StatusError of an answer, whatever its body is: proxies answer with pages of their own."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if isinstance(document, dict) and document.get("kind") == "Status":
        error = StatusError.from_status(document, code)
    else:
        said = _excerpt(body)
        error = StatusError(code, REASONS.get(code, ""), f"the server answered {code}" + (f": {said}" if said else ""))
    if retry_after is not None and error.retry_after is None:
        error.details = {**(error.details or {}), "retryAfterSeconds": retry_after}
    return error


def _excerpt(body: bytes) -> str:
    return " ".join(body[:2000].decode("utf-8", "replace").split())[:200]


REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
