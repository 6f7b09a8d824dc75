"""What admission is asked: one write, before it is committed."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trimtab.model.kind import Kind
from trimtab.server.auth.identity import User


class Operation(enum.Enum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


def _untold(key: str, value: str) -> None:
    pass


class AdmissionRequest(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One write. `object` is None for a deletion, `old` for a creation. `options` are the fields of its CreateOptions,
    UpdateOptions or DeleteOptions; `form` is the kind of both documents where a subresource has its own."""

    operation: Operation
    kind: Kind
    subresource: str
    namespace: str
    name: str
    object: dict[str, Any] | None
    old: dict[str, Any] | None
    user: User
    dry_run: bool
    warn: Callable[[str], None]
    options: Mapping[str, Any] = {}
    form: Kind | None = None
    annotate: Callable[[str, str], None] = _untold  # tells the audit log a key and a short value
