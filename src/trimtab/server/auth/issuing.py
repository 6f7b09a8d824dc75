"""Who issues service-account tokens, and what a stranger needs to verify one: OpenID discovery, as far as it is about keys.

An issuer is a name in tokens, usually the address under which others reach this server or a copy of the two documents here.
Of several the first issues, and tokens of all are accepted, so that an issuer can be changed.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from trimtab.server.auth.tokens import ISSUER, TokenKey

CONFIGURATION, KEYS = "/.well-known/openid-configuration", "/openid/v1/jwks"
KEYS_MEDIA = b"application/jwk-set+json"
CACHED = b"public, max-age=3600"

__all__ = [
    "CACHED",
    "CONFIGURATION",
    "ISSUER",
    "KEYS",
    "KEYS_MEDIA",
    "Issuer",
    "OpenId",
    "discoverable",
    "issuer_problem",
    "jwks_problem",
]


class Issuer(msgspec.Struct, frozen=True):
    """Names of the issuer, and where its keys are told; "" is this server."""

    names: tuple[str, ...] = (ISSUER,)
    jwks_uri: str = ""


class OpenId:
    """The two documents, made at the first question."""

    def __init__(self, key: TokenKey, issuer: str, jwks_uri: str) -> None:
        self._key = key
        self._issuer = issuer
        self._jwks_uri = jwks_uri
        self._made: dict[str, bytes] = {}

    def document(self, path: str) -> bytes | None:
        if path not in (CONFIGURATION, KEYS):
            return None
        if path not in self._made:
            jwk = self._key.jwk()
            shown = {"keys": [jwk]} if path == KEYS else self._configuration(jwk["alg"])
            self._made[path] = msgspec.json.encode(shown)
        return self._made[path]

    def _configuration(self, algorithm: str) -> dict[str, str | list[str]]:
        """OpenID Connect Discovery 1.0 §3: there are tokens here, and no login."""
        return {
            "issuer": self._issuer,
            "jwks_uri": self._jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [algorithm],
        }


def discoverable(issuer: str) -> bool:
    """Whether an issuer is one that OpenID discovery can be about (§2): https, without query and fragment."""
    try:
        parts = urlsplit(issuer)
    except ValueError:
        return False
    return parts.scheme == "https" and not parts.query and not parts.fragment


def issuer_problem(issuer: str) -> str:
    """What is wrong with the name of an issuer; "" is nothing. RFC 7519 §2: a string with a colon must be a URI."""
    if not issuer:
        return "must not be empty"
    try:
        urlsplit(issuer)
    except ValueError as error:
        return f"contains a ':' but is not a valid URL: {error}"
    return "" if issuer.isprintable() and " " not in issuer else "must have no spaces or control characters"


def jwks_problem(uri: str) -> str:
    """What is wrong with the address of keys; "" is nothing."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        return f"is not a valid URL: {error}"
    return "" if parts.scheme == "https" and parts.netloc else "must be a URL with the scheme https"
