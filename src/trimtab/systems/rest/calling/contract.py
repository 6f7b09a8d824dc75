"""What is asked of a service and what comes back: the few types that everything speaks which sends a request."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from trimtab.model.redacted import Redacted


class ErrorClass(enum.Enum):
    """What an error means for the object whose reconcile met it."""

    TERMINAL = "terminal"  # the spec must change
    IMMUTABLE = "immutable"  # a field that cannot be changed was
    DEPENDENCY = "dependency"  # something else is not ready yet
    CONFLICT = "conflict"  # someone else changed it, or works on it (409)
    PRECONDITION = "precondition"  # the ETag is no longer the one (412)
    THROTTLED = "throttled"  # the scope must wait
    AUTH = "auth"
    TRANSIENT = "transient"  # 5xx, timeouts, no connection
    UNKNOWN = "unknown"  # any other 4xx: tried again, seldom
    GONE = "gone"  # 404, 410
    EXISTS = "exists"  # a creation met what is there


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `verb` is what it is for: read, create, update, patch, delete, list, poll, join, export."""

    verb: str
    method: str
    url: str
    """A path with its query below the endpoint; only a poll or a next page is an absolute URL, and its host is checked."""
    body: Any = None
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}
    timeout: float | None = None
    envelope: str = ""  # as in the overlay: the path in the answer to what is meant
    wrap: str = ""  # the path in the request's body to put it at
    rules: tuple[Mapping[str, str], ...] = ()  # the overlay's, of what errors mean
    idempotency_key: str = ""
    secrets: tuple[Redacted, ...] = ()
    """Values in the body that no error may show, though the service repeats them."""

    def __repr__(self) -> str:
        return f"Request({self.verb}: {self.method} {self.url.partition('?')[0]})"  # the rest may be secret


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A success: 2xx, or 304 where it was asked for. `body` is decoded, None when there was none; the envelope is off."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: Any = None
    raw: Any = None
    """With the envelope."""
    url: str = ""
    """Where it came from, absolute."""


class CallError(Exception):
    """No success. The text is for conditions: it names the call, the code and what the service said, cut to a line, and
    never a secret. `uncertain`: the request may have taken effect all the same."""

    def __init__(
        self,
        kind: ErrorClass,
        message: str,
        *,
        status: int = 0,
        code: str = "",
        retry_after: float | None = None,
        uncertain: bool = False,
        request: Request | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.uncertain = uncertain
        self.request = request
        self.headers = headers or {}  # of the answer, names in lower case


class Caller(Protocol):
    """A service with one credential."""

    endpoint: str
    connection: str
    """Which endpoint and credential it is: what one of them was told is for others with the same. Without a secret."""

    async def call(self, request: Request) -> Answer:
        """The answer. Raises CallError for whatever is no success: nothing is retried here that may not be."""
        ...
