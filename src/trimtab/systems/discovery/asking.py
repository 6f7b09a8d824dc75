"""Asking one device what it is: profiles in their order, the first success wins.

Which credential may be sent is a matter of `attempts`. A device that breaks off, or is too slow, is asked once more after
the profile's `connectRetry`; one that refuses never is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

import msgspec

from trimtab.model.clock import Clock
from trimtab.model.logs import log
from trimtab.systems.discovery.findings import Access, Identified, Identifier, Login, NotIdentified, Outcome
from trimtab.systems.discovery.ledger.attempts import Attempts
from trimtab.systems.discovery.ledger.book import Book
from trimtab.systems.discovery.ledger.records import noted
from trimtab.systems.discovery.settings import Connection, Settings
from trimtab.systems.discovery.targets.devices import Finding

TRANSIENT = (Outcome.DISCONNECTED, Outcome.TIMED_OUT)
ADMITS = ("ssh", "netconf", "snmp")
"""By these no credential leaves before `Access.admit` has returned."""


class Opened(msgspec.Struct, frozen=True, order=True):
    """A connection that a probe found open. `login` is the credential that the probe carried, -1 for none."""

    connection: int
    login: int = -1
    answer: bytes = b""


class Asker:
    """For one sweep of one rule."""

    def __init__(
        self,
        settings: Settings,
        identifiers: Mapping[str, Identifier],
        book: Book,
        attempts: Attempts,
        clock: Clock,
        *,
        repinned: Callable[[str], bool] = lambda address: False,
    ) -> None:
        self._settings, self._identifiers, self._book = settings, identifiers, book
        self._attempts, self._clock, self._repinned = attempts, clock, repinned

    async def ask(self, address: str, opened: Sequence[Opened]) -> Finding | None:
        """What the device is, or None. Either way the ledger knows what came of it."""
        failures: list[NotIdentified] = []
        for opening in sorted(opened):
            connection = self._settings.connections[opening.connection]
            protocol = connection.spec.protocol
            try:
                secret, identified = await self._patiently(address, connection, opening)
            except NotIdentified as failure:
                failures.append(NotIdentified(failure.outcome, f"{protocol}: {failure.detail}"))
                continue
            self._note(address, Outcome.IDENTIFIED, f"{protocol}: it said what it is, by profile {connection.name}")
            return Finding(address=address, profile=connection.name, secret=secret, identified=identified)
        if failures:
            self._note(address, failures[0].outcome, "; ".join(dict.fromkeys(f.detail for f in failures)))
        return None

    async def _patiently(self, address: str, connection: Connection, opening: Opened) -> tuple[str, Identified]:
        """Once more after a while, when the device broke off or was too slow; never after a refusal."""
        try:
            return await self._by(address, connection, opening)
        except NotIdentified as failure:
            pause = connection.spec.connect_retry.seconds
            if failure.outcome not in TRANSIENT or not pause:
                raise
        await self._clock.sleep(pause)
        return await self._by(address, connection, msgspec.structs.replace(opening, answer=b""))

    async def _by(self, address: str, connection: Connection, opening: Opened) -> tuple[str, Identified]:
        if opening.login >= 0:  # the probe was the question
            login = connection.logins[opening.login]
            return login.secret, await self._identify(address, connection, login, opening.answer)
        protocol = connection.spec.protocol
        by_name = {login.secret: login for login in connection.logins}
        waits = protocol in ADMITS or not connection.spec.insecure
        async with self._attempts.device(address, protocol):
            secret = await self._attempts.begin(address, protocol, tuple(by_name), waits=waits)
            identified = await self._identify(address, connection, by_name[secret], opening.answer, counted=True)
            self._attempts.end(address, protocol, secret)
            return secret, identified

    async def _identify(
        self, address: str, connection: Connection, login: Login, answer: bytes, *, counted: bool = False
    ) -> Identified:
        """`counted` when the device may count the login against us."""
        protocol, attempts = connection.spec.protocol, self._attempts
        admitted: set[str] = set()
        async with contextlib.AsyncExitStack() as stack:

            async def admit(key: str) -> None:
                if key not in admitted:  # an identifier may log in twice
                    await stack.aclose()  # who waits for one key holds no other: two could wait for each other
                    await stack.enter_async_context(attempts.turn(address, protocol, key))
                    admitted.add(key)

            access = Access(
                address=address,
                profile=connection.spec,
                login=login,
                tls=self._settings.tls,
                pins=frozenset() if self._repinned(address) else attempts.pins(address, protocol),
                admit=admit,
                answer=answer,
            )
            try:
                identified = await self._identifiers[protocol].identify(access)
            except asyncio.CancelledError:
                if counted and not admitted and protocol in ADMITS:
                    cut = NotIdentified(Outcome.OPEN, "it was cut off before a credential left", login="unsent")
                    attempts.end(address, protocol, login.secret, cut)
                raise
            except NotIdentified as failure:
                if counted:  # before the next address of the device has its turn
                    attempts.end(address, protocol, login.secret, failure)
                if failure.pin and failure.login != "unsent":  # a key that kept us from going on is not trusted
                    attempts.pin(address, protocol, failure.pin)
                raise
            except Exception as error:  # a fault of ours, or of a library: the other devices are asked all the same
                log.exception("a device cannot be asked", address=address, protocol=protocol)
                detail = f"asking it failed by a fault of the program: {type(error).__name__}"
                fault = NotIdentified(Outcome.PROTOCOL_ERROR, detail)
                if counted:
                    attempts.end(address, protocol, login.secret, fault)
                raise fault from error
            if identified.pin:
                attempts.pin(address, protocol, identified.pin)
            return identified

    def _note(self, address: str, outcome: Outcome, detail: str) -> None:
        records = self._book.ledger.records
        records[address] = noted(records.get(address), outcome, detail, self._clock.now().timestamp())
