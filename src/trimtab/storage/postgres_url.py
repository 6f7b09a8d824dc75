"""What everyone who talks to PostgreSQL needs to know of its URL and of its driver's errors. Needs `trimtab[postgres]`."""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

from trimtab.model.hosts import is_loopback

AWAY = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server's farewell came while the driver began to speak
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)
"""Errors of a server that is away: what was asked may work in a moment."""


def place_of(url: str) -> str:
    """The URL without user, password and options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _secrets(url: str) -> list[str]:
    parts = urlsplit(url)
    options = parse_qs(parts.query)
    raw = [parts.password or "", *options.get("password", []), *options.get("sslpassword", [])]
    return sorted({each for secret in raw for each in (secret, unquote(secret)) if each}, key=len, reverse=True)


def tls_of(url: str) -> dict[str, Any]:
    """The driver's own default is TLS that it does not verify. Ours is verified; a URL with `sslmode` decides itself."""
    parts = urlsplit(url)
    options = parse_qs(parts.query)
    if "sslmode" in options:
        return {}
    hosts = [*parts.netloc.rpartition("@")[2].split(","), *options.get("host", [])]
    if all(_is_local(urlsplit(f"//{host}").hostname) for each in hosts for host in each.split(",")):
        return {"ssl": False}
    return {"ssl": ssl.create_default_context()}


def _is_local(host: str | None) -> bool:
    """A socket of this machine (nothing, or a path) or the loopback interface."""
    return not host or is_loopback(host)


def cleaned(error: BaseException, url: str) -> str:
    """What an error says, without the URL's secrets: the driver may quote what it was given."""
    text = f"{type(error).__name__}: {error}"
    for secret in _secrets(url):
        text = text.replace(secret, "***")
    return text
