"""Asking one device what it is: profiles in their order, the first success wins.

The rules that keep devices from locking us out are kept here: a login comes from `logins.choose`; before a credential
that has not worked there is sent, the attempt is in the ledger, durably; after a refusal nothing else is tried on that
device within the window, by no protocol. A community of SNMP v1 and v2c is part of the question and locks nobody out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from trimtab.model.clock import Clock, format_time
from trimtab.systems.discovery import logins
from trimtab.systems.discovery.book import Book
from trimtab.systems.discovery.devices import Finding
from trimtab.systems.discovery.findings import Access, Identified, Identifier, Login, NotIdentified, Outcome
from trimtab.systems.discovery.ledger import AddressRecord, same_device, siblings
from trimtab.systems.discovery.logins import LoginRecord, State, Use
from trimtab.systems.discovery.settings import Connection, Settings

TRANSIENT = (Outcome.DISCONNECTED, Outcome.TIMED_OUT)
UNSENT = (Outcome.WAITING, Outcome.KEY_CHANGED, Outcome.TLS_FAILED)
"""With these the device never got the credential."""


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
        clock: Clock,
        *,
        repinned: Callable[[str], bool] = lambda address: False,
    ) -> None:
        self._settings, self._identifiers, self._book, self._clock = settings, identifiers, book, clock
        self._repinned = repinned
        self._window = settings.rule.spec.lockout_window.seconds
        self._siblings = siblings(book.ledger)
        self._shown = _shown(book)
        self._turns: dict[str, asyncio.Lock] = {}

    async def ask(self, address: str, opened: Sequence[Opened]) -> Finding | None:
        """What the device is, or None. Either way the ledger knows what came of it."""
        failures: list[NotIdentified] = []
        for opening in sorted(opened):
            connection = self._settings.connections[opening.connection]
            try:
                secret, identified = await self._by(address, connection, opening)
            except NotIdentified as failure:
                failures.append(
                    NotIdentified(failure.outcome, f"{connection.spec.protocol}: {failure.detail}", pin=failure.pin)
                )
                continue
            self._note(address, Outcome.IDENTIFIED, f"by {connection.spec.protocol} with profile {connection.name}")
            return Finding(address=address, profile=connection.name, secret=secret, identified=identified)
        if failures:
            self._note(address, failures[0].outcome, "; ".join(dict.fromkeys(f.detail for f in failures)))
        return None

    async def _by(self, address: str, connection: Connection, opening: Opened) -> tuple[str, Identified]:
        if opening.login >= 0:  # the probe was the question
            login = connection.logins[opening.login]
            return login.secret, await self._patiently(address, connection, login, opening.answer)
        login = await self._chosen(address, connection)
        protocol = connection.spec.protocol
        try:
            identified = await self._patiently(address, connection, login, opening.answer)
        except NotIdentified as failure:
            if failure.outcome is not Outcome.AUTHENTICATION_FAILED:  # it never judged the credential
                unsent = failure.outcome in UNSENT
                self._log_in(address, protocol, logins.dropped(self._record(address, protocol), unsent=unsent))
            raise
        self._log_in(address, protocol, logins.succeeded(self._record(address, protocol), login.secret, self._now))
        return login.secret, identified

    async def _chosen(self, address: str, connection: Connection) -> Login:
        """The credential that may be tried now, noted where it matters. NotIdentified while none may."""
        protocol = connection.spec.protocol
        record = self._record(address, protocol)
        by_name = {login.secret: login for login in connection.logins}
        target = self._address(address).target
        secret = self._may(record, tuple(by_name), address, protocol, self._siblings.get(target, ()))
        if record.worked != secret:
            self._log_in(address, protocol, logins.attempted(record, secret, self._now))
            await self._book.commit()
        return by_name[secret]

    def _may(
        self, record: LoginRecord, secrets: Sequence[str], address: str, protocol: str, others: Iterable[str]
    ) -> str:
        known = same_device(self._book.ledger, address, protocol, others)
        choice = logins.choose(record, secrets, self._now, self._window, others=known)
        if isinstance(choice, Use):
            return choice.secret
        raise _waiting(choice.until)

    def _let_pass(self, record: LoginRecord) -> None:
        """NotIdentified when the device that has this record refused a login a short while ago."""
        if logins.state(record, self._now, self._window) is State.LOCKED:
            raise _waiting(max(record.failed.values(), default=self._now) + self._window)

    async def _patiently(self, address: str, connection: Connection, login: Login, answer: bytes) -> Identified:
        """Once more after a while, when the device broke off or was too slow; never after a refusal."""
        try:
            return await self._once(address, connection, login, answer)
        except NotIdentified as failure:
            pause = connection.spec.connect_retry.seconds
            if failure.outcome not in TRANSIENT or not pause:
                raise
        await self._clock.sleep(pause)
        return await self._once(address, connection, login, b"")

    async def _once(self, address: str, connection: Connection, login: Login, answer: bytes) -> Identified:
        protocol = connection.spec.protocol
        async with contextlib.AsyncExitStack() as stack:

            async def admit(key: str) -> None:
                """Addresses that show one key are one device: they are asked in turn, and a refusal counts for all."""
                await stack.enter_async_context(self._turns.setdefault(key, asyncio.Lock()))
                addresses = self._shown.setdefault(protocol, {}).setdefault(key, set())
                for other in addresses - {address}:
                    self._let_pass(self._record(other, protocol))
                addresses.add(address)

            access = Access(
                address=address,
                profile=connection.spec,
                login=login,
                tls=self._settings.tls,
                pins=self._pins_for(address, protocol),
                admit=admit,
                answer=answer,
            )
            try:
                identified = await self._identifiers[protocol].identify(access)
            except NotIdentified as failure:
                if failure.outcome is Outcome.AUTHENTICATION_FAILED:  # before the next address has its turn
                    record = self._record(address, protocol)
                    self._log_in(address, protocol, logins.failed(record, login.secret, self._now))
                if failure.pin and failure.outcome is not Outcome.KEY_CHANGED:
                    self._pin(address, protocol, failure.pin)
                raise
            if identified.pin:
                self._pin(address, protocol, identified.pin)
            return identified

    def _pin(self, address: str, protocol: str, pin: str) -> None:
        record = self._address(address)
        if record.pins.get(protocol) != pin:
            self._put(address, msgspec.structs.replace(record, pins={**record.pins, protocol: pin}))
        self._shown.setdefault(protocol, {}).setdefault(pin, set()).add(address)

    def _pins_for(self, address: str, protocol: str) -> frozenset[str]:
        """Nothing on first use. Later its own key, and those of the rule's other devices: one of them may have moved."""
        if protocol not in self._address(address).pins or self._repinned(address):
            return frozenset()
        return frozenset(self._shown.get(protocol, ()))

    def _note(self, address: str, outcome: Outcome, detail: str) -> None:
        record = self._address(address)
        if (record.outcome, record.detail) != (outcome, detail):
            self._put(address, msgspec.structs.replace(record, outcome=outcome, detail=detail, at=self._now))

    def _record(self, address: str, protocol: str) -> LoginRecord:
        return self._address(address).logins.get(protocol) or LoginRecord()

    def _log_in(self, address: str, protocol: str, changed: LoginRecord) -> None:
        record = self._address(address)
        self._put(address, msgspec.structs.replace(record, logins={**record.logins, protocol: changed}))

    def _address(self, address: str) -> AddressRecord:
        return self._book.ledger.records.get(address) or AddressRecord()

    def _put(self, address: str, record: AddressRecord) -> None:
        self._book.ledger.records[address] = record

    @property
    def _now(self) -> float:
        return self._clock.now().timestamp()


def _shown(book: Book) -> dict[str, dict[str, set[str]]]:
    """By protocol and key, the addresses that showed it."""
    found: dict[str, dict[str, set[str]]] = {}
    for address, record in book.ledger.records.items():
        for protocol, pin in record.pins.items():
            found.setdefault(protocol, {}).setdefault(pin, set()).add(address)
    return found


def _waiting(until: float) -> NotIdentified:
    when = format_time(datetime.fromtimestamp(until, tz=UTC))
    detail = f"a login was refused; so that the device does not lock us out, nothing is tried before {when}"
    return NotIdentified(Outcome.WAITING, detail)
