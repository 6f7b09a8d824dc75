"""Logins during a sweep: which may be tried, noted before they are, and what came of them.

The rules are in `logins`; this keeps them for whole devices: over protocols, over the addresses that are known to be one
device or show one key, and over the rules of this process that ask the same device. A community of SNMP v1 and v2c is part
of the question, locks nobody out, and does not come here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from trimtab.model.clock import Clock, format_time
from trimtab.systems.discovery.findings import NotIdentified, Outcome
from trimtab.systems.discovery.ledger import logins
from trimtab.systems.discovery.ledger.book import Book, Books
from trimtab.systems.discovery.ledger.logins import LoginRecord, Use
from trimtab.systems.discovery.ledger.records import AddressRecord, same_device, siblings


class Attempts:
    """For one sweep of one rule."""

    def __init__(self, book: Book, books: Books, clock: Clock, window: float) -> None:
        self._book, self._books, self._clock, self._window = book, books, clock, window
        self._siblings = siblings(book.ledger)
        self._shown = _shown(book)
        self._elsewhere_shown = _shown_to(books.others(book))
        self._turns: dict[str, asyncio.Lock] = {}
        self._pins = {protocol: frozenset(keys) for protocol, keys in self._shown.items()}

    async def begin(self, address: str, protocol: str, secrets: Sequence[str]) -> str:
        """The credential to try now. The attempt is noted, durably unless this credential has worked there before.
        NotIdentified while none may be tried."""
        if self._now < self._book.closed_until:
            raise _waiting(self._book.closed_until, "what was known of logins is lost")
        record = self._login(address, protocol)
        choice = logins.choose(record, secrets, self._now, self._window, others=self._elsewhere(address, protocol))
        if not isinstance(choice, Use):
            raise _waiting(choice.until, choice.cause.value)
        self._put_login(address, protocol, logins.attempted(record, choice.secret, self._now))
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
        """Addresses that show one key are one device: they are asked in turn, and a refusal counts for all of them."""
        async with self._turns.setdefault(key, asyncio.Lock()):
            addresses = self._shown.setdefault(protocol, {}).setdefault(key, set())
            known = [(other, self._login(other, protocol)) for other in sorted(addresses - {address})]
            for book, other in self._elsewhere_shown.get(key, ()):
                record = book.ledger.records.get(other)
                known += [(other, login) for login in (record.logins.values() if record is not None else ())]
            for other, login in known:
                lock = logins.locked(login, self._now, self._window)
                if lock is not None:
                    raise _waiting(lock.until, f"at {other}, which is the same device, {lock.cause.value}")
            others = [login for _, login in known]
            choice = logins.choose(LoginRecord(), (key,), self._now, self._window, others=others)
            if not isinstance(choice, Use):
                raise _waiting(choice.until, f"at other addresses of the same device {choice.cause.value}")
            addresses.add(address)
            yield

    def pin(self, address: str, protocol: str, key: str) -> None:
        """The key that the device shows from now on."""
        record = self._record(address)
        if record.pins.get(protocol) != key:
            pins = {**record.pins, protocol: key}
            self._book.ledger.records[address] = msgspec.structs.replace(record, pins=pins)
        self._shown.setdefault(protocol, {}).setdefault(key, set()).add(address)
        if key not in self._pins.get(protocol, ()):
            self._pins[protocol] = self._pins.get(protocol, frozenset()) | {key}

    def pins(self, address: str, protocol: str) -> frozenset[str]:
        """Nothing on first use. Later its own key, and those of the rule's other devices: one of them may have moved."""
        if protocol not in self._record(address).pins:
            return frozenset()
        return self._pins[protocol]

    def _elsewhere(self, address: str, protocol: str) -> Iterator[LoginRecord]:
        """What the same device did by other protocols, at its other addresses, and for other rules."""
        target = self._record(address).target
        yield from same_device(self._book.ledger, address, protocol, self._siblings.get(target, ()))
        for other in self._books.others(self._book):
            yield from same_device(other.ledger, address, "")

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


def _shown(book: Book) -> dict[str, dict[str, set[str]]]:
    """By protocol and key, the addresses that showed it."""
    found: dict[str, dict[str, set[str]]] = {}
    for address, record in book.ledger.records.items():
        for protocol, pin in record.pins.items():
            found.setdefault(protocol, {}).setdefault(pin, set()).add(address)
    return found


def _shown_to(books: Iterable[Book]) -> dict[str, list[tuple[Book, str]]]:
    """By key, where other rules met it."""
    found: dict[str, list[tuple[Book, str]]] = {}
    for book in books:
        for address, record in book.ledger.records.items():
            for pin in record.pins.values():
                found.setdefault(pin, []).append((book, address))
    return found
