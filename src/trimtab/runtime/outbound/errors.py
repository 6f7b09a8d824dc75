"""What can go wrong towards the world. No text here holds a secret: addresses are shown without credentials.

`sent` says whether the other side may have seen the request: when it is False nothing was done there.
"""

# ruff: noqa: N818 - they read as what happened

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

HIDDEN = "REDACTED"


class OutboundError(Exception):
    """A request without a usable answer. `url` is fit to be shown."""

    sent = True

    def __init__(self, method: str, url: str, why: str) -> None:
        self.method = method
        self.url = shown(url)
        super().__init__(f"{method} {self.url}: {why}")


class Unreachable(OutboundError, ConnectionError):
    """No connection came about, or it broke."""

    def __init__(self, method: str, url: str, why: str, *, sent: bool) -> None:
        super().__init__(method, url, why)
        self.sent = sent


class TimedOut(OutboundError, TimeoutError):
    """No answer, or not all of it, in time."""

    def __init__(self, method: str, url: str, why: str, *, sent: bool, final: bool) -> None:
        """`final`: the time of the whole call is over, so that there is none left for another attempt."""
        super().__init__(method, url, why)
        self.sent = sent
        self.final = final


class TlsFailed(OutboundError):
    """The other side is not who it should be, or does not take us for who we are."""

    sent = False


class NotAllowed(OutboundError):
    """The address is not one that this client may talk to."""

    sent = False


class BudgetSpent(OutboundError):
    """It would have to wait for longer than it may: a server asked for a pause, or there are too many requests."""

    sent = False


class TooLarge(OutboundError):
    """The answer is larger than the reader takes."""


class Unreadable(OutboundError):
    """The answer is not what it says it is."""


class Refused(OutboundError):
    """An answer that is no success, where only a success is of use. `body` is its beginning; it may hold anything."""

    def __init__(self, method: str, url: str, status: int, body: bytes) -> None:
        super().__init__(method, url, f"the server answered {status}")
        self.status = status
        self.body = body


def shown(url: str) -> str:
    """A URL without user, password, fragment, and without the values of parameters that may be secret."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "(an invalid URL)"
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else (parts.hostname or "")
    user = f"{HIDDEN}@" if "@" in parts.netloc else ""
    query = "&".join(map(_parameter, parts.query.split("&"))) if parts.query else ""
    return SplitResult(parts.scheme, user + host + port, parts.path, query, "").geturl()


def _parameter(text: str) -> str:
    name, equals, _ = text.partition("=")
    return f"{name}={HIDDEN}" if equals and _SECRET.search(name) else text


_SECRET = re.compile(r"sig|token|key|secret|passw|pwd|credential|auth|code|jwt|session|assertion|sas", re.IGNORECASE)
"""Names of parameters whose values may be secret. Too many are better than too few."""
