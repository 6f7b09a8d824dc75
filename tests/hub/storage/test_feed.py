"""The newest changes, in memory as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.hub.storage.rows import ORG, key
from trimtab.hub.storage import feed
from trimtab.hub.storage.contract import Row, RowChange
from trimtab.hub.storage.feed import Feed
from trimtab.store.contract import Op


def change(revision: int, size: int) -> RowChange:
    return RowChange(op=Op.PUT, row=Row(key=key("a"), revision=revision, body={"text": "x" * size}), before=None)


async def followed(made: Feed, until: int) -> list[int]:
    seen: list[int] = []
    async for batch in made.follow(ORG, (), 0):
        seen += [each.row.revision for each in batch.changes]
        if batch.revision >= until:
            return seen
    return seen


async def test_large_rows_are_in_the_log_only_and_none_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "HELD_BYTES", 100_000)
    log: list[RowChange] = []
    read: list[int] = []

    async def from_log(after: int, limit: int) -> tuple[Sequence[RowChange], int]:
        read.append(after)
        found = [each for each in log if each.row.revision > after][:3]
        return found, found[-1].row.revision

    made = Feed(from_log)
    for revision in range(1, 41):
        log.append(change(revision, 90_000 if revision == 20 else 10_000))
        assert made.push(revision - 1, log[-1:], revision)
        assert made._bytes == sum(made._sizes) <= 2 * 100_000
        assert len(made._sizes) == len(made._changes) == len(made._revisions)
    assert await followed(made, 40) == [*range(1, 41)]
    assert read, "what memory has no more is read in the log"
    assert max(read) < 39, "and the newest in memory"
    made.begin(50)
    assert made._bytes == 0
