"""Where a service is, and which URLs are its own. Pure.

What a service answers may name any URL: the next page, where to ask how far an operation is. A request to it carries our
credential, so that only the endpoint's own origin is asked, and for operations the hosts that the RestService allows.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urljoin, urlsplit

import msgspec

from trimtab.runtime.outbound.pin import HostPin

LONGEST = 8192
SOCKET_HOST = "localhost"


class EndpointError(ValueError):
    """An endpoint, or a URL below it, that cannot be used."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`base` has no slash at its end. `host` is name and port, as a pin wants it."""

    base: str
    host: str
    unix: Path | None = None

    @property
    def origin(self) -> str:
        return origin_of(self.base)

    def absolute(self, url: str) -> str:
        """A path below the endpoint, or what is absolute already."""
        if len(url) > LONGEST:
            raise EndpointError(f"a URL of {len(url)} characters is too long")
        if url.startswith("/"):
            return self.base + url
        origin_of(url)
        return url

    def owns(self, url: str) -> bool:
        return origin_of(url) == self.origin

    def may_poll(self, url: str, hosts: tuple[str, ...]) -> bool:
        """Whether an operation may be followed at this URL. Never less protected than the endpoint."""
        if self.owns(url):
            return True
        scheme, host, port = _parts(url)
        protected = scheme == "https" or self.base.startswith("http:")
        return self.unix is None and protected and HostPin(hosts=hosts).allows(host, port)


def parsed(text: str) -> Endpoint:
    """`http(s)://host[:port][/path]`, or `unix:///the/socket[:/path]`. EndpointError says what is wrong."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        socket, colon, below = path.partition(":/")
        if not socket.startswith("/"):
            raise EndpointError(f"the endpoint {text!r} must be unix:// and the absolute path of a socket")
        base = f"http://{SOCKET_HOST}" + (f"/{below}" if colon else "")
        return Endpoint(base=base.rstrip("/"), host=SOCKET_HOST, unix=Path(socket))
    parts = urlsplit(text)
    scheme, host, port = _parts(text)
    if parts.username is not None or parts.query or parts.fragment:
        raise EndpointError("the endpoint may have neither a user nor a query: credentials belong in a Secret")
    name = f"[{host}]" if ":" in host else host
    return Endpoint(base=f"{scheme}://{name}:{port}{parts.path}".rstrip("/"), host=f"{name}:{port}")


def origin_of(url: str) -> str:
    """Scheme, host and port. EndpointError for what is no absolute http URL."""
    scheme, host, port = _parts(url)
    return f"{scheme}://{host}:{port}"


def resolved(base: str, url: str) -> str:
    """A URL in an answer that came from `base` (RFC 3986 §5)."""
    return urljoin(base, url.strip())


def _parts(url: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise EndpointError("it is no URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise EndpointError(f"{url[:80]!r} is no http or https URL")
    return parts.scheme, parts.hostname.rstrip("."), port or (443 if parts.scheme == "https" else 80)
