"""Objects by name, straight from the store, for parts that come before authorization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from trimtab.store.contract import Key, Store


class StoreReader:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        entry = await self._store.get(Key(resource, namespace, name))
        if entry is None:
            return None
        document: dict[str, Any] = orjson.loads(entry.value)
        return document
