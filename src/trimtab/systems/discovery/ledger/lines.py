"""One at a time for each name: who comes later stands in line. A name that nobody uses costs nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Lines:
    """Of a process."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    @contextlib.asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        line = self._lines.setdefault(name, _Line())
        line.length += 1
        try:
            async with line.head:
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[name]


class _Line:
    def __init__(self) -> None:
        self.head, self.length = asyncio.Lock(), 0
