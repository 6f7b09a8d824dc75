"""What the parts of discovery say to each other: outcomes of an address, and what identifying a device gives.

An outcome is one byte in the ledger, so its numbers never change. `seen` is what keeps a Target alive: a device that
refuses our password is there.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal
from typing import Protocol as Contract

import msgspec

from trimtab.model.redacted import Redacted
from trimtab.systems.discovery.kinds import DiscoveryInfo, Evidence, TargetConnectionProfileSpec


class Outcome(enum.IntEnum):
    """What came of an address in the last sweep that reached it."""

    UNPROBED = 0
    SILENT = 1
    """Nothing answered."""
    REFUSED = 2
    """The machine is there, and nothing listens at the port."""
    UNREACHABLE = 3
    """A router, or our own machine, says that nobody is there."""
    NOT_SENT = 4
    """Our own machine could not send: no socket, no route, no buffer. It says nothing of the device."""
    NOT_RESOLVED = 5
    """The DNS name has no address."""
    OPEN = 16
    """It answered the probe, and has not been asked more."""
    IDENTIFIED = 17
    AUTHENTICATION_FAILED = 18
    """It refused the credential."""
    WAITING = 19
    """No credential may be tried before the lock-out window has passed."""
    TLS_FAILED = 20
    """Its certificate does not verify, or TLS broke."""
    KEY_CHANGED = 21
    """It shows another key than on first use; no credential was sent."""
    PROTOCOL_ERROR = 22
    """It sent what the protocol does not allow, or too much."""
    TIMED_OUT = 23
    """It answered the probe, then took too long."""
    DISCONNECTED = 24
    """It broke off in the middle."""
    STATIC = 32
    """Written unprobed."""

    @property
    def seen(self) -> bool:
        """Whether something answered at the address."""
        return self >= Outcome.OPEN


class Login(msgspec.Struct, frozen=True):
    """One credential: a Secret by name, and its values. The keys are those of the guide: username, password, …"""

    secret: str
    values: Mapping[str, Redacted]
    revision: str = ""


class Tls(msgspec.Struct, frozen=True):
    """CA and client certificate in PEM, from a Secret; None where it has none."""

    ca: bytes | None = None
    certificate: bytes | None = None
    key: Redacted | None = None


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How one device is to be asked. `pins` are fingerprints that may be accepted; empty on first use."""

    address: str
    profile: TargetConnectionProfileSpec
    login: Login
    tls: Tls = Tls()
    pins: frozenset[str] = frozenset()
    admit: Callable[[str], Awaitable[None]] | None = None
    """To be called with the key that the device showed (SSH host key, TLS key, SNMPv3 engine ID in hexadecimal digits)
    before a credential is sent. It raises NotIdentified when the same device refused one a short while ago, be it at
    another address."""
    answer: bytes = b""
    """What the device answered to the probe, where that was a question already (SNMP)."""


class Identified(msgspec.Struct, frozen=True, kw_only=True):
    """A device that said what it is. `tied` names the vendor profiles that match it equally well."""

    info: DiscoveryInfo
    evidence: Evidence
    pin: str = ""
    """The fingerprint that the device showed: SSH host key or TLS public key."""
    tied: tuple[str, ...] = ()


LoginEnd = Literal["unsent", "unknown", "accepted", "refused"]
"""What became of a credential: the device surely never got it, it may have judged it, it let us in, or it did not."""


class NotIdentified(Exception):  # noqa: N818 - it reads as what happened
    """It did not. `detail` is one sentence for people, without secrets. `login` decides whether the device may be asked
    again soon: who does not know what became of the credential leaves it out."""

    def __init__(
        self,
        outcome: Outcome,
        detail: str,
        *,
        login: LoginEnd | None = None,
        pin: str = "",
    ) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail
        self.login: LoginEnd = login or ("refused" if outcome is Outcome.AUTHENTICATION_FAILED else "unknown")
        self.pin = pin


class Identifier(Contract):
    """Asks devices by one protocol. Bounded in time by the profile's `timeout` for each answer, and in size."""

    async def identify(self, access: Access) -> Identified:
        """NotIdentified when it cannot be told. Nothing else is raised, but for cancellation."""
        ...

    async def close(self) -> None: ...
