"""The cookies of session affinity: how a request is known by one, and how a response sets it or ends it."""

from __future__ import annotations

import re
from typing import Any

from msgspec import UnsetType

from trimtab.systems.delivery.kinds.analysis import SessionAffinity

SET_COOKIE = "Set-Cookie"


def carries(name: str, value: str | None = None) -> dict[str, Any]:
    """A match of requests with this very cookie, among whatever others. Without a value: with any."""
    wanted = re.escape(value) if value is not None else "[^;]*"
    return {"headers": {"cookie": {"regex": rf"^(.*;)?[ \t]*{re.escape(name)}={wanted}[ \t]*(;.*)?$"}}}


def setting(affinity: SessionAffinity, name: str, value: str) -> str:
    return _cookie(affinity, name, value, affinity.max_age)


def ending(affinity: SessionAffinity, name: str) -> str:
    """A browser forgets a cookie only when path and domain are the ones that it was set with."""
    return _cookie(affinity, name, "", 0)


def names(affinity: SessionAffinity) -> list[str]:
    """The canary's first."""
    stable = affinity.stable_cookie_name
    return [affinity.cookie_name] if isinstance(stable, UnsetType) else [affinity.cookie_name, stable]


def _cookie(affinity: SessionAffinity, name: str, value: str, max_age: int) -> str:
    parts = [f"{name}={value}", f"Max-Age={max_age}", f"Path={affinity.path}"]
    if not isinstance(affinity.domain, UnsetType):
        parts.append(f"Domain={affinity.domain}")
    if affinity.secure:
        parts.append("Secure")
    if affinity.http_only:
        parts.append("HttpOnly")
    if not isinstance(affinity.same_site, UnsetType):
        parts.append(f"SameSite={affinity.same_site}")
    return "; ".join(parts).replace("%", "%%")  # Envoy reads %…% in a header as a command
