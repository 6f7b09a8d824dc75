"""Bytes of unknown length, brought to disk and measured before they go anywhere else.

A stream can be read once and its digest is known at its end. Spooled, it is known whole: it can be refused before the
database or the network hears of it, and be sent a second time.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import AsyncIterator
from typing import IO

from trimtab.storage.blobs import CHUNK, BlobDamaged, BlobsUnavailable, BlobTooLarge, Data, Digest
from trimtab.storage.threads import in_thread


class Spool:
    """Bytes in a file, with their digest; `chunks` may be read any number of times, one reader at a time."""

    def __init__(self, file: IO[bytes], size: int, digest: Digest) -> None:
        self.file = file
        self.size = size
        self.digest = digest

    async def chunks(self) -> AsyncIterator[bytes]:
        """Each of CHUNK bytes but the last."""
        await in_thread(self.file.seek, 0)
        while chunk := await in_thread(self.file.read, CHUNK):
            yield chunk


@contextlib.asynccontextmanager
async def spooled(data: Data, *, max_bytes: int, expected: Digest | None = None) -> AsyncIterator[Spool]:
    """A spool in the system's folder for temporary files; small ones stay in memory. BlobTooLarge, BlobDamaged."""
    with tempfile.SpooledTemporaryFile(max_size=CHUNK) as file:
        size, digest = await fill(file, data, max_bytes=max_bytes, expected=expected)
        yield Spool(file, size, digest)


async def fill(file: IO[bytes], data: Data, *, max_bytes: int, expected: Digest | None = None) -> tuple[int, Digest]:
    """Writes the data into the file: its size and digest. BlobTooLarge before the limit is passed on disk."""
    found = hashlib.sha256()
    size = 0

    def write(chunk: bytes) -> None:
        found.update(chunk)
        file.write(chunk)

    async for chunk in _pieces(data):
        size += len(chunk)
        if size > max_bytes:
            raise BlobTooLarge(max_bytes)
        try:
            await in_thread(write, chunk)
        except OSError as error:
            raise BlobsUnavailable(f"the bytes of a blob cannot be kept on this machine: {error.strerror}") from error
    digest = Digest(f"sha256:{found.hexdigest()}")
    if expected is not None and digest != expected:
        raise BlobDamaged(expected, f"the bytes that came are {digest}")
    return size, digest


async def _pieces(data: Data) -> AsyncIterator[bytes]:
    """As few pieces as CHUNK allows: small ones are gathered, large ones are cut."""
    if isinstance(data, bytes):
        for start in range(0, len(data), CHUNK):
            yield data[start : start + CHUNK]
        return
    held = bytearray()
    async for piece in data:
        for start in range(0, len(piece), CHUNK):
            held += piece[start : start + CHUNK]
            if len(held) >= CHUNK:
                yield bytes(held)
                held.clear()
    if held:
        yield bytes(held)
