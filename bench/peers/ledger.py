"""Where each program under test notes what it did: a file, mapped into memory by the program and by the benchmark.

A note costs less than a microsecond and no system call, in Go as in Python, and the benchmark can look at any time. The
header is four numbers of 64 bits: reconciles that had work, reconciles in all, collections of garbage, and 1 from when
the operator is ready to work. Then one record for each reconcile that had work: when the change was sent (Gadgets carry
it in `spec.sequence`), and when its reconcile began, in nanoseconds of the wall clock. No two changes are sent at the
same one.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

HEADER = struct.Struct("<4q")
RECORD = struct.Struct("<2q")


class Ledger:
    """Written by one program, read by another."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._counts = memoryview(self._memory)[: HEADER.size].cast("q")

    @classmethod
    def make(cls, path: Path, changes: int) -> Ledger:
        """One with room for what changes a lot."""
        records = 4 * changes
        path.write_bytes(bytes(HEADER.size + RECORD.size * records))
        return cls(path)

    def set_ready(self) -> None:
        self._counts[3] = 1

    def called(self) -> None:
        """Count a reconcile, whether it has work or not."""
        self._counts[1] += 1

    def done(self, changed: int, started: int) -> None:
        """Note a reconcile that had work, once the work is done."""
        count = self._counts[0]
        at = HEADER.size + RECORD.size * count
        RECORD.pack_into(self._memory, at, changed, started)
        self._counts[0] = count + 1

    def collected(self) -> None:
        self._counts[2] += 1

    @property
    def ready(self) -> bool:
        return bool(self._counts[3])

    @property
    def calls(self) -> int:
        return self._counts[1]

    @property
    def collections(self) -> int:
        return self._counts[2]

    def starts(self) -> dict[int, int]:
        """Of each change the begin of its first reconcile. One that reads a stale cache does its work once more."""
        end = HEADER.size + RECORD.size * self._counts[0]
        found: dict[int, int] = {}
        for changed, started in RECORD.iter_unpack(self._memory[HEADER.size : end]):
            found.setdefault(changed, started)
        return found

    def complete(self, changes: int) -> bool:
        return self._counts[0] >= changes and len(self.starts()) >= changes
