"""Entries by key, bounded in bytes: the one that was not asked for longest goes first. Each has an end of its own."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

OVERHEAD = 200
"""Bytes that an entry takes besides its key and value, about."""


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What was read. `missing`: there was nothing, and the value is the message that says so.

    `mark` is the generation under which it was read; `revision` that of the document or list, 0 where there is none."""

    value: bytes
    revision: int = 0
    missing: bool = False
    mark: tuple[int, int, int] = (0, 0, 0)
    expires: float = 0.0


class Lru:
    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self.evictions = 0
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes, now: float) -> Entry | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires <= now:
            self.remove(key)
            return None
        self._entries.move_to_end(key)
        return entry

    def peek(self, key: bytes) -> Entry | None:
        return self._entries.get(key)

    def put(self, key: bytes, entry: Entry) -> bool:
        """Whether there is room for it at all."""
        self.remove(key)
        size = _size(key, entry)
        if size > self.max_bytes:
            return False
        self._entries[key] = entry
        self.bytes += size
        while self.bytes > self.max_bytes:
            oldest, dropped = self._entries.popitem(last=False)
            self.bytes -= _size(oldest, dropped)
            self.evictions += 1
        return True

    def remove(self, key: bytes) -> bool:
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        self.bytes -= _size(key, entry)
        return True

    def clear(self) -> int:
        count = len(self._entries)
        self._entries.clear()
        self.bytes = 0
        return count


def _size(key: bytes, entry: Entry) -> int:
    return len(key) + len(entry.value) + OVERHEAD
