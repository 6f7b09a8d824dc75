"""Logins of one device, over its addresses and over rules, as one sweep keeps them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trimtab.model.objectmeta import ObjectMeta
from trimtab.systems.discovery.findings import NotIdentified, Outcome
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.attempts import Attempts
from trimtab.systems.discovery.ledger.book import Book
from trimtab.systems.discovery.ledger.books import Books
from trimtab.systems.discovery.ledger.records import AddressRecord
from trimtab.testing.clock import FakeClock

WINDOW = 900.0
KEY = "SHA256:one"


class Kept(Book):
    """A book that counts how often it is kept."""

    def __init__(self) -> None:
        rule: Any = DiscoveryRule(metadata=ObjectMeta(name="lab", namespace="default"), spec=None)  # type: ignore[arg-type]
        super().__init__(None, None, rule)  # type: ignore[arg-type]
        self.commits: list[dict[str, Any]] = []

    async def commit(self) -> None:
        self.commits.append(dict(self.ledger.records))


@pytest.fixture
def books() -> Books:
    return Books()


def attempts(book: Book, books: Books, clock: FakeClock) -> Attempts:
    books.open(book)
    return Attempts(book, books, clock, WINDOW)


def refused() -> NotIdentified:
    return NotIdentified(Outcome.AUTHENTICATION_FAILED, "no", login="refused")


async def test_an_attempt_is_kept_before_the_credential_is_given_out(books: Books) -> None:
    book = Kept()
    assert await attempts(book, books, FakeClock()).begin("10.0.0.1", "ssh", ("login",)) == "login"
    (kept,) = book.commits
    assert kept["10.0.0.1"].logins["ssh"].pending == "login"


async def test_one_that_has_worked_needs_no_keeping(books: Books) -> None:
    book, clock = Kept(), FakeClock()
    tries = attempts(book, books, clock)
    tries.end("10.0.0.1", "ssh", await tries.begin("10.0.0.1", "ssh", ("login",)))
    book.commits.clear()
    assert await tries.begin("10.0.0.1", "ssh", ("login",)) == "login"
    assert not book.commits


async def test_addresses_with_one_key_wait_for_the_window_of_any_of_them(books: Books) -> None:
    clock = FakeClock()
    tries = attempts(Kept(), books, clock)
    async with tries.turn("10.0.0.1", "ssh", KEY):
        tries.end("10.0.0.1", "ssh", await tries.begin("10.0.0.1", "ssh", ("login",)), refused())
    with pytest.raises(NotIdentified, match=r"at 10\.0\.0\.1, which is the same device"):
        async with tries.turn("10.0.0.2", "ssh", KEY):
            pass
    await clock.advance(WINDOW + 1)
    async with tries.turn("10.0.0.2", "ssh", KEY):
        pass


async def test_logins_without_a_known_end_count_over_the_addresses_of_one_key(books: Books) -> None:
    tries = attempts(Kept(), books, FakeClock())
    for number in (1, 2):
        address = f"10.0.0.{number}"
        async with tries.turn(address, "ssh", KEY):
            secret = await tries.begin(address, "ssh", ("login",))
            tries.end(address, "ssh", secret, NotIdentified(Outcome.TIMED_OUT, "slow", login="unknown"))
    with pytest.raises(NotIdentified):
        async with tries.turn("10.0.0.3", "ssh", KEY):
            pass


async def test_another_rule_s_refusal_counts_for_the_same_key(books: Books) -> None:
    clock = FakeClock()
    other = attempts(Kept(), books, clock)
    other.pin("10.0.0.1", "ssh", KEY)
    other.end("10.0.0.1", "ssh", await other.begin("10.0.0.1", "ssh", ("login",)), refused())
    ours = attempts(Kept(), books, clock)
    with pytest.raises(NotIdentified, match=r"at 10\.0\.0\.1, which is the same device"):
        async with ours.turn("10.0.0.9", "ssh", KEY):
            pass


async def test_another_rule_s_refusals_count_at_the_same_address(books: Books) -> None:
    clock = FakeClock()
    other = attempts(Kept(), books, clock)
    for protocol in ("ssh", "netconf"):
        other.end("10.0.0.1", protocol, await other.begin("10.0.0.1", protocol, ("login",)), refused())
    ours = attempts(Kept(), books, clock)
    with pytest.raises(NotIdentified):
        await ours.begin("10.0.0.1", "gnmi", ("login",))


def device(book: Book, *addresses: str) -> None:
    """These are one, as the book knows."""
    for address in addresses:
        book.ledger.records[address] = AddressRecord(target="leaf1")


async def test_the_known_addresses_of_a_device_are_asked_in_turn_and_others_at_once(books: Books) -> None:
    book = Kept()
    device(book, "10.0.0.1", "10.0.0.2")
    tries, asked, go = attempts(book, books, FakeClock()), [], asyncio.Event()

    async def ask(address: str) -> None:
        async with tries.device(address, "gnmi"):
            asked.append(address)
            await go.wait()

    async with asyncio.TaskGroup() as group:
        for number in (1, 2, 3):
            group.create_task(ask(f"10.0.0.{number}"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert asked == ["10.0.0.1", "10.0.0.3"]
        go.set()
    assert asked[2:] == ["10.0.0.2"]


async def test_a_rule_that_does_not_know_them_for_one_device_asks_in_turn_as_well(books: Books) -> None:
    book = Kept()
    device(book, "10.0.0.1", "10.0.0.2")
    known, ours = attempts(book, books, FakeClock()), attempts(Kept(), books, FakeClock())
    async with known.device("10.0.0.1", "gnmi"):
        asking = asyncio.ensure_future(ours.device("10.0.0.2", "gnmi").__aenter__())
        await asyncio.sleep(0)
        assert not asking.done()
    await asking


async def test_tries_at_addresses_that_another_rule_knows_for_one_device_count(books: Books) -> None:
    clock, book = FakeClock(), Kept()
    device(book, "10.0.0.1", "10.0.0.2")
    other = attempts(book, books, clock)
    for protocol in ("ssh", "gnmi"):
        other.end("10.0.0.1", protocol, await other.begin("10.0.0.1", protocol, ("login",)), refused())
    ours = attempts(Kept(), books, clock)
    with pytest.raises(NotIdentified, match="2 logins were refused"):
        await ours.begin("10.0.0.2", "gnmi", ("login",))
    assert await ours.begin("10.0.0.3", "gnmi", ("login",))


async def test_a_fleet_that_shows_one_key_is_asked_in_turn_and_nobody_waits_for_a_window(books: Books) -> None:
    tries = attempts(Kept(), books, FakeClock())
    fleet = [f"10.0.0.{number}" for number in range(1, 6)]
    for _ in range(2):  # in the second sweep the key of each is known
        for address in fleet:
            await tries.begin(address, "ssh", ("login",), waits=True)
        for address in fleet:
            async with tries.turn(address, "ssh", KEY):
                tries.end(address, "ssh", "login")
            tries.pin(address, "ssh", KEY)


async def test_what_was_sent_counts_until_its_end_is_told(books: Books) -> None:
    tries = attempts(Kept(), books, FakeClock())
    for number in (1, 2, 3):
        await tries.begin(f"10.0.0.{number}", "ssh", ("login",), waits=True)
    async with tries.turn("10.0.0.1", "ssh", KEY):
        pass
    with pytest.raises(NotIdentified, match=r"at 10\.0\.0\.1, which is the same device, a login had no known end"):
        async with tries.turn("10.0.0.2", "ssh", KEY):
            raise AssertionError("nobody may log in")


async def test_who_stood_in_line_sees_what_was_sent_to_the_device_by_another_key(books: Books) -> None:
    clock, book = FakeClock(), Kept()
    device(book, "10.0.0.1", "10.0.0.2")
    tries = attempts(book, books, clock)
    for protocol in ("ssh", "netconf", "snmp"):
        await tries.begin("10.0.0.1", protocol, ("login",), waits=True)
    for protocol in ("ssh", "netconf"):
        async with tries.turn("10.0.0.1", protocol, f"key of {protocol}"):
            tries.end("10.0.0.1", protocol, "login", refused())
    with pytest.raises(NotIdentified, match="2 logins were refused"):
        async with tries.turn("10.0.0.1", "snmp", "key of snmp"):
            raise AssertionError("nobody may log in")


async def test_no_login_while_what_was_known_is_lost(books: Books) -> None:
    book, clock = Kept(), FakeClock()
    book.closed_until = clock.now().timestamp() + WINDOW
    with pytest.raises(NotIdentified, match="what was known of logins is lost"):
        await attempts(book, books, clock).begin("10.0.0.1", "ssh", ("login",))


def test_a_key_is_accepted_on_first_use_and_then_only_those_that_are_known(books: Books) -> None:
    tries = attempts(Kept(), books, FakeClock())
    assert tries.pins("10.0.0.1", "ssh") == frozenset()
    tries.pin("10.0.0.1", "ssh", KEY)
    tries.pin("10.0.0.2", "ssh", "SHA256:two")
    assert tries.pins("10.0.0.1", "ssh") == {KEY, "SHA256:two"}
    assert tries.pins("10.0.0.3", "ssh") == frozenset()
    assert tries.pins("10.0.0.1", "gnmi") == frozenset()
