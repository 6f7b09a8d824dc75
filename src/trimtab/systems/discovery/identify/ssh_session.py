"""One SSH login, for SSH and for NETCONF: the host key is judged before any credential leaves, and it leaves once.

Guarantees:
- With `pins`, a host key that is not among them ends the session as KEY_CHANGED, and nothing was sent. With `admit`,
  nothing is sent to a device that it does not admit by its host key.
- One authentication sequence. The key of the Secret may be offered, then its password, once: never a password by both
  `password` and `keyboard-interactive`. What breaks off or falls silent after a credential left counts as a refused
  login, since the device may have counted it so.
- No agent, no configuration, no known hosts and no keys of this machine. No forwarding.
- Each step (connection, key exchange, login) may take the profile's `timeout`; a device that trickles bytes loses.

Everything is raised as NotIdentified, also what breaks within the `async with`, with the host key once it is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import errno
import getpass
import os
import re
from collections.abc import AsyncIterator, Sequence

import asyncssh

from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.findings import Access, NotIdentified, Outcome
from trimtab.systems.discovery.kinds import Evidence

LARGEST_BANNER = 64 * 1024
CLOSING = 1.0
"""How long a device may take to say goodbye, in seconds; then the connection is dropped."""

KEY_EXCHANGES = (
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group14-sha256",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group18-sha512",
    "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group14-sha1",
    "diffie-hellman-group-exchange-sha1",
    "diffie-hellman-group1-sha1",
)
CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
    "aes128-cbc",
    "aes192-cbc",
    "aes256-cbc",
    "3des-cbc",
)
MACS = (
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha2-256",
    "hmac-sha2-512",
    "hmac-sha1-etm@openssh.com",
    "hmac-sha1",
    "hmac-sha1-96",
    "hmac-md5",
)
HOST_KEYS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-256",
    "rsa-sha2-512",
    "ssh-rsa",
    "ssh-dss",
)
"""What may be agreed on, best first. The last ones of each list are for old network gear: SHA-1 key exchanges, CBC and
3DES ciphers, SHA-1 and MD5 MACs, ssh-rsa and ssh-dss host keys. The order of host keys must stay: a device that has
several is known by the first."""


try:
    getpass.getuser()
except (KeyError, OSError):
    os.environ["LOGNAME"] = "trimtab"  # asyncssh wants a name, which a container's user may not have


class Session:
    """A device that let us in."""

    def __init__(self, connection: asyncssh.SSHClientConnection, client: _Client) -> None:
        self.connection = connection
        self._client = client

    @property
    def pin(self) -> str:
        """The SHA256 fingerprint of the host key."""
        return self._client.pin

    @property
    def greeting(self) -> str:
        """The version line, then the banner: what the device says before anybody logs in."""
        version = str(self.connection.get_extra_info("server_version", ""))
        return f"{version}\n{self._client.banner}" if self._client.banner else version

    @property
    def lost(self) -> bool:
        return self._client.lost


@contextlib.asynccontextmanager
async def logged_in(access: Access) -> AsyncIterator[Session]:
    """A session, closed at the end. NotIdentified when there is none, or when it breaks."""
    client = _Client(access)
    try:
        try:
            connection = await _open(access, client)
        except Exception as error:  # asyncssh hands on whatever its reader stumbled over in a malformed packet
            raise _failure(error, client) from error
        try:
            yield Session(connection, client)
        finally:
            await _close(connection)
    except NotIdentified as failure:
        raise NotIdentified(failure.outcome, failure.detail, pin=client.pin, evidence=client.evidence) from failure
    except (asyncssh.Error, OSError, EOFError) as error:
        raise _failure(error, client) from error


def is_lost(error: Exception) -> bool:
    """Whether the whole connection is gone, and not only a channel refused."""
    if isinstance(error, asyncssh.ChannelOpenError):
        return error.code == asyncssh.OPEN_CONNECT_FAILED  # also what asyncssh says of a closed connection
    return isinstance(error, asyncssh.ConnectionLost | ConnectionError | EOFError)


async def _open(access: Access, client: _Client) -> asyncssh.SSHClientConnection:
    async with asyncio.timeout(None) as limit:
        client.limit = limit
        client.enter(_Step.CONNECTION)
        return await asyncssh.connect(
            access.address,
            access.profile.used_port,
            client_factory=lambda: client,
            username=client.username,
            kex_algs=KEY_EXCHANGES,
            encryption_algs=CIPHERS,
            mac_algs=MACS,
            server_host_key_algs=HOST_KEYS,
            compression_algs=None,
            preferred_auth=("publickey", "password", "keyboard-interactive"),
            known_hosts=([], [], []),
            client_keys=None,
            agent_path=None,
            config=None,
            gss_kex=False,
            gss_auth=False,
            x509_trusted_certs=None,
            login_timeout=0,
            utf8_decode_errors="replace",
        )


async def _close(connection: asyncssh.SSHClientConnection) -> None:
    connection.close()
    try:
        async with asyncio.timeout(CLOSING):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()


class _Step(enum.Enum):
    CONNECTION = "accept the connection"
    KEYS = "finish the key exchange"
    LOGIN = "let us log in"
    WORK = "answer"


class _Client(asyncssh.SSHClient):
    """What asyncssh asks while it opens the connection, and what came to light by then."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.username, self._keys, self._password = _credentials(access)
        self.limit: asyncio.Timeout | None = None
        self.step = _Step.CONNECTION
        self.sent = False  # a credential, and no answer to it yet
        self.pin = ""
        self.banner = ""
        self.lost = False
        self.key_changed = False
        self.not_admitted: NotIdentified | None = None
        self._asked = False
        self._interactive = False

    @property
    def evidence(self) -> Evidence:
        return Evidence(ssh_host_key=self.pin) if self.pin else Evidence()

    def enter(self, step: _Step) -> None:
        """Each step has its own time."""
        self.step = step
        if self.limit is not None:
            self.limit.reschedule(asyncio.get_running_loop().time() + self.access.profile.timeout.seconds)

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.enter(_Step.KEYS)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.pin = key.get_fingerprint()
        self.key_changed = bool(self.access.pins) and self.pin not in self.access.pins
        return not self.key_changed

    def begin_auth(self, username: str) -> None:
        self.enter(_Step.LOGIN)

    def auth_banner_received(self, msg: str, lang: str) -> None:
        self.banner += msg
        if len(self.banner) > LARGEST_BANNER:
            raise asyncssh.ProtocolError(f"its banner is longer than {LARGEST_BANNER} characters")

    async def public_key_auth_requested(self) -> asyncssh.SSHKey | None:
        if not await self._admitted() or not self._keys:
            return None
        self.sent = True
        return self._keys.pop()

    async def password_auth_requested(self) -> str | None:
        return self._give_password() if await self._admitted() else None

    async def kbdint_auth_requested(self) -> str | None:
        if not await self._admitted() or self._password is None or self._interactive:
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
        self.enter(_Step.WORK)

    async def _admitted(self) -> bool:
        """Whether a credential may go to a device with this host key."""
        if not self._asked and self.access.admit is not None:
            self._asked = True
            try:
                await self.access.admit(self.pin)
            except NotIdentified as refusal:
                self.not_admitted = refusal
            self.enter(_Step.LOGIN)  # the time that this took is not the device's
        return self.not_admitted is None

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
            Outcome.OPEN, f"Secret {secret} needs username, and password or ssh-privatekey, to log in by SSH."
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
        ) from error
    except ValueError as error:
        raise NotIdentified(Outcome.OPEN, f"Secret {secret} holds a username or password that is no text.") from error


