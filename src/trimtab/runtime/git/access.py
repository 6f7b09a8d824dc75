"""Where a repository is and who asks for it."""

from __future__ import annotations

import msgspec

from trimtab.model.redacted import Redacted


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How to get in. For HTTP: a password with its username, or a token, which is sent as the password of `username`
    or of one that forges take for any. For SSH: a private key in OpenSSH or PEM form, or a password. Its repr shows no
    secret."""

    username: str = ""
    password: Redacted | None = None
    token: Redacted | None = None
    key: Redacted | None = None
    passphrase: Redacted | None = None
    """Of the key."""
    known_hosts: str = ""
    """Lines as of OpenSSH's known_hosts; a server with none of these keys is not spoken to."""
    ca: str = ""
    """PEM: the certificates that may vouch for the server, instead of the machine's."""
    insecure: bool = False
    """Accept any certificate and host key, and transports that anybody on the way can read."""

    def secrets(self) -> tuple[Redacted, ...]:
        return tuple(each for each in (self.password, self.token, self.key, self.passphrase) if each)


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """A repository somewhere else, and how to get in."""

    url: str
    access: Access = Access()
    allow_file: bool = False
    """Whether the URL may be a folder of this machine. For tests: it reads whatever we may read."""
