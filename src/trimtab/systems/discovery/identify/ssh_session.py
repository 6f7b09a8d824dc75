"""One SSH login, for SSH and for NETCONF: the host key is judged before any credential leaves, and it leaves once.

Guarantees:
- With `pins`, a host key that is not among them ends the session as KEY_CHANGED, and nothing was sent. With `admit`,
  nothing is sent to a device that it does not admit by its host key.
- One authentication sequence. The key of the Secret may be offered, then its password, once: never a password by both
  `password` and `keyboard-interactive`. What breaks off or falls silent after a credential left counts as a refused
  login, since the device may have counted it so.
- No agent, no configuration, no known hosts and no keys of this machine. No forwarding.
- Each step (connection, key exchange, login) may take the profile's `timeout`; a device that trickles bytes loses.

Everything is raised as NotIdentified, also what breaks within the `async with`, with the host key once the device has
proved to have it. Only KEY_CHANGED carries a key that is merely claimed. Its `login` says how far the credential got.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
from collections.abc import AsyncIterator

import asyncssh

from trimtab.systems.discovery.findings import Access, NotIdentified
from trimtab.systems.discovery.identify.ssh_algorithms import CIPHERS, HOST_KEYS, KEY_EXCHANGES, MACS
from trimtab.systems.discovery.identify.ssh_failures import meaning
from trimtab.systems.discovery.identify.ssh_login import Login, Step

CLOSING = 1.0
"""How long a device may take to say goodbye, in seconds; then the connection is dropped."""

try:
    getpass.getuser()
except (KeyError, OSError):
    os.environ["LOGNAME"] = "trimtab"  # asyncssh wants a name, which a container's user may not have


class Session:
    """A device that let us in."""

    def __init__(self, connection: asyncssh.SSHClientConnection, login: Login) -> None:
        self.connection = connection
        self._login = login

    @property
    def pin(self) -> str:
        """The SHA256 fingerprint of the host key."""
        return self._login.pin

    @property
    def greeting(self) -> str:
        """The version line, then the banner: what the device says before anybody logs in."""
        version = str(self.connection.get_extra_info("server_version", ""))
        return f"{version}\n{self._login.banner}" if self._login.banner else version

    @property
    def lost(self) -> bool:
        """Whether the connection has ended."""
        return self._login.lost


@contextlib.asynccontextmanager
async def logged_in(access: Access) -> AsyncIterator[Session]:
    """A session, closed at the end. NotIdentified when there is none, or when it breaks."""
    login = Login(access)
    try:
        try:
            connection = await _open(access, login)
        except Exception as error:  # asyncssh hands on whatever its reader stumbled over in a malformed packet
            raise login.stopped or meaning(error, login) from error
        try:
            yield Session(connection, login)
        finally:
            await _close(connection)
    except NotIdentified as failure:
        end = "refused" if failure.login == "refused" else login.end
        pin = failure.pin or login.pin
        raise NotIdentified(failure.outcome, failure.detail, login=end, pin=pin) from failure
    except (asyncssh.Error, OSError, EOFError) as error:
        raise meaning(error, login) from error


async def _open(access: Access, login: Login) -> asyncssh.SSHClientConnection:
    async with asyncio.timeout(None) as limit:
        login.limit = limit
        login.enter(Step.CONNECTION)
        return await asyncssh.connect(
            access.address,
            access.profile.used_port,
            client_factory=lambda: login,
            username=login.username,
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
