"""Who we are to a server: fixed credentials, a token file that others renew, or a program that is asked
(`exec_plugin.py`).

A transport asks `current` before each request and calls `refused` when the server said 401, so that the next answer is
a new one.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from trimtab.client.config import ConfigError

REREAD = 60.0  # seconds; the kubelet renews tokens long before they expire
MAX_TOKEN = 64 * 1024


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What goes with a request: a header, or a certificate with its key (PEM)."""

    authorization: str = ""
    certificate: bytes = b""
    key: bytes = b""

    def __repr__(self) -> str:
        has = [name for name in ("authorization", "certificate", "key") if getattr(self, name)]
        return f"Identity({', '.join(has)})"


class Credentials(Protocol):
    async def current(self) -> Identity:
        """What to send now. ConfigError when there is no getting it."""
        ...

    def refused(self, identity: Identity) -> bool:
        """The server did not accept this one; True when asking again may bring another."""
        ...


class Fixed:
    """The same for ever."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    async def current(self) -> Identity:
        return self._identity

    def refused(self, identity: Identity) -> bool:
        return False


class TokenFile:
    """A bearer token that others renew in its file; a certificate may go with it."""

    def __init__(
        self, path: Path, *, certificate: bytes = b"", key: bytes = b"", now: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._certificate, self._key = certificate, key
        self._now = now
        self._read: tuple[float, Identity] | None = None

    async def current(self) -> Identity:
        if self._read is None or self._now() - self._read[0] >= REREAD:
            self._read = (self._now(), self._identity())
        return self._read[1]

    def refused(self, identity: Identity) -> bool:
        self._read = None
        try:
            return self._identity() != identity
        except ConfigError:
            return False

    def _identity(self) -> Identity:
        try:
            with self._path.open("rb") as file:
                token = file.read(MAX_TOKEN + 1).strip()
        except OSError as error:
            raise ConfigError(f"{self._path}: the token cannot be read: {error.strerror}") from None
        if not token or len(token) > MAX_TOKEN:
            raise ConfigError(f"{self._path}: holds no token")
        return Identity(authorization=bearer(token.decode("latin-1")), certificate=self._certificate, key=self._key)

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
