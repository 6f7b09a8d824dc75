"""What follows from a redirect (RFC 9110 §15.4). Pure.

Credentials stay with their origin: to another one go only headers that are known to be harmless, and never a body. From
https nothing goes on to http.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import yarl

from trimtab.runtime.outbound.errors import shown

MOST = 5
STATUSES = frozenset({301, 302, 303, 307, 308})


class Hop(msgspec.Struct, frozen=True):
    """One request on the way to an answer."""

    method: str
    url: yarl.URL
    headers: Mapping[str, str]
    with_body: bool
    with_identity: bool = True  # whether the client certificate is shown

    def __repr__(self) -> str:
        return f"Hop({self.method} {shown(str(self.url))})"  # headers may be secret


class RedirectRefused(ValueError):  # noqa: N818 - it reads as what happened
    """Why a redirect is not followed."""


def followed(hop: Hop, status: int, location: str) -> Hop:
    """The next request. RedirectRefused when there must be none."""
    try:
        target = hop.url.join(url_of(location)).with_fragment(None)
    except ValueError:
        raise RedirectRefused("it is redirected to what is no URL") from None
    if target.scheme not in ("http", "https") or not target.host:
        raise RedirectRefused("it is redirected to what is neither http nor https")
    if hop.url.scheme == "https" and target.scheme == "http":
        raise RedirectRefused("it is redirected from https to http, which anyone on the way could read")
    target = target.with_user(None)  # whoever redirects does not choose our credentials
    method, with_body = hop.method, hop.with_body
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, with_body = "GET", False
    same = target.origin() == hop.url.origin()
    if with_body and not same:
        raise RedirectRefused("it is redirected to another host, and would take its body there")
    headers = {
        name: value
        for name, value in hop.headers.items()
        if (same or name.lower() in _HARMLESS) and (with_body or not name.lower().startswith("content-"))
    }
    return Hop(method, target, headers, with_body, hop.with_identity and same)


def url_of(text: str) -> yarl.URL:
    """A URL as it was written: another way to quote it would break what is signed. ValueError when it is none."""
    url = yarl.URL(text, encoded=text.isascii() and text.isprintable() and " " not in text)
    if (url.port or 0) > 65535:
        raise ValueError("there is no such port")
    return url


_HARMLESS = frozenset(
    {"accept", "accept-encoding", "accept-language", "user-agent", "range", "if-none-match", "if-modified-since"}
)
