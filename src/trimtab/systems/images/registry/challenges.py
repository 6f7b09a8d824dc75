"""How a registry asks for a login: the header WWW-Authenticate (RFC 9110 §11.6.1) and the realm of a token server. Pure.

A realm decides where a login is sent, so it is checked before anything goes there: over https, or where the registry
itself is reached without it, on the registry's own host, or on this machine when the registry is.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping

import msgspec
import yarl

from trimtab.systems.images.registry.references import Endpoint

MOST_SCOPES = 8


class Challenge(msgspec.Struct, frozen=True):
    """One way to log in. Names are in small letters."""

    scheme: str
    parameters: Mapping[str, str]


class Bearer(msgspec.Struct, frozen=True):
    """Where tokens are had, and for which service."""

    realm: str
    service: str = ""
    scopes: tuple[str, ...] = ()


class RealmRefused(ValueError):  # noqa: N818 - it reads as what happened
    """Why nothing is sent to a realm."""


def challenges(headers: Iterable[str]) -> tuple[Challenge, ...]:
    """All that the headers offer, in their order. What cannot be read ends a header."""
    found: list[Challenge] = []
    for header in headers:
        place, parameters = 0, dict[str, str]()
        while place < len(header):
            if found and parameters is found[-1].parameters and (match := _PARAMETER.match(header, place)):
                name, quoted, token = match.groups()
                parameters.setdefault(name.lower(), token if quoted is None else _ESCAPE.sub(r"\1", quoted))
            elif match := _SCHEME.match(header, place):
                parameters = {}
                found.append(Challenge(match.group(1).lower(), parameters))
            else:
                break
            place = match.end()
    return tuple(found)


def bearer_of(challenge: Challenge, registry: Endpoint) -> Bearer:
    """The token server of a Bearer challenge. RealmRefused when nothing may be sent there."""
    realm = checked_realm(challenge.parameters.get("realm", ""), registry)
    scopes = tuple(challenge.parameters.get("scope", "").split())[:MOST_SCOPES]
    return Bearer(realm, challenge.parameters.get("service", ""), scopes)


def checked_realm(realm: str, registry: Endpoint) -> str:
    try:
        url = yarl.URL(realm)
        host, _ = url.host or "", url.port
    except ValueError:
        raise RealmRefused("the registry names a token server whose address is no URL") from None
    if url.scheme not in ("https", "http") or not host:
        raise RealmRefused("the registry names a token server whose address is neither https nor http")
    if url.user is not None or url.password is not None:
        raise RealmRefused("the registry names a token server with a login in its address")
    if url.scheme == "http" and not _plain_allowed(host, registry):
        raise RealmRefused("the registry names a token server without https, to which no login is sent")
    return str(url.with_fragment(None))


def _plain_allowed(host: str, registry: Endpoint) -> bool:
    if registry.scheme == "http" and host.lower() == registry.hostname.lower():
        return True
    return _is_loopback(host) and _is_loopback(registry.hostname)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


_WORD = r"[\w!#$%&'*+.^`|~-]+"
_PARAMETER = re.compile(rf'[\s,]*({_WORD})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_SCHEME = re.compile(rf"[\s,]*({_WORD})(?=[\s,]|$)")
_ESCAPE = re.compile(r"\\(.)")
