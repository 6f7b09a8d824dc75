"""The kinds of credential that Secrets hold, by the types that Kubernetes gave names to. Pure.

Each is read from the keys of a Secret, whatever the Secret's own type says: people make Opaque ones with the same keys.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.model.redacted import Redacted, basic, bearer

Values = Mapping[str, Redacted]


class SecretRef(msgspec.Struct, frozen=True):
    """A Secret, and which of its keys. Helpers that know their keys need none."""

    name: str
    namespace: str
    key: str = ""

    def __str__(self) -> str:
        return f"Secret {self.namespace}/{self.name}"


class CredentialError(Exception):
    """A credential that cannot be had. The text names what is missing and never a value."""

    def __init__(self, ref: SecretRef, why: str) -> None:
        self.ref = ref
        super().__init__(f"{ref} {why}")


class SecretNotFound(CredentialError):  # noqa: N818 - it reads as what happened
    """There is no such Secret."""

    def __init__(self, ref: SecretRef) -> None:
        super().__init__(ref, "does not exist: create it, or correct the reference")


class KeyMissing(CredentialError):  # noqa: N818
    """The Secret has no such key."""

    def __init__(self, ref: SecretRef, key: str, present: Values) -> None:
        there = f"it has {', '.join(sorted(present))}" if present else "it is empty"
        super().__init__(ref, f"has no key {key!r}; {there}" if key else f"is referred to without a key; {there}")


class Malformed(CredentialError):  # noqa: N818
    """A value is there and cannot be read as what it should be."""


class BasicAuth(msgspec.Struct, frozen=True):
    """`kubernetes.io/basic-auth`."""

    username: str
    password: Redacted

    @property
    def authorization(self) -> Redacted:
        """The value of the header."""
        return basic(self.username, self.password)


class RegistryLogin(msgspec.Struct, frozen=True):
    """How to log in to one registry. An identity token stands for user and password."""

    username: str = ""
    password: Redacted | None = None
    identity_token: Redacted | None = None
    registry_token: Redacted | None = None

    @property
    def authorization(self) -> Redacted | None:
        """The value of the header; None where a token must be asked for first."""
        if self.registry_token:
            return bearer(self.registry_token)
        return basic(self.username, self.password) if self.password is not None else None


class DockerConfig(msgspec.Struct, frozen=True):
    """`kubernetes.io/dockerconfigjson`: logins by registry, as written there."""

    logins: Mapping[str, RegistryLogin]

    def login_for(self, registry: str, path: str = "") -> RegistryLogin | None:
        """For a registry's host, and the longest path that fits: the rules of the kubelet, `*.` included."""
        best: tuple[tuple[int, bool], RegistryLogin] | None = None
        for written, login in self.logins.items():
            host, prefix = _registry(written)
            exact = host == _registry(registry)[0]
            under = not prefix or path == prefix or path.startswith(prefix + "/")
            rank = (len(prefix), exact)
            if under and (exact or _wild(host, registry)) and (best is None or rank > best[0]):
                best = rank, login
        return best[1] if best else None


def value(values: Values, ref: SecretRef, key: str) -> Redacted:
    """One of them. KeyMissing says which there are."""
    found = values.get(key) if key else None
    if found is None:
        raise KeyMissing(ref, key, values)
    return found


def text(values: Values, ref: SecretRef, key: str) -> str:
    """A value that is no secret, as a user name is none."""
    try:
        return value(values, ref, key).reveal()
    except ValueError:
        raise Malformed(ref, f"has a key {key!r} that is not UTF-8 text") from None


def basic_auth(values: Values, ref: SecretRef) -> BasicAuth:
    return BasicAuth(text(values, ref, "username"), value(values, ref, "password"))


def docker_config(values: Values, ref: SecretRef) -> DockerConfig:
    key = ref.key or ".dockerconfigjson"
    try:
        document = msgspec.json.decode(value(values, ref, key).reveal_bytes())
        auths = document["auths"]
        return DockerConfig({str(name): _login(entry) for name, entry in auths.items()})
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError):
        raise Malformed(ref, f'has a key {key!r} that is no Docker configuration: {{"auths": {{…}}}}') from None


def _login(entry: Mapping[str, Any]) -> RegistryLogin:
    username, password = entry.get("username", ""), entry.get("password")
    if entry.get("auth"):
        try:
            joined = base64.b64decode(entry["auth"], validate=True).decode()
        except binascii.Error:
            raise ValueError("auth is not base64") from None
        username, colon, password = joined.partition(":")
        if not colon:
            raise ValueError("auth has no colon")
        password = password.rstrip("\0")  # Docker pads with it
    return RegistryLogin(
        username=str(username),
        password=Redacted(password) if password is not None else None,
        identity_token=Redacted(entry["identitytoken"]) if entry.get("identitytoken") else None,
        registry_token=Redacted(entry["registrytoken"]) if entry.get("registrytoken") else None,
    )


def _registry(written: str) -> tuple[str, str]:
    """Host and path of a key of `auths`. `https://index.docker.io/v1/` is Docker Hub's old way to say docker.io."""
    bare = written.removeprefix("https://").removeprefix("http://").rstrip("/")
    host, _, path = bare.partition("/")
    if path in ("v1", "v2"):
        path = ""
    return _HUB.get(host.lower(), host.lower()), path


def _wild(pattern: str, registry: str) -> bool:
    """`*.example.com`: a star is one label."""
    wanted, labels = pattern.split("."), registry.lower().split(".")
    return (
        "*" in wanted and len(wanted) == len(labels) and all(a in ("*", b) for a, b in zip(wanted, labels, strict=True))
    )


_HUB = dict.fromkeys(("docker.io", "index.docker.io", "registry-1.docker.io"), "docker.io")
