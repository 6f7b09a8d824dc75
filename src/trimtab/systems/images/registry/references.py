"""Names: of a registry, a repository, a tag, a digest, and of the Image that we keep for them. Pure.

What a user writes as the uri of a Registry is read strictly, for credentials will be sent there: a host and perhaps a
port, with or without a scheme. Docker Hub is known by several names; its API answers at one of them, and a repository of
one part is in `library/` there.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
from typing import Literal

import msgspec

HUB = "docker.io"
HUB_API = "registry-1.docker.io"
HUB_NAMES = frozenset({HUB, HUB_API, "index.docker.io", "registry.hub.docker.com", "hub.docker.com"})
LONGEST_REPOSITORY = 255


class BadReference(ValueError):  # noqa: N818 - it reads as what happened
    """What was written is no such name. The text says what would be right."""


class Endpoint(msgspec.Struct, frozen=True):
    """Where a registry's API answers. `name` is what logins are kept under: the host, or docker.io."""

    name: str
    host: str  # with a port where it is not the scheme's own
    scheme: Literal["https", "http"] = "https"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}"

    @property
    def hostname(self) -> str:
        """The host without its port; of IPv6 without its brackets."""
        return _split_port(self.host)[0].strip("[]")


def endpoint(uri: str, *, plain_http: bool = False) -> Endpoint:
    """The registry that a uri names. BadReference otherwise."""
    shown = repr(_without_login(uri)[:128])
    wanted = "write it as https://registry.example.com or registry.example.com:5000"
    text = uri.strip()
    if not text.isascii() or not text.isprintable() or " " in text:
        raise BadReference(f"{shown} is no registry: only ASCII is known here, {wanted}")
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "", text
    scheme = scheme.lower()
    if scheme not in ("", "https", "http"):
        raise BadReference(f"{shown} is no registry: the scheme is https or http, {wanted}")
    if scheme == "http" and not plain_http:
        raise BadReference(f"{shown} is not encrypted: write https://, or set plainHTTP to true as well")
    if scheme == "https" and plain_http:
        raise BadReference(f"{shown} says https and plainHTTP is true: leave one of the two out")
    if "@" in rest:
        raise BadReference(f"{shown} holds a login: leave it out and name a Secret in authSecret")
    if "?" in rest or "#" in rest:
        raise BadReference(f"{shown} has a query or a fragment: {wanted}")
    host, _, path = rest.partition("/")
    hostname, port = _checked(host.lower(), shown, wanted)
    hub = hostname in HUB_NAMES and port in ("", "443")
    if path and not (hub and path.rstrip("/") in ("v1", "v2")):
        raise BadReference(f"{shown} has a path: name the registry alone, and its repositories in repositories")
    if hub and not plain_http:
        return Endpoint(HUB, HUB_API)
    if port == ("80" if plain_http else "443"):
        port = ""
    full = f"{hostname}:{port}" if port else hostname
    return Endpoint(full, full, "http" if plain_http else "https")


def repository_of(name: str, registry: Endpoint) -> str:
    """The full name of a repository in a registry: `nginx` is library/nginx in Docker Hub. BadReference otherwise."""
    if not is_repository(name):
        raise BadReference(
            f"{name[:128]!r} is no repository: small letters and digits, with single . _ - between them and / between"
            f" parts, {LONGEST_REPOSITORY} characters at most, without registry and without tag"
        )
    return f"library/{name}" if registry.name == HUB and "/" not in name else name


def is_repository(name: str) -> bool:
    return len(name) <= LONGEST_REPOSITORY and _REPOSITORY.fullmatch(name) is not None


def is_tag(text: str) -> bool:
    return _TAG.fullmatch(text) is not None


def is_digest(text: str) -> bool:
    """Whether it is a digest of an algorithm that we can verify."""
    return _DIGEST.fullmatch(text) is not None


def digest_of(content: bytes, algorithm: str = "sha256") -> str:
    return f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"


def matches(digest: str, content: bytes) -> bool:
    """Whether the content is what the digest says. False for what is no digest."""
    return is_digest(digest) and digest_of(content, digest.partition(":")[0]) == digest


def image_name(registry: str, repository: str, tag: str, digest: str) -> str:
    """The name of an Image: a hash of all four, a DNS label of 52 characters, so that it fits a label's value too.

    `registry` is the name of the Registry object, so that two objects for one host keep images of their own; `digest` is
    that of the platform's manifest.
    """
    parts = (registry, repository, tag, digest)
    hashed = hashlib.sha256(b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts))
    return base64.b32encode(hashed.digest()).decode().lower().rstrip("=")


def _checked(host: str, shown: str, wanted: str) -> tuple[str, str]:
    hostname, port = _split_port(host)
    hostname = hostname.rstrip(".")
    if hostname.startswith("["):
        try:
            hostname = f"[{ipaddress.IPv6Address(hostname[1:-1])}]"
        except ValueError:
            raise BadReference(f"{shown} is no registry: what is in brackets is no IPv6 address, {wanted}") from None
    elif not _HOST.fullmatch(hostname) or len(hostname) > 253:
        raise BadReference(f"{shown} names no host: {wanted}")
    if port is None or (port and not 0 < int(port) < 65536):
        raise BadReference(f"{shown} has no valid port: it is a number from 1 to 65535")
    return hostname, str(int(port)) if port else ""


def _split_port(host: str) -> tuple[str, str | None]:
    """Host, and the port that follows it: empty when there is none, None when it is no number."""
    match = _HOST_PORT.fullmatch(host)
    if match is None:
        return host, None
    hostname, port = match.groups()
    if port is None:
        return hostname, ""
    return hostname, port if port.isdigit() and len(port) <= 5 else None


def _without_login(uri: str) -> str:
    """A uri that may be shown."""
    scheme, separator, rest = uri.strip().rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


_HOST_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([^:]*))?")
_HOST = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
