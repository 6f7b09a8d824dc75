"""What it means when gNMI fails: an outcome, and a sentence that says what happened and what to do.

The texts of a device are not trusted: they are cut and cleaned, and our own secrets are taken out should it echo them.
A login counts as accepted only where a status says that the call itself was looked at: many servers answer with UNKNOWN
or INTERNAL to whatever goes wrong, and that may be the login.
"""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any

from trimtab.systems.discovery.findings import Access, Login, NotIdentified, Outcome
from trimtab.systems.discovery.identify import tls
from trimtab.systems.discovery.identify.gnmi_grpc import grpc
from trimtab.systems.discovery.vendors.choice import printable

MOST = 8 * 1024 * 1024
"""Bytes of one answer. Capabilities of real devices list hundreds of models; that is not a tenth of this."""

_REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
_LEFT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.ABORTED)
_JUDGED = (
    grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.UNIMPLEMENTED,
)  # fmt: skip
_FINAL = (*_REFUSED, *_LEFT, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)


def about_request(error: grpc.RpcError) -> bool:
    """Whether the device refused what was asked, and may answer another question."""
    return error.code() not in _FINAL


async def not_connected(error: OSError, access: Access, seconds: float) -> NotIdentified:
    """From what `Link.connect` raises."""
    if isinstance(error, TimeoutError):
        how = "connection" if access.profile.insecure else "connection and its TLS handshake"
        return NotIdentified(Outcome.TIMED_OUT, f"The {how} took more than {access.profile.timeout}.")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return NotIdentified(Outcome.DISCONNECTED, "The device broke off in the TLS handshake.")
    if isinstance(error, ssl.SSLError):
        return await tls.explain(error, access, seconds)
    if isinstance(error, socket.gaierror):
        return NotIdentified(Outcome.NOT_RESOLVED, "The name of the device has no address.")
    number = getattr(error, "errno", None)
    port = access.profile.used_port
    if number == errno.ECONNREFUSED:
        return NotIdentified(Outcome.REFUSED, f"Nothing listens at port {port} any more; look at gNMI on the device.")
    if number in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT):
        return NotIdentified(Outcome.UNREACHABLE, "No route leads to the device any more.")
    if number in _OURS:
        return NotIdentified(Outcome.NOT_SENT, f"This machine could not connect: {errno.errorcode[number]}.")
    return NotIdentified(Outcome.DISCONNECTED, "The device broke off before gNMI began.")


def no_socket(error: OSError) -> NotIdentified:
    """From a place for gRPC that could not be made."""
    why = errno.errorcode.get(error.errno or 0, "a path that is too long for a socket")
    detail = f"This machine has no room for a socket in its temporary folder: {why}."
    return NotIdentified(Outcome.NOT_SENT, detail, login="unsent")


_OURS = (
    errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL,
    errno.EACCES, errno.EPERM, errno.EAFNOSUPPORT, errno.EINVAL,
)  # fmt: skip


async def not_answered(error: grpc.RpcError, call: str, access: Access, link: Any, seconds: float) -> NotIdentified:
    """From a call that failed, and what became of its link."""
    failure = await _not_answered(error, call, access, link, seconds)
    if failure.login == "unknown" and (error.code() in _JUDGED or _is_too_large(error)):
        failure.login = "accepted"
    return failure


def greeted(first: bytes) -> bool:
    """Whether the device began with the settings of HTTP/2. Before them gRPC sends no call, and so no credential."""
    return len(first) >= _FRAME_HEAD and _http2(first)


async def _not_answered(error: grpc.RpcError, call: str, access: Access, link: Any, seconds: float) -> NotIdentified:
    code = error.code()
    if isinstance(link.error, ssl.SSLError):  # TLS 1.3: a client certificate is judged after the handshake
        return await tls.explain(link.error, access, seconds)
    if link.first.startswith(_TLS_ALERT):
        return NotIdentified(
            Outcome.PROTOCOL_ERROR, "The device speaks TLS at this port; take insecure from the profile."
        )
    if code in _REFUSED:
        return _refused(code, call, access.login)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        took = f"The device did not answer {call} within {access.profile.timeout}"
        return NotIdentified(Outcome.TIMED_OUT, f"{took}; give it a longer timeout if it is slow.")
    said = _said(error, access.login)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return NotIdentified(Outcome.PROTOCOL_ERROR, f"The device speaks gRPC, but knows no gNMI {call}{said}")
    if _is_too_large(error):
        much = f"The device sent more than {MOST // 1024 // 1024} MiB as answer to {call}"
        return NotIdentified(Outcome.PROTOCOL_ERROR, f"{much}; ask for narrower paths in the vendor profile.")
    if link.first and not _http2(link.first):
        return NotIdentified(Outcome.PROTOCOL_ERROR, "The device sent bytes that are no HTTP/2; is this port for gNMI?")
    if link.lost and not link.first and not access.profile.insecure:
        return tls.dismissed(access)
    if link.lost:
        hint = "; if it speaks TLS there, take insecure from the profile." if _silent_close(access, link) else "."
        return NotIdentified(Outcome.DISCONNECTED, f"The device broke off during {call}{hint}")
    if code in _LEFT or code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return NotIdentified(Outcome.DISCONNECTED, f"The device gave up {call}{said}")
    return NotIdentified(Outcome.PROTOCOL_ERROR, f"The device refused {call} with {code.name}{said}")


_TLS_ALERT = b"\x15\x03"
_FRAME_HEAD = 9


def _is_too_large(error: grpc.RpcError) -> bool:
    """Whether the device answered, and gRPC on our side did not take it."""
    return error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in (error.details() or "")


def _http2(first: bytes) -> bool:
    """Whether it may begin with a SETTINGS frame (RFC 9113 §3.4): a type of 4, on stream 0."""
    return first[3:4] in (b"", b"\x04") and not first[5:9].strip(b"\0")


def _silent_close(access: Access, link: Any) -> bool:
    return access.profile.insecure and not link.first


def _refused(code: grpc.StatusCode, call: str, login: Login) -> NotIdentified:
    if "username" not in login.values:
        what = f"The device wants a login; Secret {login.secret} has no username and password."
    elif code is grpc.StatusCode.PERMISSION_DENIED:
        what = f"The device does not let the user of Secret {login.secret} call {call}; give that user the right to it."
    else:
        what = f"The device refused username and password of Secret {login.secret}."
    return NotIdentified(Outcome.AUTHENTICATION_FAILED, what)


def _said(error: grpc.RpcError, login: Login) -> str:
    return f": {text}" if (text := words(error, login)) else "."


def words(error: grpc.RpcError, login: Login) -> str:
    """What the device said, without our secrets."""
    text = error.details() or ""
    for name, value in login.values.items():
        if name != "username" and value:
            text = text.replace(value.reveal_bytes().decode(errors="replace"), "[redacted]")
    return printable(text)[:200]
