"""Logins during a sweep: which may be tried, noted before they are, and what came of them.

The rules are in `logins`; this keeps them for whole devices: over protocols, over the addresses that are known to be one
device or show one key, and over the rules of this process that ask the same device. A community of SNMP v1 and v2c is part
of the question, locks nobody out, and does not come here.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import msgspec

from trimtab.model.clock import Clock, format_time
from trimtab.systems.discovery.findings import NotIdentified, Outcome
from trimtab.systems.discovery.ledger import logins
from trimtab.systems.discovery.ledger.book import Book
from trimtab.systems.discovery.ledger.books import Books, Past, Place
from trimtab.systems.discovery.ledger.faces import Faces
from trimtab.systems.discovery.ledger.logins import LoginRecord, Use
from trimtab.systems.discovery.ledger.records import AddressRecord


class Attempts:
    """For one sweep of one rule."""

    def __init__(self, book: Book, books: Books, clock: Clock, window: float) -> None:
        self._book, self._books, self._clock, self._window = book, books, clock, window
        book.faces = Faces(book.ledger)
        books.lasting(window)
        self._pins = book.faces.keys()

    @contextlib.asynccontextmanager
    async def device(self, address: str, protocol: str) -> AsyncIterator[None]:
        """From before `begin` until after `end`: one login at a time on a device, at whichever of the addresses that any
        rule knows for its own. For what is under way counts as a refusal, until its end is told."""
        known = (self._book, *self._books.others(self._book))
        async with self._books.devices.of(min(book.faces.of(address)[0] for book in known)):
            try:
                yield
            finally:
                self._sent(address, protocol)

    async def begin(self, address: str, protocol: str, secrets: Sequence[str], *, waits: bool = False) -> str:
        """The credential to try now. The attempt is noted, durably unless this credential has worked there before.
        NotIdentified while none may be tried. `waits` when nothing is sent before the device's `turn` has come."""
        if self._now < self._book.closed_until:
            raise _waiting(self._book.closed_until, "what was known of logins is lost")
        record = self._login(address, protocol)
        choice = logins.choose(
            record, secrets, self._now, self._window, others=self._elsewhere(address, protocol).values()
        )
        if not isinstance(choice, Use):
            raise _waiting(choice.until, choice.cause.value)
        self._put_login(address, protocol, logins.attempted(record, choice.secret, self._now))
        if waits:
            self._books.unsent[id(self._book), address, protocol] = record
        if record.worked != choice.secret:
            try:
                await self._book.commit()
            except BaseException:  # it was not sent, be it for an error or because the sweep is cut off
                self._put_login(address, protocol, record)
                raise
        return choice.secret

    def end(self, address: str, protocol: str, secret: str, failure: NotIdentified | None = None) -> None:
        """What came of it."""
        record = self._login(address, protocol)
        match "accepted" if failure is None else failure.login:
            case "accepted":
                record = logins.succeeded(record, secret, self._now)
            case "refused":
                record = logins.failed(record, secret, self._now)
            case "unsent":
                record = logins.dropped(record, unsent=True)
            case "unknown" if failure is not None and failure.outcome is Outcome.AUTHENTICATION_FAILED:
                record = logins.failed(record, secret, self._now, presumed=True)
            case "unknown":
                record = logins.dropped(record)
        self._put_login(address, protocol, record)

    @contextlib.asynccontextmanager
    async def turn(self, address: str, protocol: str, key: str) -> AsyncIterator[None]:
        """Addresses that show one key are one device: they are asked in turn, by all rules, and a refusal counts for all
        of them. Who stands in line is not counted, and looks at what the others came to when it has its turn."""
        async with self._books.keys.of(key):
            before = self._books.unsent.get((id(self._book), address, protocol), LoginRecord())
            same_key = self._by_key(address, protocol, key)
            for (_, other, _), login in same_key.items():
                lock = logins.locked(login, self._now, self._window)
                if lock is not None:
                    raise _waiting(lock.until, f"at {other}, which is the same device, {lock.cause.value}")
            others = {**self._elsewhere(address, protocol), **same_key}
            choice = logins.choose(before, (key,), self._now, self._window, others=others.values())
            if not isinstance(choice, Use):
                raise _waiting(choice.until, f"at other addresses of the same device {choice.cause.value}")
            self._book.faces.show(address, protocol, key)
            self._sent(address, protocol)
            yield

    def pin(self, address: str, protocol: str, key: str) -> None:
        """The key that the device shows from now on."""
        record = self._record(address)
        if record.pins.get(protocol) != key:
            pins = {**record.pins, protocol: key}
            self._book.ledger.records[address] = msgspec.structs.replace(record, pins=pins)
        self._book.faces.show(address, protocol, key)
        if key not in self._pins.get(protocol, ()):
            self._pins[protocol] = self._pins.get(protocol, frozenset()) | {key}

    def pins(self, address: str, protocol: str) -> frozenset[str]:
        """Nothing on first use. Later its own key, and those of the rule's other devices: one of them may have moved."""
        if protocol not in self._record(address).pins:
            return frozenset()
        return self._pins[protocol]

    def _elsewhere(self, address: str, protocol: str) -> dict[Place, LoginRecord]:
        """What the same device did by other protocols, at its other addresses, and for other rules."""
        faces = self._book.faces.of(address)
        found: dict[Place, LoginRecord] = {}
        for book in (self._book, *self._books.others(self._book)):
            for face in {each for own in faces for each in book.faces.of(own)}:
                found |= self._tried(book, face)
        found.pop((id(self._book), address, protocol), None)
        return found

    def _by_key(self, address: str, protocol: str, key: str) -> dict[Place, LoginRecord]:
        """What was tried at addresses that show the key: by this protocol, and by other rules by any."""
        found: dict[Place, LoginRecord] = {}
        for other in self._book.faces.showing(key, protocol) - {address}:  # a whole fleet may show one key
            found |= self._tried(self._book, other, protocol)
        for book in self._books.others(self._book):
            for other in book.faces.showing(key):
                found |= self._tried(book, other)
        return dict(sorted(found.items()))

    def _tried(self, book: Book | Past, address: str, protocol: str = "") -> dict[Place, LoginRecord]:
        """At one address, by one protocol or by all, as one rule knows it. What stands in line is not tried yet."""
        record = book.ledger.records.get(address)
        found = {}
        for name, login in record.logins.items() if record is not None else ():
            if (login.pending or login.strikes or login.failed) and protocol in ("", name):
                place = (id(book), address, name)
                found[place] = self._books.unsent.get(place, login)
        return found

    def _sent(self, address: str, protocol: str) -> None:
        """From now on the device may have it, or never gets it."""
        self._books.unsent.pop((id(self._book), address, protocol), None)

    def _login(self, address: str, protocol: str) -> LoginRecord:
        return self._record(address).logins.get(protocol) or LoginRecord()

    def _put_login(self, address: str, protocol: str, login: LoginRecord) -> None:
        record = self._record(address)
        changed = msgspec.structs.replace(record, logins={**record.logins, protocol: login})
        self._book.ledger.records[address] = changed

    def _record(self, address: str) -> AddressRecord:
        return self._book.ledger.records.get(address) or AddressRecord()

    @property
    def _now(self) -> float:
        return self._clock.now().timestamp()


def _waiting(until: float, why: str) -> NotIdentified:
    when = format_time(datetime.fromtimestamp(until, tz=UTC))
    detail = f"{why}; so that the device does not lock us out, nothing is tried before {when}"
    return NotIdentified(Outcome.WAITING, detail, login="unsent")
