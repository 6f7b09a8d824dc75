"""What can go wrong between us and a Git server. Messages say what to do and never carry a credential.

Their names are what happened, as in `except Moved`.
"""

from __future__ import annotations


class RemoteError(Exception):
    """Base of them. `again` tells whether the same call may succeed later without anybody changing anything."""

    again = False


class BadAddress(RemoteError):  # noqa: N818
    """The URL is of a form that is not allowed; nothing was contacted."""


class AuthFailed(RemoteError):  # noqa: N818
    """The server does not accept who we say we are, or does not let us do this."""


class Unreachable(RemoteError):  # noqa: N818
    """No answer, or none that is Git's. Nothing was changed there."""

    again = True


class NoSuchRef(RemoteError):  # noqa: N818
    """The server, or the mirror, has no such branch, tag or commit."""


class HostKeyUnknown(RemoteError):  # noqa: N818
    """The server did not prove to be the one that is meant: its SSH host key or its TLS certificate is not known."""


class TooLarge(RemoteError):  # noqa: N818
    """More than the limits allow: bytes, files, branches."""


class TimedOut(RemoteError):  # noqa: N818
    """Not done in the time allowed. Nothing was changed there."""

    again = True


class Malformed(RemoteError):  # noqa: N818
    """The repository has what no honest one has, such as a file named '..'."""


class Refused(RemoteError):  # noqa: N818
    """The server understood a push and said no: a protected branch, a hook, a quota."""


class Moved(RemoteError):  # noqa: N818
    """The branch is not where it was expected to be. Fetch, build upon that, push again."""


class Uncertain(RemoteError):  # noqa: N818
    """The connection ended while we pushed: it may have been done or not. Fetch and look."""


class GitMissing(RemoteError):  # noqa: N818
    """A program is missing on this machine."""
