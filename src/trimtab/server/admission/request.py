"""What admission is asked: one write, before it is committed."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import msgspec

from trimtab.model.kind import Kind
from trimtab.server.auth.identity import User


class Operation(enum.Enum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class AdmissionRequest(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One write. `object` is None for a deletion, `old` for a creation."""

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
