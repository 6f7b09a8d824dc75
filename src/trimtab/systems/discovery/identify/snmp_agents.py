"""How objects are got from one agent: by a community (v1, v2c) or as a user (v3).

Both ask in one Get for all objects, send it again when nothing comes, and turn whatever goes wrong into NotIdentified. An
object that the agent does not have is not in the answer.

v1 and v2c are spoken here, for the error-status of an answer decides what to do next; v3 is gufo-snmp's.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from gufo.snmp import SnmpAuthError, SnmpError, SnmpVersion, User
from gufo.snmp.aio import SnmpSession

from trimtab.model.duration import Duration
from trimtab.systems.discovery.findings import Access, NotIdentified, Outcome
from trimtab.systems.discovery.identify.snmp_exchange import Exchange
from trimtab.systems.discovery.identify.snmp_messages import (
    BadMessage,
    EngineId,
    Response,
    Value,
    Version,
    engine_discovery,
    get_request,
    read_engine,
    read_response,
)
from trimtab.systems.discovery.kinds import Evidence

T = TypeVar("T")
Values = Mapping[str, Value | float]

_NO_ACCESS, _AUTHORIZATION_ERROR = 6, 16  # RFC 3416 section 3
_READ_SYSTEM = "allow it to read 1.3.6.1.2.1.1 there"


class Agent(Protocol):
    """The device's side of an SNMP conversation."""

    async def get(self, oids: Sequence[str]) -> Values:
        """The values that the agent has. NotIdentified."""
        ...

    def close(self) -> None: ...


class CommunityAgent:
    """SNMP v1 and v2c. One unknown object fails a whole Get of v1: then each is asked for by itself."""

    def __init__(self, access: Access, version: Version, community: bytes, request_id: int) -> None:
        self._access = access
        self._version = version
        self._community = community
        self._request_id = request_id
        self._exchange: Exchange | None = None

    async def get(self, oids: Sequence[str]) -> Values:
        response = await self._ask(oids)
        if not response.error:
            return present(response)
        found: dict[str, Value | float] = {}
        for oid in oids if len(oids) > 1 else ():
            alone = await self._ask((oid,))
            if not alone.error:
                found.update(present(alone))
        return found

    async def _ask(self, oids: Sequence[str]) -> Response:
        self._request_id = self._request_id % 0x7FFFFFFF + 1
        request_id = self._request_id
        question = get_request(self._version, self._community, request_id, oids)
        try:
            if self._exchange is None:
                self._exchange = Exchange(self._access.address, self._access.profile.used_port)
            each, attempts = patience(self._access)
            answer = await self._exchange.ask(question, _response_to(request_id), each=each, attempts=attempts)
            return checked(self._access, answer)
        except TimeoutError:
            raise silent(self._access) from None
        except OSError as error:
            raise not_sent(self._access, error) from None
        except BadMessage as error:
            raise malformed(self._access, str(error)) from None

    def close(self) -> None:
        if self._exchange is not None:
            self._exchange.close()


class UserAgent:
    """SNMPv3, with the engine that the device said it is."""

    def __init__(self, access: Access, user: User, engine_id: bytes) -> None:
        self._access = access
        self._user = user
        self._each, self._attempts = patience(access)
        self._engine_id = engine_id
        self._evidence = Evidence(engine_id=engine_id.hex())
        try:
            self._session = self._open()
        except (OSError, ValueError) as error:
            raise not_sent(access, error) from None
        self._fresh = False

    def _open(self) -> SnmpSession:
        return SnmpSession(
            self._access.address,
            self._access.profile.used_port,
            user=self._user,
            engine_id=self._engine_id,
            version=SnmpVersion.v3,
            timeout=self._each,
        )

    async def get(self, oids: Sequence[str]) -> Values:
        if not self._fresh:
            await self._try(self._session.refresh)
            self._fresh = True
        return await self._try(lambda: self._session.get_many(oids), self._is_privacy)

    async def _try(self, ask: Callable[[], Awaitable[T]], why: Callable[[], Awaitable[str]] | None = None) -> T:
        try:
            for attempt in range(self._attempts):
                try:
                    return await ask()  # the session has its own limit for an answer
                except TimeoutError:
                    if attempt + 1 == self._attempts:
                        raise
        except TimeoutError:
            if why is not None and (said := await why()):
                raise self._refused(said) from None
            raise silent(self._access, self._evidence) from None
        except SnmpAuthError:
            raise self._refused(
                f"the device refuses the SNMPv3 user of the Secret {self._access.login.secret}; check snmp-user, "
                "auth-protocol and auth-password, whether it must use privacy, and what the user may read"
            ) from None
        except SnmpError as error:
            raise malformed(self._access, str(error), self._evidence) from None
        except OSError as error:
            raise not_sent(self._access, error, self._evidence) from None
        raise silent(self._access, self._evidence)

    async def _is_privacy(self) -> str:
        """Many agents drop what they cannot decrypt. One that still tells a newcomer its time did so.

        The time is told before anything is decrypted (RFC 3414 section 3.2), and only in a session that does not have it.
        """
        if self._user.priv_key is None:
            return ""
        try:
            await self._open().refresh()
        except (OSError, SnmpError):
            return ""
        return (
            "the device accepts the auth-password and does not answer what is encrypted; check priv-protocol and "
            f"priv-password of the Secret {self._access.login.secret}"
        )

    def _refused(self, detail: str) -> NotIdentified:
        return NotIdentified(Outcome.AUTHENTICATION_FAILED, detail, evidence=self._evidence)

    def close(self) -> None:
        """The session's socket goes with the session."""
        del self._session


