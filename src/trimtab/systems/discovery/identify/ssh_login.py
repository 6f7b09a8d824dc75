"""What asyncssh asks while it opens a connection, and what came to light by then: key, banner, how far it got.

Each credential is given out once: a second question for it gets none.
"""

from __future__ import annotations

import asyncio
import enum
import re
from collections.abc import Sequence

import asyncssh

from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Access, LoginEnd, NotIdentified, Outcome

LARGEST_BANNER = 64 * 1024


class Step(enum.Enum):
    """How far the connection is: what the device should do next."""

    CONNECTION = "accept the connection"
    KEYS = "finish the key exchange"
    LOGIN = "let us log in"
    WORK = "answer"


class Login(asyncssh.SSHClient):
    """One login. NotIdentified when the Secret has nothing to log in with."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.username, self._keys, self._password = _credentials(access)
        self.limit: asyncio.Timeout | None = None
        self.step = Step.CONNECTION
        self.sent = False
        """A credential has left, and the device has not let us in."""
        self.shown = ""
        """The host key that the device claims."""
        self.pin = ""
        """The same, once it has proved to have it."""
        self.banner = ""
        self.lost = False
        self.key_changed = False
        self.stopped: Exception | None = None
        """Why no credential may be sent to this device."""
        self._admitted = access.admit is None
        self._interactive = False

    @property
    def end(self) -> LoginEnd:
        """What became of the credential by now, if the device did not refuse it. To begin a dialogue and then say nothing
        may be a failure to the device."""
        if self.step is Step.WORK:
            return "accepted"
        return "unknown" if self.sent or self._interactive else "unsent"

    def enter(self, step: Step) -> None:
        """Each step has its own time."""
        self.step = step
        if self.limit is not None:
            self.limit.reschedule(asyncio.get_running_loop().time() + self.access.profile.timeout.seconds)

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.enter(Step.KEYS)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        allowed = {self.pin} if self.pin else self.access.pins  # keys may be exchanged again, for the same host key
        self.shown = key.get_fingerprint()
        self.key_changed = bool(allowed) and self.shown not in allowed
        return not self.key_changed

    def begin_auth(self, username: str) -> None:
        self.pin = self.shown  # it has signed the key exchange
        self.enter(Step.LOGIN)

    def auth_banner_received(self, msg: str, lang: str) -> None:
        self.banner += msg
        if len(self.banner) > LARGEST_BANNER:
            raise asyncssh.ProtocolError(f"its banner is longer than {LARGEST_BANNER} characters")

    async def public_key_auth_requested(self) -> asyncssh.SSHKey | None:
        if not await self._may_send() or not self._keys:
            return None
        self.sent = True
        return self._keys.pop()

    async def password_auth_requested(self) -> str | None:
        return self._give_password() if await self._may_send() else None

    async def kbdint_auth_requested(self) -> str | None:
        if not await self._may_send() or self._password is None or self._interactive:
            return None
        self._interactive = True
        return ""

    def kbdint_challenge_received(
        self, name: str, instructions: str, lang: str, prompts: Sequence[tuple[str, bool]]
    ) -> Sequence[str] | None:
        if not prompts:
            return []  # a message for people
        if len(prompts) != 1 or prompts[0][1] or _SECOND_FACTOR.search(prompts[0][0]):
            return None
        password = self._give_password()
        return None if password is None else [password]

    def auth_completed(self) -> None:
        self.sent = False
        self.enter(Step.WORK)

    async def _may_send(self) -> bool:
        if not self._admitted and self.stopped is None and self.access.admit is not None:
            if self.limit is not None:
                self.limit.reschedule(None)  # the time that this takes is not the device's
            try:
                await self.access.admit(self.pin)
                self._admitted = True
            except Exception as error:  # asyncssh would take it for a fault of the connection
                self.stopped = error
            self.enter(Step.LOGIN)
        return self._admitted

    def _give_password(self) -> str | None:
        password, self._password = self._password, None
        if password is None:
            return None
        self.sent = True
        return password.reveal()


_SECOND_FACTOR = re.compile(r"\b(?:code|otp|token|pin|verification|challenge)\b", re.IGNORECASE)


def _credentials(access: Access) -> tuple[str, list[asyncssh.SSHKey], Redacted | None]:
    values, secret = access.login.values, access.login.secret
    username, password, key = (values.get(name) for name in ("username", "password", "ssh-privatekey"))
    if not username or not (password or key):
        raise NotIdentified(
            Outcome.OPEN,
            f"Secret {secret} needs username, and password or ssh-privatekey, to log in by SSH.",
            login="unsent",
        )
    try:
        if password:
            password.reveal()
        # The check of an RSA key takes up to 250 ms, for each device; the key is our user's own.
        keys = [asyncssh.import_private_key(key.reveal(), unsafe_skip_rsa_key_validation=True)] if key else []
        return username.reveal(), keys, password or None
    except asyncssh.KeyImportError as error:
        raise NotIdentified(
            Outcome.OPEN,
            f"The ssh-privatekey of Secret {secret} cannot be read: give an unencrypted key in PEM or OpenSSH form.",
            login="unsent",
        ) from error
    except ValueError as error:
        detail = f"Secret {secret} holds a username or password that is no text."
        raise NotIdentified(Outcome.OPEN, detail, login="unsent") from error
