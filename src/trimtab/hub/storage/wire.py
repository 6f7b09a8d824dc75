"""What the service's API and its clients say to each other. JSON; a failure names the error that the client raises again.

POST /v1/get            a key → a row or null
POST /v1/list           a query → a page
POST /v1/commit         a write → a row
POST /v1/changes        {organization, types, since} → a batch on each line, for as long as both are there
POST /v1/ids            {organization, type, project, names} → {name: ID}
POST /v1/names          [ID] → {ID: identity}
POST /v1/versions       a key → [snapshot]
GET  /v1/horizon        [newest, oldest]
GET  /v1/organizations  [name]; POST: a name
/v1/artifacts/…         blobs, as `trimtab.storage.serve` has them
GET  /v1/ready          whether the database can be used
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.hub.storage.contract import (
    InUse,
    Published,
    Row,
    RowBatch,
    RowConflict,
    RowKey,
    StorageUnavailable,
    StorageUnusable,
    Unknown,
)
from trimtab.store.contract import Gone, NotYet, TooLarge

VERSION = "v1"
BLOBS = f"/{VERSION}/artifacts"
MAX_BODY = 16 << 20
"""The most bytes of a request: a row of the largest size, with room for how JSON writes it."""


class ChangesQuery(msgspec.Struct, frozen=True, kw_only=True):
    organization: str
    types: tuple[str, ...] = ()
    since: int = 0


class IdsQuery(msgspec.Struct, frozen=True, kw_only=True):
    organization: str
    type: str
    project: str | None = None
    names: tuple[str, ...] = ()


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error by its name, with what it carries."""

    reason: str
    message: str = ""
    key: RowKey | None = None
    current: Row | None = None
    version: str = ""
    revision: int = 0
    bound: int = 0  # the oldest, or the newest


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of changes: a batch, or why there are no more."""

    batch: RowBatch | None = None
    failure: Failure | None = None


def failure_of(error: Exception) -> tuple[int, Failure]:
    """The code of the answer, and its body."""
    said: dict[str, Any] = {"reason": type(error).__name__, "message": str(error)}
    match error:
        case RowConflict():
            return 409, Failure(**said, key=error.key, current=error.current)
        case Published():
            return 422, Failure(**said, key=error.key, version=error.version)
        case InUse():
            return 409, Failure(**said)
        case Unknown():
            return 404, Failure(**said)
        case Gone():
            return 410, Failure(**said, revision=error.revision, bound=error.oldest)
        case NotYet():
            return 425, Failure(**said, revision=error.revision, bound=error.current)
        case TooLarge():
            return 413, Failure(**said)
        case StorageUnavailable():
            return 503, Failure(**said)
        case ValueError():
            return 400, Failure(reason="ValueError", message=str(error))
    return 500, Failure(reason="Internal", message=f"a mistake of the service: {type(error).__name__}")


def error_of(failure: Failure, place: str) -> Exception:
    """The error that a failure stands for; what is not known makes the service unavailable."""
    match failure.reason:
        case "RowConflict" if failure.key is not None:
            return RowConflict(failure.key, failure.current)
        case "Published" if failure.key is not None:
            return Published(failure.key, failure.version)
        case "Gone":
            return Gone(failure.revision, failure.bound)
        case "NotYet":
            return NotYet(failure.revision, failure.bound)
    simple: dict[str, type[Exception]] = {
        "InUse": InUse,
        "Unknown": Unknown,
        "TooLarge": TooLarge,
        "ValueError": ValueError,
        "StorageUnavailable": StorageUnavailable,
        "StorageUnusable": StorageUnusable,
    }
    kind = simple.get(failure.reason)
    return StorageUnavailable(f"{place}: {failure.message[:1024]}") if kind is None else kind(failure.message[:1024])