async def discover(access: Access, message_id: int) -> EngineId:
    """The engine of an SNMPv3 agent, asked without a credential. NotIdentified."""
    try:
        exchange = Exchange(access.address, access.profile.used_port)
    except OSError as error:
        raise not_sent(access, error) from None
    each, attempts = patience(access)
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


def _response_to(request_id: int) -> Callable[[bytes], Response | None]:
    def read(data: bytes) -> Response | None:
        response = read_response(data)
        return response if response.request_id == request_id else None

    return read


def present(response: Response) -> dict[str, Value | float]:
    return {oid: value for oid, value in response.values if value is not None}


def checked(access: Access, response: Response) -> Response:
    """The response. NotIdentified when it says that we may not ask."""
    if response.error in (_NO_ACCESS, _AUTHORIZATION_ERROR):
        detail = f"the device refuses the community of the Secret {access.login.secret}; {_READ_SYSTEM}"
        raise NotIdentified(Outcome.AUTHENTICATION_FAILED, detail)
    return response


def patience(access: Access) -> tuple[float, int]:
    """How long to wait for an answer, and how often to ask for it: together the profile's timeout."""
    attempts = 1 + access.profile.probe_retries
    return max(seconds(access.profile.timeout), 0.001) / attempts, attempts


@functools.lru_cache(maxsize=256)
def seconds(duration: Duration) -> float:
    """A duration is read from its text; a sweep asks for the same one for each of thousands of devices."""
    return duration.seconds


def silent(access: Access, evidence: Evidence = Evidence()) -> NotIdentified:  # noqa: B008
    """A device is asked only after it answered a probe, be it some seconds ago: it is there, and took too long."""
    detail = f"the device did not answer SNMP on port {access.profile.used_port} within {access.profile.timeout}"
    if not access.answer:
        detail += f"; a wrong community is met with silence too: check the Secret {access.login.secret}"
    return NotIdentified(Outcome.TIMED_OUT, detail, evidence=evidence)


def malformed(access: Access, why: str, evidence: Evidence = Evidence()) -> NotIdentified:  # noqa: B008
    detail = f"the device's answer on port {access.profile.used_port} is not valid SNMP: {why}"
    return NotIdentified(Outcome.PROTOCOL_ERROR, detail, evidence=evidence)


def not_sent(
    access: Access,
    error: OSError | ValueError,
    evidence: Evidence = Evidence(),  # noqa: B008
) -> NotIdentified:
    """What the kernel said of our datagram."""
    port = access.profile.used_port
    if isinstance(error, ConnectionRefusedError):
        detail = f"nothing listens any more on UDP port {port}"
        return NotIdentified(Outcome.DISCONNECTED, detail, evidence=evidence)
    if isinstance(error, socket.gaierror | ValueError):
        return NotIdentified(Outcome.NOT_RESOLVED, f"{access.address} is not an IP address", evidence=evidence)
    detail = f"this machine could not send to UDP port {port}: {error.strerror or type(error).__name__}"
    return NotIdentified(Outcome.NOT_SENT, detail, evidence=evidence)
