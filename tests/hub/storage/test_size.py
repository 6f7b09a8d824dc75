"""Lists and gets take as long over many rows as over few."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.hub.storage.conftest import Made
from tests.hub.storage.rows import put, query
from trimtab.hub.storage.filling import bench_fill

ROWS = 100_000


async def fastest(act: Any) -> float:
    times = []
    for _ in range(15):
        start = time.perf_counter()
        await act()
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.parametrize("home", ["sqlite", "postgres"])
async def test_very_many_rows_can_be_made_for_a_measurement(home: str, made: Made) -> None:
    storage = await made(home)
    keys = await bench_fill(storage, 1_000, projects=3)
    row = await storage.get(keys[500])
    assert row is not None
    assert (await storage.list(query(limit=10))).rows[0].key.name == "r0000000"
    changed = await storage.commit(put(keys[0], body={}))
    assert changed.revision == (await storage.horizon())[0]


@pytest.mark.slow
@pytest.mark.parametrize("home", ["sqlite", "postgres"])
async def test_a_page_of_many_rows_takes_as_long_as_one_of_few(home: str, made: Made) -> None:
    storage = await made(home)
    keys = await bench_fill(storage, 2_000, projects=10)
    row = keys[1000]

    async def timed() -> dict[str, float]:
        then = (await storage.horizon())[0]
        await storage.commit(put(row, body={"then": then}))
        queries = {
            "first": query(limit=100),
            "middle": query(limit=100, after=("p5", "r0000500")),
            "of a project": query(row.project, limit=100, after=("p0", "r0000100")),
            "by name": query(name="r0000777"),
            "by labels": query(limit=100, labels={"shard": "3"}, after=("p5", "r0000500")),
            "by a rare label": query(limit=100, labels={"rare": "1234", "shard": "2"}),
            "in the past": query(limit=100, after=("p5", "r0000500"), revision=then),
        }
        found = {what: await fastest(lambda q=asked: storage.list(q)) for what, asked in queries.items()}
        found["get"] = await fastest(lambda: storage.get(row))
        found["ids"] = await fastest(lambda: storage.ids("default", row.type, row.project, [row.name]))
        found["commit"] = await fastest(lambda: storage.commit(put(row, body={"now": time.perf_counter()})))
        return found

    few = await timed()
    await bench_fill(storage, ROWS - 2_000, projects=10, start=2_000)
    many = await timed()
    slower = {what: (few[what], many[what]) for what in few if many[what] > 3 * few[what] + 0.002}
    assert slower == {}
