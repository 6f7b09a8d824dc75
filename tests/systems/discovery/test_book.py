"""The ledger of a rule, kept: what was committed is never lost, wherever a process ends, and nothing is kept for ever.

Real blobs, a real server. A crash is told to nobody: what comes after it is another process, which has only the rule.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.runtime.widgets import Tap, logged
from tests.systems.discovery.station import Station
from trimtab.client.api import ApiClient
from trimtab.client.transport import Call, Reply, Silent
from trimtab.model.clock import SystemClock
from trimtab.runtime.cached import CachedClient
from trimtab.runtime.election import Election
from trimtab.runtime.guarded import Guarded
from trimtab.runtime.informers import Informers
from trimtab.storage.blobs import BlobMissing, Digest, digest_of, read
from trimtab.storage.folder import FolderBlobs
from trimtab.systems.discovery.kinds import DiscoveryRule
from trimtab.systems.discovery.ledger.book import Book
from trimtab.systems.discovery.ledger.records import AddressRecord, Ledger, decode, encode
from trimtab.systems.discovery.telling import Teller
from trimtab.testing.faults import Crashed

STEPS = ("put", "pin", "tell", "unpin")


class Process:
    """One that keeps a book. `steps` is what it did, in order; it dies right before step number `dies`, from 0."""

    def __init__(self, station: Station, rule: DiscoveryRule, folder: Path) -> None:
        self.steps: list[tuple[str, str]] = []
        self.dies = -1
        self.deaf = False
        """The server does what it is asked, and the answer is lost."""
        self.held = asyncio.Event()
        self.held.set()
        self.puts = asyncio.Event()
        client = ApiClient(_Heard(self, station.client), station.client.scheme, namespace=station.namespace)
        informers = Informers(client, clock=SystemClock(), chance=random.Random(1), streams=True)
        self.book = Book(_Kept(self, folder), Teller(CachedClient(client, informers), rule), rule)

    def step(self, name: str, digest: str) -> None:
        if len(self.steps) == self.dies:
            raise Crashed
        self.steps.append((name, digest))


class _Kept(FolderBlobs):
    def __init__(self, process: Process, folder: Path) -> None:
        super().__init__(folder)
        self._process = process

    async def put(self, data: Any, **more: Any) -> Digest:
        self._process.step("put", "")
        self._process.puts.set()
        await self._process.held.wait()
        return await super().put(data, **more)

    async def pin(self, digest: Digest, owner: str) -> None:
        self._process.step("pin", digest)
        await super().pin(digest, owner)

    async def unpin(self, owner: str, digest: Digest | None = None) -> None:
        self._process.step("unpin", digest or "all")
        await super().unpin(owner, digest)


class _Heard(Tap):
    def __init__(self, process: Process, client: ApiClient) -> None:
        super().__init__(client.transport)
        self._process = process

    async def call(self, call: Call) -> Reply:
        if not call.safe:
            self._process.step("tell", msgspec.json.decode(call.body)["status"]["ledger"])
        reply = await super().call(call)
        if self._process.deaf and not call.safe:
            raise Silent("the answer was lost, says the test")
        return reply


@pytest.fixture
async def rule(station: Station) -> DiscoveryRule:
    return await station.rule("lab", ("snmp",), "login")


@pytest.fixture
def process(station: Station, rule: DiscoveryRule, tmp_path: Path) -> Process:
    return Process(station, rule, tmp_path / "blobs")


def noted(word: str) -> Ledger:
    """A ledger that says this."""
    return Ledger(run="r", records={"10.0.0.1": AddressRecord(detail=word)})


def digest(ledger: Ledger) -> Digest:
    return digest_of(encode(ledger))


async def committed(process: Process, word: str) -> None:
    process.book.ledger = noted(word)
    await process.book.commit()


async def known(station: Station) -> str:
    """What a process that comes later reads, when all that nobody keeps is gone. It reads it whole, or this fails."""
    await station.blobs.collect(grace=0)
    rule = await station.client.get(DiscoveryRule, "lab", station.namespace)
    later = Book(station.blobs, None, rule)  # type: ignore[arg-type]
    assert await later.load(rule) == ""
    return later.ledger.records["10.0.0.1"].detail if later.ledger.records else ""


async def test_it_is_pinned_before_the_status_names_it_and_the_old_one_let_go_after(process: Process) -> None:
    await committed(process, "first")
    process.steps.clear()
    await committed(process, "second")
    old, new = digest(noted("first")), digest(noted("second"))
    assert process.steps == [("put", ""), ("pin", new), ("tell", new), ("unpin", old)]


@pytest.mark.parametrize("dies", range(len(STEPS)), ids=[f"before {step}" for step in STEPS])
async def test_whenever_a_process_dies_what_was_committed_is_there(
    station: Station, process: Process, dies: int
) -> None:
    await committed(process, "first")
    process.dies = len(process.steps) + dies
    with pytest.raises(Crashed):
        await committed(process, "second")
    assert await known(station) == ("first" if dies <= STEPS.index("tell") else "second")


@pytest.mark.parametrize("dies", range(len(STEPS) - 1), ids=[f"before {step}" for step in STEPS[:-1]])
async def test_the_first_commit_is_whole_or_not_at_all(station: Station, process: Process, dies: int) -> None:
    process.dies = dies
    with pytest.raises(Crashed):
        await committed(process, "first")
    assert await known(station) == ""


async def test_when_nobody_heard_whether_the_status_was_written_both_are_kept(
    station: Station, process: Process
) -> None:
    await committed(process, "first")
    process.deaf = True
    with pytest.raises(Silent):
        await committed(process, "second")
    assert await known(station) == "second"
    assert decode(await read(station.blobs, digest(noted("first")), max_bytes=1 << 20))


@pytest.mark.parametrize("word", ["first", "third"])
async def test_what_comes_after_such_a_write_is_what_the_status_names_and_all_that_is_kept(
    station: Station, process: Process, word: str
) -> None:
    await committed(process, "first")
    process.deaf = True
    with pytest.raises(Silent):
        await committed(process, "second")
    process.deaf = False
    await committed(process, word)
    assert await known(station) == word
    for other in {"first", "second", "third"} - {word}:
        with pytest.raises(BlobMissing):
            await station.blobs.stat(digest(noted(other)))


async def test_a_commit_returns_when_its_own_note_is_kept_and_many_share_one_write(
    station: Station, process: Process
) -> None:
    process.held.clear()
    early = asyncio.create_task(committed(process, "early"))
    await process.puts.wait()
    late = [asyncio.create_task(committed(process, "late")) for _ in range(5)]
    await asyncio.sleep(0)  # they have all asked
    process.held.set()
    await early
    await asyncio.gather(*late)
    assert await known(station) == "late"
    assert [name for name, _ in process.steps].count("put") == 2


async def test_what_did_not_change_is_not_told_again(process: Process) -> None:
    await committed(process, "same")
    process.steps.clear()
    await committed(process, "same")
    assert [name for name, _ in process.steps] == ["put"]


async def test_closing_it_notes_that_the_end_was_in_order(
    station: Station, rule: DiscoveryRule, process: Process
) -> None:
    await process.book.load(rule)
    process.book.ledger = noted("last")
    await process.book.close()
    held = await station.client.get(DiscoveryRule, "lab", station.namespace)
    assert decode(await read(station.blobs, Digest(held.status.ledger), max_bytes=1 << 20)).orderly


async def test_who_no_longer_leads_closes_it_without_a_write_and_without_an_error(
    station: Station, rule: DiscoveryRule, process: Process, tmp_path: Path
) -> None:
    await committed(process, "first")
    election = Election(station.client, SystemClock(), name="x", namespace=station.namespace, identity="this")
    informers = Informers(station.client, clock=SystemClock(), chance=random.Random(1), streams=True)
    client = CachedClient(station.client, informers, Guarded(station.client, election))
    book = Book(station.blobs, Teller(client, rule), rule)
    await book.load(await station.client.get(DiscoveryRule, "lab", station.namespace))
    book.ledger = noted("unheard")
    with logged() as said:
        await book.close()
    assert [line["event"] for line in said] == ["a ledger is not written at its end"]
    assert await known(station) == "first"
