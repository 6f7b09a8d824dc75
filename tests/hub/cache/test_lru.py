"""The bound in bytes."""

from __future__ import annotations

import random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trimtab.hub.cache.generations import Scope
from trimtab.hub.cache.group import Group
from trimtab.hub.cache.lru import OVERHEAD, Entry, Lru
from trimtab.testing.clock import FakeClock

FOREVER = float("inf")
SCOPE = Scope("t", "o", "p")


@pytest.mark.row(33)
def test_what_was_not_asked_for_longest_goes_first() -> None:
    lru = Lru(3 * (OVERHEAD + 11))
    for key in (b"a", b"b", b"c"):
        lru.put(key, Entry(bytes(10), expires=FOREVER))
    assert lru.get(b"a", 0.0)
    lru.put(b"d", Entry(bytes(10), expires=FOREVER))
    assert [key for key in (b"a", b"b", b"c", b"d") if lru.get(key, 0.0)] == [b"a", b"c", b"d"]
    assert lru.evictions == 1


@pytest.mark.row(33)
def test_what_is_larger_than_all_is_not_kept_and_drives_nothing_out() -> None:
    lru = Lru(1000)
    lru.put(b"a", Entry(bytes(10), expires=FOREVER))
    assert not lru.put(b"b", Entry(bytes(2000), expires=FOREVER))
    assert lru.get(b"a", 0.0)
    assert not lru.get(b"b", 0.0)


class Bounded(RuleBasedStateMachine):
    """Against a plain dictionary: what is there is right, and the bytes are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.lru = Lru(5 * (OVERHEAD + 50))
        self.model: dict[bytes, Entry] = {}

    @rule(key=st.binary(max_size=2), size=st.integers(0, 1500), expires=st.integers(0, 20))
    def put(self, key: bytes, size: int, expires: int) -> None:
        entry = Entry(bytes(size), expires=float(expires))
        self.lru.put(key, entry)
        self.model[key] = entry

    @rule(key=st.binary(max_size=2))
    def remove(self, key: bytes) -> None:
        self.lru.remove(key)
        self.model.pop(key, None)

    @rule()
    def clear(self) -> None:
        self.lru.clear()
        self.model.clear()

    @rule(key=st.binary(max_size=2), now=st.integers(0, 20))
    def get(self, key: bytes, now: int) -> None:
        found = self.lru.get(key, float(now))
        assert found is None or (found == self.model[key] and found.expires > now)

    @invariant()
    def bounded(self) -> None:
        held = self.lru._entries
        assert self.lru.bytes == sum(len(key) + len(entry.value) + OVERHEAD for key, entry in held.items())
        assert self.lru.bytes <= self.lru.max_bytes


TestBounded = pytest.mark.row(33)(Bounded.TestCase)


@pytest.mark.row(33)
async def test_entries_that_were_read_together_do_not_end_together() -> None:
    clock = FakeClock()
    group = Group("g", kind="get", expiry=100, jitter=0.2, clock=clock, chance=random.Random(1))

    async def load() -> Entry:
        return Entry(b"value", 1)

    keys = [str(number).encode() for number in range(200)]
    for key in keys:
        await group.fetch(key, SCOPE, load)
    await clock.advance(79)
    assert all(group.look(key, SCOPE) for key in keys)
    await clock.advance(11)
    assert 60 < sum(group.look(key, SCOPE) is not None for key in keys) < 140
    await clock.advance(11)
    assert not any(group.look(key, SCOPE) for key in keys)


async def test_an_older_revision_never_takes_the_place_of_a_newer_one() -> None:
    group = Group("g", kind="get")

    def loads(revision: int) -> Entry:
        return Entry(str(revision).encode(), revision)

    async def newer() -> Entry:
        return loads(7)

    async def older() -> Entry:
        return loads(5)

    await group.fetch(b"key", SCOPE, newer)
    await group.fetch(b"key", SCOPE, older)
    entry = group.look(b"key", SCOPE)
    assert entry is not None
    assert entry.revision == 7


async def test_nobody_joins_a_load_that_takes_forever() -> None:
    import asyncio

    clock = FakeClock()
    group = Group("g", kind="get", clock=clock)
    never = asyncio.Event()

    async def hangs() -> Entry:
        await never.wait()
        return Entry(b"late", 1)

    async def answers() -> Entry:
        return Entry(b"now", 1)

    hung = asyncio.create_task(group.fetch(b"key", SCOPE, hangs))
    await clock.settle()
    await clock.advance(31)
    assert (await group.fetch(b"key", SCOPE, answers)).value == b"now"
    never.set()
    await hung
