"""A secret value that does not show itself: not in a repr, a log, a message, a pickle or JSON.

Only `reveal()` gives it out, so that a search for that word finds every place where a secret leaves. What `reveal` gave
is a plain text again: use it where it is needed and do not keep it.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping, MutableMapping
from typing import Any, NoReturn, final

TEXT = "[redacted]"
DEEPEST = 8  # levels of a log event that are looked into


@final
class Redacted:
    """A secret. Two are compared in constant time; there is no order and no hash, which would tell of the value."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes | str) -> None:
        self._value = value.encode() if isinstance(value, str) else bytes(value)

    def reveal(self) -> str:
        """The secret as text. ValueError, without the value, when it is no UTF-8."""
        try:
            return self._value.decode()
        except UnicodeDecodeError:
            raise ValueError("the secret value is not UTF-8 text; reveal_bytes() gives it as it is") from None

    def reveal_bytes(self) -> bytes:
        return self._value

    def __eq__(self, other: object) -> bool:
        return hmac.compare_digest(self._value, other._value) if isinstance(other, Redacted) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return TEXT

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(TEXT, spec)

    def __copy__(self) -> Redacted:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Redacted:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Redacted value is not pickled; reveal() it where it is used")


def basic(username: str, password: Redacted) -> Redacted:
    """The value of an Authorization header for HTTP Basic (RFC 7617)."""
    pair = username.encode() + b":" + password.reveal_bytes()
    return Redacted(b"Basic " + base64.b64encode(pair))


def bearer(token: Redacted) -> Redacted:
    """The value of an Authorization header for a bearer token (RFC 6750)."""
    return Redacted(b"Bearer " + token.reveal_bytes())


def redact(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: secrets in an event become their text, also inside of lists and mappings.

    A renderer would print the same text; this makes sure of one that does not ask for the repr.
    """
    for key, value in event.items():
        event[key] = _without(value, DEEPEST)
    return event


def _without(value: Any, depth: int) -> Any:
    if isinstance(value, Redacted):
        return TEXT
    if depth and isinstance(value, Mapping):
        return {name: _without(item, depth - 1) for name, item in value.items()}
    if depth and isinstance(value, list | tuple | set | frozenset):
        kept = [_without(item, depth - 1) for item in value]
        return kept if isinstance(value, list) else tuple(kept)
    return value