def _failure(error: Exception, client: _Client) -> NotIdentified:
    """What an error of the connection means."""
    secret = client.access.login.secret
    if client.not_admitted is not None:
        outcome, detail = client.not_admitted.outcome, client.not_admitted.detail
    elif client.key_changed:
        outcome, detail = (
            Outcome.KEY_CHANGED,
            (
                f"The device shows the host key {client.pin}, which is not the one known from before. No credential was sent. "
                "If the device was replaced, accept the new key."
            ),
        )
    elif isinstance(error, asyncssh.PermissionDenied):
        outcome, detail = Outcome.AUTHENTICATION_FAILED, _refused(client)
    elif client.sent:
        # It may have counted this as a failed login.
        outcome, detail = (
            Outcome.AUTHENTICATION_FAILED,
            (
                f"The device did not answer the login with Secret {secret}: {_sentence(error, client)} "
                "It counts as refused, so that the account is not locked. Check the Secret and the device's log."
            ),
        )
    elif client.step is _Step.CONNECTION and not isinstance(error, asyncssh.Error | OSError):
        outcome, detail = (
            Outcome.OPEN,
            (f"Nothing was sent: SSH cannot use the username of Secret {secret} ({type(error).__name__})."),
        )
    else:
        outcome, detail = _kind(error), _sentence(error, client)
    return NotIdentified(outcome, detail, pin=client.pin, evidence=client.evidence)


def _kind(error: Exception) -> Outcome:
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
        case asyncssh.DisconnectError() if error.code in (asyncssh.DISC_BY_APPLICATION, asyncssh.DISC_CONNECTION_LOST):
            return Outcome.DISCONNECTED
        case _:
            return Outcome.PROTOCOL_ERROR


def _sentence(error: Exception, client: _Client) -> str:
    match error:
        case TimeoutError():
            return f"It did not {client.step.value} within {client.access.profile.timeout}."
        case _ if is_lost(error):
            return f"It broke off while it was to {client.step.value}."
        case asyncssh.ChannelOpenError():
            return (
                f"The login worked, but the device opens neither exec nor a shell for us: {_printable(error.reason)}."
            )
        case asyncssh.Error():
            return f"SSH broke while it was to {client.step.value}: {_printable(error.reason)}."
        case OSError():
            return (
                f"The connection broke while it was to {client.step.value}: {error.strerror or type(error).__name__}."
            )
        case _:
            return f"It sent what is not SSH ({type(error).__name__}). Check the port and what listens there."


def _refused(client: _Client) -> str:
    secret = client.access.login.secret
    if client.sent:
        return f"The device refused the login with Secret {secret}. Check its username, and password or key."
    return f"The device takes none of the ways to log in that Secret {secret} has a value for. Nothing was tried."


def _printable(text: str) -> str:
    """A device's own words, short and without control characters."""
    return "".join(c if c.isprintable() else " " for c in text[:200]).strip().rstrip(".")
