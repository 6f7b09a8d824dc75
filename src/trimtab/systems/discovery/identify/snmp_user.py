"""Objects of an agent as a user of SNMPv3, by gufo-snmp.

Two things to know of gufo-snmp 0.13. It passes over what it cannot decrypt or does not expect, so a wrong privacy key is
silence. And a datagram that ends in the middle makes its native part panic: that is no Exception in Python, and would end
more than this device's turn, so it is caught here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from gufo.snmp import SnmpAuthError, SnmpError, SnmpVersion, User
from gufo.snmp.aio import SnmpSession

from trimtab.systems.discovery.findings import Access, LoginEnd
from trimtab.systems.discovery.identify.snmp_exchange import Exchange, patience
from trimtab.systems.discovery.identify.snmp_failures import malformed, not_sent, refused, silent
from trimtab.systems.discovery.identify.snmp_messages import (
    BadMessage,
    EngineId,
    engine_discovery,
    read_engine,
)

T = TypeVar("T")
Got = Mapping[str, bytes | int | str | float | None]

_PANIC = "PanicException"  # of pyo3; it cannot be imported


class UserAgent:
    """With the engine that the device said it is. NotIdentified when our machine has no socket."""

    def __init__(self, access: Access, user: User, engine_id: bytes) -> None:
        self._access = access
        self._user = user
        self._each, self._attempts = patience(access.profile)
        self._engine_id = engine_id
        self._session: SnmpSession | None = None
        self.login: LoginEnd = "unsent"
        """What became of the user's credential by now, if the device did not refuse it."""

    async def get(self, oids: Sequence[str]) -> Got:
        """The values that the agent has. NotIdentified.

        Agents drop what they cannot decrypt. Before that they tell a newcomer their time (RFC 3414 section 3.2): one that
        does so twice, and answers nothing that is encrypted, has another privacy key.
        """
        if self._session is None:
            self._session = await self._opened()
        try:
            return await self._repeated(self._session, oids)
        except TimeoutError:
            if self._user.priv_key is None:
                raise silent(self._access) from None
        self._session = await self._opened()
        try:
            return await self._repeated(self._session, oids)
        except TimeoutError:
            raise refused(
                "the device accepts the auth-password and does not answer what is encrypted; check priv-protocol and "
                f"priv-password of the Secret {self._access.login.secret}",
            ) from None

    def close(self) -> None:
        self._session = None  # its socket goes with it

    async def _opened(self) -> SnmpSession:
        """A session that knows the engine's time."""
        try:
            session = SnmpSession(
                self._access.address,
                self._access.profile.used_port,
                user=self._user,
                engine_id=self._engine_id,
                version=SnmpVersion.v3,
                timeout=self._each,
            )
        except (OSError, ValueError) as error:
            raise not_sent(self._access, error) from None
        self.login = "unknown" if self.login == "unsent" else self.login
        try:
            await self._again(lambda: self._told(session.refresh()))
        except TimeoutError:
            raise silent(self._access) from None
        return session

    async def _repeated(self, session: SnmpSession, oids: Sequence[str]) -> Got:
        got = await self._again(lambda: self._told(session.get_many(oids)))
        self.login = "accepted"
        return got

    async def _again(self, ask: Callable[[], Awaitable[T]]) -> T:
        for _ in range(self._attempts - 1):
            try:
                return await ask()
            except TimeoutError:
                continue
        return await ask()

    async def _told(self, asked: Awaitable[T]) -> T:
        """The answer. TimeoutError, or NotIdentified for all else that goes wrong."""
        try:
            return await asked
        except TimeoutError:
            raise
        except SnmpAuthError:
            raise refused(
                f"the device refuses the SNMPv3 user of the Secret {self._access.login.secret}; check snmp-user, "
                "auth-protocol and auth-password, whether it must use privacy, and what the user may read",
            ) from None
        except SnmpError as error:
            raise malformed(self._access, str(error)) from None
        except OSError as error:
            raise not_sent(self._access, error) from None
        except BaseException as error:
            if type(error).__name__ != _PANIC:
                raise
            raise malformed(self._access, "it ends in the middle") from None


async def discover(access: Access, message_id: int) -> EngineId:
    """The engine of an agent, asked without a credential. NotIdentified."""
    try:
        exchange = Exchange(access.address, access.profile.used_port)
    except OSError as error:
        raise not_sent(access, error) from None
    each, attempts = patience(access.profile)
    try:
        return await exchange.ask(
            engine_discovery(message_id), lambda answer: engine_of(access, answer), each=each, attempts=attempts
        )
    except TimeoutError:
        raise silent(access) from None
    except OSError as error:
        raise not_sent(access, error) from None
    finally:
        exchange.close()


def engine_of(access: Access, answer: bytes) -> EngineId:
    """The engine that a datagram comes from. NotIdentified."""
    try:
        engine = read_engine(answer)
    except BadMessage as error:
        raise malformed(access, str(error)) from None
    if engine is None:
        raise malformed(access, "it does not tell its engine ID")
    return engine
