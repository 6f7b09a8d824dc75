"""Both stores, so that one suite holds for each, and short ways to write to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trimtab.store.contract import Store
from trimtab.store.memory import MemoryStore
from trimtab.store.sqlite import SqliteStore
from trimtab.store.watch import Buffer

BUFFER = Buffer(changes=20, bytes=20_000)


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store
    if request.param == "memory":
        opened = MemoryStore(buffer=BUFFER)
    else:
        opened = await SqliteStore.open(tmp_path / "store.db", buffer=BUFFER)
    yield opened
    await opened.close()
