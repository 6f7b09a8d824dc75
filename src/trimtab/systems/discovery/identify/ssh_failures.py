"""What an error of an SSH connection means: the outcome, and a sentence for people. Nothing here does I/O."""

from __future__ import annotations

import errno

import asyncssh

from trimtab.systems.discovery.findings import NotIdentified, Outcome
from trimtab.systems.discovery.identify.ssh_login import Login, Step

PASSING = (
    asyncssh.DISC_SERVICE_NOT_AVAILABLE,
    asyncssh.DISC_CONNECTION_LOST,
    asyncssh.DISC_BY_APPLICATION,
    asyncssh.DISC_TOO_MANY_CONNECTIONS,
)
"""Reasons to hang up that may be gone the next time."""


def meaning(error: Exception, login: Login) -> NotIdentified:
    """How a login ended, or what was done with it."""
    secret, pin = login.access.login.secret, login.pin
    outcome, detail = _outcome(error), _sentence(error, login)
    if login.key_changed:
        outcome, pin = Outcome.KEY_CHANGED, login.shown
        detail = (
            f"The device shows the host key {login.shown}, which is not the one known from before. No credential was sent. "
            "If the device was replaced, accept the new key."
        )
    elif isinstance(error, asyncssh.PermissionDenied):
        outcome, detail = Outcome.AUTHENTICATION_FAILED, _refused(login)
    elif login.sent:
        outcome = Outcome.AUTHENTICATION_FAILED
        detail = (
            f"The device got the login of Secret {secret} and did not answer it. {detail} "
            "It counts as refused, so that no account is locked. Check the Secret and the device's log."
        )
    elif login.step is Step.CONNECTION and not isinstance(error, asyncssh.Error | OSError):
        outcome = Outcome.OPEN
        detail = f"Nothing was sent: SSH cannot use the username of Secret {secret} ({type(error).__name__})."
    refused = isinstance(error, asyncssh.PermissionDenied) and login.end != "unsent"
    return NotIdentified(outcome, detail, login="refused" if refused else login.end, pin=pin)


def is_lost(error: Exception) -> bool:
    """Whether the whole connection is gone, and not only a channel refused."""
    if isinstance(error, asyncssh.ChannelOpenError):
        return error.code == asyncssh.OPEN_CONNECT_FAILED  # also what asyncssh says of a closed connection
    return isinstance(error, asyncssh.ConnectionLost | ConnectionError | EOFError)


def _outcome(error: Exception) -> Outcome:
    match error:
        case TimeoutError():
            return Outcome.TIMED_OUT
        case ConnectionRefusedError():
            return Outcome.REFUSED
        case _ if is_lost(error):
            return Outcome.DISCONNECTED
        case OSError() if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN):
            return Outcome.UNREACHABLE
        case OSError():
            return Outcome.NOT_SENT
        case asyncssh.DisconnectError() if error.code in PASSING:
            return Outcome.DISCONNECTED
        case _:
            return Outcome.PROTOCOL_ERROR


def _sentence(error: Exception, login: Login) -> str:
    step = login.step.value
    match error:
        case TimeoutError():
            return f"The device did not {step} within {login.access.profile.timeout}."
        case ConnectionRefusedError():
            return "Nothing listens at the port. Enable the service on the device, or set the port."
        case _ if is_lost(error):
            return f"The device broke off where it should {step}."
        case OSError():
            return f"There was no connection: {error.strerror or type(error).__name__}."
        case asyncssh.ChannelOpenError():
            return (
                f"The login worked, but the device opens neither exec nor a shell for us: {_printable(error.reason)}."
            )
        case asyncssh.Error():
            reason = _printable(error.reason)
            return f"SSH failed where the device should {step}: {reason}. Check the port and what listens there."
        case _:
            return f"The device sent what is not SSH ({type(error).__name__}). Check the port and what listens there."


def _refused(login: Login) -> str:
    secret = login.access.login.secret
    if login.sent:
        return f"The device refused the login of Secret {secret}. Check its username, and password or key."
    return f"The device takes none of the ways to log in that Secret {secret} has a value for. Nothing was tried."


def _printable(text: str) -> str:
    """A device's own words, short and without control characters."""
    return "".join(c if c.isprintable() else " " for c in text[:200]).strip().rstrip(".")
