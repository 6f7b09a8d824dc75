"""Whether a text is an address that we may be sent to: http or https, a host, and nothing secret in it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from trimtab.model.errors import FieldError
from trimtab.model.hosts import is_loopback
from trimtab.systems.delivery.problems.findings import forbidden, wrong


def address_problems(path: str, url: str) -> Iterator[FieldError]:
    """The address itself is not shown where it may hold a password."""
    try:
        parts = urlsplit(url)
        host, user, port = parts.hostname, "@" in parts.netloc, parts.port
    except ValueError:
        yield forbidden(path, "it is no URL such as https://example.com/hook")
        return
    if user:
        yield forbidden(path, "it must hold no user and no password: put them in a Secret, and name it in secretRef")
    elif not url.isprintable() or " " in url:
        yield forbidden(path, "it has characters that no URL has")
    elif parts.scheme not in ("http", "https") or not host or port == 0:
        yield wrong(path, url, "must be a URL such as https://example.com/hook")


def in_clear(url: str) -> bool:
    """Whether what is sent there can be read on the way."""
    try:
        parts = urlsplit(url)
        return parts.scheme == "http" and not is_loopback(parts.hostname or "")
    except ValueError:
        return False
