"""A request's body that is larger than memory: read from a file or an iterator while it is sent.

Guarantee: what is not read to its end is never sent as if it were whole. A file can be sent again from its beginning, an
iterator only as long as nobody has begun to read it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from pathlib import Path

from trimtab.model.errors import too_large

PIECE = 256 * 1024


class BodyFailed(Exception):  # noqa: N818 - it reads as what happened
    """The source of a body, not the connection, failed."""


class Body:
    """`size` in bytes; of a file it is known, and an iterator without it is sent in chunks. Over `limit` it is a 413, before
    anything is sent where the size is known."""

    def __init__(self, source: Path | AsyncIterable[bytes], size: int | None = None, *, limit: int) -> None:
        self._source = source
        self.size = source.stat().st_size if isinstance(source, Path) else size
        self._limit = limit
        self._check(self.size or 0)
        self._begun = False
        self._found = hashlib.sha256()

    @property
    def ready(self) -> bool:
        """Whether it can be sent from its beginning."""
        return isinstance(self._source, Path) or not self._begun

    @property
    def digest(self) -> str:
        """Of what was sent last."""
        return f"sha256:{self._found.hexdigest()}"

    @property
    def header(self) -> bytes:
        return b"Transfer-Encoding: chunked\r\n" if self.size is None else b"Content-Length: %d\r\n" % self.size

    async def framed(self) -> AsyncGenerator[bytes, None]:
        """As it goes over the wire, under `header`."""
        async with aclosing(self.pieces()) as pieces:
            async for piece in pieces:
                yield piece if self.size is not None else b"%x\r\n%b\r\n" % (len(piece), piece)
        if self.size is None:
            yield b"0\r\n\r\n"

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """BodyFailed when it cannot be read, or is not as long as it was said to be."""
        self._begun = True
        self._found = hashlib.sha256()
        sent = 0
        try:
            async with aclosing(_read(self._source)) as pieces:
                async for piece in pieces:
                    sent += len(piece)
                    self._check(sent)
                    if self.size is not None and sent > self.size:
                        break
                    self._found.update(piece)
                    if piece:
                        yield piece
        except OSError as error:
            raise BodyFailed(f"the bytes to send cannot be read: {error}") from error
        if self.size is not None and sent != self.size:
            raise BodyFailed(f"there are not {self.size} bytes to send, as was said: they changed meanwhile")

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise too_large(f"there are more than {self._limit} bytes to send")


async def _read(source: Path | AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    if not isinstance(source, Path):
        async for piece in source:
            yield piece
        return
    with await asyncio.to_thread(source.open, "rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
