"""What can go wrong with a registry. The text of each is a sentence for a condition and holds no secret.

What a registry says in words is not repeated, only its error code: a server may echo what it was sent. `of_registry`
tells whether the next request would likely end the same, or only what was asked for is at fault.
"""

# ruff: noqa: N818 - they read as what happened

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import msgspec

from trimtab.runtime.outbound import errors as outbound
from trimtab.runtime.outbound.response import Response
from trimtab.runtime.outbound.tls import TlsError


class RegistryError(Exception):
    """`what` was asked for, and `why` it was not had. `reason` is that of a condition."""

    reason: ClassVar[str] = "InternalError"
    of_registry: ClassVar[bool] = False

    def __init__(self, what: str, why: str) -> None:
        self.what, self.why = what, why
        super().__init__(f"{what}: {why}")


class Unauthorized(RegistryError):
    """There is no login, or it was refused."""

    reason = "AuthenticationFailed"
    of_registry = True


class Forbidden(RegistryError):
    """The login is good, and this is not allowed to it."""

    reason = "Forbidden"


class NotFound(RegistryError):
    """There is no such repository, tag or blob. `code` is the registry's own word for it; without one the 404 may be
    anybody's, such as a proxy's that does not know the way."""

    reason = "NotFound"

    def __init__(self, what: str, why: str, code: str = "") -> None:
        super().__init__(what, why)
        self.code = code


class NoCatalog(RegistryError):
    """The registry does not tell which repositories it has. They must be named."""

    reason = "CatalogUnavailable"


class RateLimited(RegistryError):
    """Too many requests. `retry_after` are seconds, where the registry said so."""

    reason = "RateLimited"
    of_registry = True

    def __init__(self, what: str, why: str, retry_after: float | None = None) -> None:
        super().__init__(what, why)
        self.retry_after = retry_after


class Unavailable(RegistryError):
    """It does not answer, or not now."""

    reason = "RegistryUnavailable"
    of_registry = True


class Untrusted(Unavailable):
    """It is not who it should be, or the CA bundle cannot be read."""

    reason = "CertificateInvalid"


class BadAnswer(RegistryError):
    """An answer that is not what the protocol says."""

    reason = "InvalidAnswer"


class DigestMismatch(BadAnswer):
    """The content is not what its digest says."""

    reason = "DigestMismatch"


class TooLarge(BadAnswer):
    """The content is larger than is taken, or larger than was said."""

    reason = "TooLarge"


@contextmanager
def told(what: str) -> Iterator[None]:
    """Errors of the connection as errors of the registry."""
    try:
        yield
    except outbound.TlsFailed as error:
        why = _after_url(error)
        if any(sign in why for sign in _NO_TLS):
            raise Unavailable(what, f"{why}; if it has no TLS, set plainHTTP to true and write no https://") from None
        if not why.startswith("its certificate"):
            raise Unavailable(what, why) from None
        raise Untrusted(what, f"{why}; correct caBundle, or set skipTLSVerify if you must") from None
    except TlsError as error:
        raise Untrusted(what, f"{error}; correct caBundle") from None
    except outbound.BudgetSpent as error:
        raise RateLimited(what, _after_url(error)) from None
    except outbound.TooLarge as error:
        raise TooLarge(what, _after_url(error)) from None
    except (outbound.Unreadable, outbound.NotAllowed) as error:
        raise BadAnswer(what, _after_url(error)) from None
    except outbound.OutboundError as error:
        raise Unavailable(what, _after_url(error)) from None


def refusal(what: str, response: Response, body: bytes, who: str = "the registry") -> RegistryError:
    """The error for an answer that is no success, of the registry or of `who` it may have been."""
    status = response.status
    code = error_code(body)
    said = f"{who} answered {status}{f' ({code})' if code else ''}"
    if status == 429 or code == "TOOMANYREQUESTS":
        wait = f" and asks to wait for {response.retry_after:.0f} s" if response.retry_after is not None else ""
        return RateLimited(what, said + wait, response.retry_after)
    if status == 401:
        return Unauthorized(what, f"{said}; give a login in authSecret")
    if status == 403:
        return Forbidden(what, f"{said}: the login may not read it")
    if status == 404:
        return NotFound(what, said, code)
    if status >= 500:
        return Unavailable(what, said)
    return BadAnswer(what, said)


def error_code(body: bytes) -> str:
    """The first error code of a body (distribution specification, "Error Codes"); empty when there is none."""
    try:
        first = msgspec.json.decode(body, type=_Errors).errors[0].code
    except (msgspec.DecodeError, IndexError, RecursionError):
        return ""
    return first if _CODE.fullmatch(first) else ""


class _Error(msgspec.Struct):
    code: str = ""


class _Errors(msgspec.Struct):
    errors: list[_Error] = []


def _after_url(error: Exception) -> str:
    """Without the address, which `what` says better."""
    return str(error).partition(": ")[2] or str(error)


_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
"""How OpenSSL calls an answer that is no TLS, by its version."""
_CODE = re.compile(r"[A-Z0-9_]{1,64}")
