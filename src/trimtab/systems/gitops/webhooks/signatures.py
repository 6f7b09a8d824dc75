"""Whether a request comes from who has the secret, in each provider's way. Pure, and in constant time.

GitHub and Bitbucket sign the body with HMAC SHA-256 (`X-Hub-Signature-256`, `X-Hub-Signature`); GitLab sends the secret itself
(`X-Gitlab-Token`); Azure Repos sends it as the password of HTTP basic authentication.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from trimtab.model.redacted import Redacted

SIGNING = frozenset({"github", "bitbucket"})
"""Providers that sign the body."""


def is_authentic(provider: str, headers: Mapping[str, str], body: bytes, secret: Redacted) -> bool:
    """Names of headers are looked up as they are: give a mapping that does not mind their case."""
    wanted = secret.reveal_bytes().strip()
    if not wanted:
        return False
    if provider == "github":
        return _signed(headers.get("X-Hub-Signature-256", ""), body, wanted)
    if provider == "bitbucket":
        return _signed(headers.get("X-Hub-Signature", ""), body, wanted)
    if provider == "gitlab":
        return _same(_bytes(headers.get("X-Gitlab-Token", "")), wanted)
    if provider == "azure":
        return _same(_password(headers.get("Authorization", "")), wanted)
    return False


def _signed(header: str, body: bytes, secret: bytes) -> bool:
    scheme, _, given = header.partition("=")
    made = hmac.new(secret, body, hashlib.sha256).hexdigest()
    same = hmac.compare_digest(_bytes(given.strip().lower()), made.encode())
    return same and scheme.strip().lower() == "sha256"


def _bytes(header: str) -> bytes:
    """As they were sent, which may be no text."""
    return header.encode("utf-8", "surrogateescape")


def _same(given: bytes, wanted: bytes) -> bool:
    """By digests of equal length, so that the time it takes does not tell of the secret's length."""
    return hmac.compare_digest(hashlib.sha256(given).digest(), hashlib.sha256(wanted).digest())


def _password(header: str) -> bytes:
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return b""
    try:
        return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return b""
