"""What carries a client's calls: HTTP to anywhere, or a call into a server in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import msgspec


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request, independent of what carries it."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def safe(self) -> bool:
        """Whether it may be sent again when nobody knows what became of it."""
        return self.method in ("GET", "HEAD")


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a call. Codes from 400 on were already raised as StatusErrors."""

    code: int
    body: bytes


class Transport(Protocol):
    async def call(self, call: Call) -> Reply: ...

    def stream(self, call: Call, inactivity: float) -> AsyncIterator[bytes]:
        """The lines of an answer that goes on. Raises TimeoutError when nothing comes for `inactivity` seconds."""
        ...

    async def close(self) -> None: ...
