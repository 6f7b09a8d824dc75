"""Very many rows at once, for measurements: straight into the tables, under one revision each, and not into the log."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import apsw

from trimtab.hub.storage.codec import encoded, labels_of
from trimtab.hub.storage.contract import PROJECTS, Row, RowKey, RowWrite
from trimtab.hub.storage.postgres import PostgresStorage
from trimtab.hub.storage.sqlite import SqliteStorage

BATCH = 10_000
_MOMENT = "2026-01-01T00:00:00Z"


async def bench_fill(
    storage: SqliteStorage | PostgresStorage,
    count: int,
    *,
    type: str = "blueprints.infra",  # noqa: A002
    organization: str = "default",
    projects: int = 100,
    start: int = 0,
) -> list[RowKey]:
    """Rows `r<start>` to `r<start + count - 1>` spread over projects `p0`, …; their keys. Nobody may write meanwhile."""
    names = [f"p{number}" for number in range(projects)]
    ids = []
    for name in names:
        key = RowKey(organization, PROJECTS, "", name)
        ids.append((await storage.get(key) or await storage.commit(RowWrite(row=Row(key=key)))).id)
    revision, _ = await storage.horizon()
    keys: list[RowKey] = []
    for first in range(start, start + count, BATCH):
        batch: list[tuple[str, Row]] = []
        for number in range(first, min(first + BATCH, start + count)):
            place = number % projects
            key = RowKey(organization, type, ids[place], f"r{number:07}")
            row = Row(
                key=key,
                id=secrets.token_hex(16),
                revision=revision + number - start + 1,
                labels={"shard": str(number % 7), "rare": str(number % 10_007)},
                body={"number": number, "text": "x" * 200},
                created=_MOMENT,
                modified=_MOMENT,
            )
            batch.append((names[place], row))
            keys.append(key)
        await (_sqlite(storage, batch) if isinstance(storage, SqliteStorage) else _postgres(storage, batch))
    return keys


async def _sqlite(storage: SqliteStorage, batch: list[tuple[str, Row]]) -> None:
    def act(connection: apsw.Connection) -> None:
        connection.executemany("INSERT INTO hub_resources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _resources(batch))
        connection.executemany("INSERT INTO hub_identities VALUES (?, ?, ?, ?, ?, ?)", _identities(batch))
        connection.executemany("INSERT INTO hub_labels VALUES (?, ?, ?, ?, ?, ?)", _labels(batch))
        connection.execute(_MOVE.replace("$", "?"), (batch[-1][1].revision,))

    await (await storage._opened()).write(act)


async def _postgres(storage: PostgresStorage, batch: list[tuple[str, Row]]) -> None:
    async def act(connection: Any) -> None:
        async with connection.transaction():
            await connection.copy_records_to_table("hub_resources", records=_resources(batch))
            await connection.copy_records_to_table("hub_identities", records=_identities(batch))
            await connection.copy_records_to_table("hub_labels", records=_labels(batch))
            await connection.execute(_MOVE, batch[-1][1].revision)

    await storage._link.run(act)


def _resources(batch: list[tuple[str, Row]]) -> Iterator[tuple[object, ...]]:
    for project, row in batch:
        key = row.key
        place = (key.organization, key.type, project, key.name, key.project)
        yield (*place, row.id, row.revision, labels_of(row), encoded(row))


def _identities(batch: list[tuple[str, Row]]) -> Iterator[tuple[object, ...]]:
    for _, row in batch:
        yield (row.id, row.key.organization, row.key.type, row.key.project, row.key.name, False)


def _labels(batch: list[tuple[str, Row]]) -> Iterator[tuple[object, ...]]:
    for project, row in batch:
        for pair in row.labels.items():
            yield (row.key.organization, row.key.type, *pair, project, row.key.name)


# What is not in the log cannot be told to those who follow.
_MOVE = "UPDATE hub_counter SET revision = $1, compacted = $1"
