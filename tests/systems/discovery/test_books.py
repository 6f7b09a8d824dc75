"""What the rules of a process know of each other's logins: of those that sweep, and of those that do no more."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.systems.discovery.station import Station
from trimtab.model.clock import SystemClock
from trimtab.model.objectmeta import ObjectMeta
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.informers import Informers
from trimtab.storage.blobs import BlobsUnavailable
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.book import Book
from trimtab.systems.discovery.ledger.books import Books
from trimtab.systems.discovery.ledger.logins import LoginRecord, failed
from trimtab.systems.discovery.ledger.records import AddressRecord, Ledger
from trimtab.systems.discovery.telling import Teller

NOW = 1_800_000_000.0
WINDOW = 900.0


def refused(address: str = "10.0.0.1") -> Ledger:
    return Ledger(records={address: AddressRecord(logins={"ssh": failed(LoginRecord(), "login", NOW)})})


def book(uid: str, ledger: Ledger | None = None) -> Book:
    rule = DiscoveryRule(metadata=ObjectMeta(name="lab", namespace="default", uid=uid), spec=None)  # type: ignore[arg-type]
    made = Book(None, None, rule)  # type: ignore[arg-type]
    made.ledger = ledger or Ledger()
    return made


@pytest.fixture
def books() -> Books:
    made = Books()
    made.lasting(WINDOW)
    return made


def known(books: Books) -> list[str]:
    """The addresses that a new rule hears of."""
    return sorted(address for other in books.others(book("new")) for address in other.ledger.records)


def test_what_a_rule_has_tried_stays_known_when_it_sweeps_no_more(books: Books) -> None:
    ours = book("one", refused())
    books.open(ours)
    books.leave(ours, NOW)
    assert known(books) == ["10.0.0.1"]


def test_it_is_forgotten_after_the_longest_window(books: Books) -> None:
    for uid, at in (("one", NOW), ("two", NOW + WINDOW)):
        ours = book(uid, refused())
        books.open(ours)
        books.leave(ours, at)
    assert known(books) == []


def test_a_rule_that_sweeps_again_is_not_told_of_itself(books: Books) -> None:
    ours, again = book("one", refused()), book("one")
    books.open(ours)
    books.leave(ours, NOW)
    assert books.others(again) == []
    books.open(again)
    assert known(books) == []


def test_a_rule_that_never_began_to_sweep_takes_nothing_away(books: Books) -> None:
    ours = book("one", refused())
    books.open(ours)
    books.leave(ours, NOW)
    books.leave(book("one"), NOW)
    assert known(books) == ["10.0.0.1"]


class Away(FolderBlobs):
    """A place that is out of reach until it is not."""

    away = False

    def open(self, digest: Any) -> Any:
        if self.away:
            raise BlobsUnavailable("it is away")
        return super().open(digest)


class TestRecall:
    """What ledgers say, of rules that may be suspended. On both servers."""

    @pytest.fixture
    def address(self) -> str:
        """Of this test alone: a cluster keeps the rules of others."""
        return f"10.{random.randrange(256)}.{random.randrange(256)}.1"

    @pytest.fixture
    async def rule(self, station: Station, address: str) -> DiscoveryRule:
        rule = await station.rule("lab", ("ssh",), "login", suspend=True)
        await try_at(station, rule, address)
        return rule

    async def test_it_is_known_before_anybody_sweeps(self, station: Station, rule: DiscoveryRule, address: str) -> None:
        books = Books()
        await books.recall(client(station), station.blobs, NOW)
        assert known(books) == [address]

    async def test_what_another_process_tried_while_it_led_is_known_when_we_lead_again(
        self, station: Station, rule: DiscoveryRule, address: str
    ) -> None:
        books = Books()
        await books.recall(client(station), station.blobs, NOW)
        await try_at(station, rule, f"{address}9")
        await books.recall(client(station), station.blobs, NOW)
        assert known(books) == [address]
        books.doubt()
        await books.recall(client(station), station.blobs, NOW)
        assert known(books) == [f"{address}9"]

    async def test_while_ledgers_are_out_of_reach_nobody_goes_on(
        self, station: Station, rule: DiscoveryRule, address: str, tmp_path: Path
    ) -> None:
        books, blobs = Books(), Away(tmp_path / "blobs")
        blobs.away = True
        with pytest.raises(BlobsUnavailable):
            await books.recall(client(station), blobs, NOW)
        blobs.away = False
        await books.recall(client(station), blobs, NOW)
        assert known(books) == [address]


async def try_at(station: Station, rule: DiscoveryRule, address: str) -> None:
    kept = Book(station.blobs, Teller(client(station), rule), rule)
    kept.ledger = refused(address)
    await kept.commit()


def client(station: Station) -> CachedClient:
    informers = Informers(station.client, clock=SystemClock(), chance=random.Random(1), streams=True)
    return CachedClient(station.client, informers)
