"""One layer, read once as a stream: the archive verified, what it brings, what it takes away.

    reader = LayerReader(digest=…, diff_id=…)       # push: `feed` compressed bytes, then `finish`
    result = read_layer(chunks, digest=…, diff_id=…)
    result = await read_layer_async(response.content.iter_chunked(1 << 20), digest=…, diff_id=…)

A result is plain data without file contents, so that it can be cached by diffID and merged with others (`image.py`).

Guarantees: a result is returned only when the diffID is the one that was given. Memory is bounded by one held file
(`Limits.held_bytes`) and one piece, whatever the layer's size; an rpm database in SQLite is held to the end. A file that
cannot be read is a warning.

Assumption: that the compressed bytes are those of `digest` is verified by whoever hands them over, before they end: the
client of the registry does. Here it is only a name, as hashing them again would take a tenth of the time.

Caveats: an executable over `Limits.executable_bytes` is searched for Go's build information only, in passing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable

from trimtab.systems.images.layers.decompress import Decompressor
from trimtab.systems.images.layers.harvest import Harvest
from trimtab.systems.images.layers.problems import LIMITS, LayerMismatch, LayerUnsupported, Limits
from trimtab.systems.images.layers.result import LayerResult
from trimtab.systems.images.layers.tar import Walker

MEDIA_TYPES = (
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
    "application/vnd.docker.image.rootfs.foreign.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
)

_BATCH = 4 << 20  # bytes for one trip to a thread


def read_layer(
    chunks: Iterable[bytes], *, media_type: str = "", digest: str = "", diff_id: str = "", limits: Limits = LIMITS
) -> LayerResult:
    """The layer's result. LayerError. Pure and blocking: for a thread or a worker process."""
    reader = LayerReader(media_type=media_type, digest=digest, diff_id=diff_id, limits=limits)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


async def read_layer_async(
    chunks: AsyncIterator[bytes],
    *,
    media_type: str = "",
    digest: str = "",
    diff_id: str = "",
    limits: Limits = LIMITS,
) -> LayerResult:
    """The same from a connection. The work is done in threads, and its heavy parts release the interpreter's lock."""
    reader = LayerReader(media_type=media_type, digest=digest, diff_id=diff_id, limits=limits)
    batch: list[bytes] = []
    size = 0
    async for chunk in chunks:
        batch.append(chunk)
        size += len(chunk)
        if size >= _BATCH:
            await asyncio.to_thread(_feed, reader, batch)
            batch, size = [], 0
    await asyncio.to_thread(_feed, reader, batch)
    return await asyncio.to_thread(reader.finish)


def _feed(reader: LayerReader, batch: list[bytes]) -> None:
    for chunk in batch:
        reader.feed(chunk)


class LayerReader:
    """Push the compressed bytes, in pieces of any size."""

    def __init__(self, *, media_type: str = "", digest: str = "", diff_id: str = "", limits: Limits = LIMITS) -> None:
        if media_type and media_type.partition(";")[0] not in MEDIA_TYPES:
            raise LayerUnsupported(f"{media_type[:120]!r} is no media type of an image layer")
        self._digest, self._expected = digest, diff_id
        self._hashed = _hash(diff_id)
        self._decompressor = Decompressor(limits)
        self._harvest = Harvest(limits)
        self._walker = Walker(self._harvest.visit, limits)

    def feed(self, chunk: bytes) -> None:
        for piece in self._decompressor.feed(chunk):
            self._take(piece)

    def finish(self) -> LayerResult:
        for piece in self._decompressor.finish():
            self._take(piece)
        self._walker.finish()
        diff_id = f"{self._hashed.name}:{self._hashed.hexdigest()}"
        if self._expected and self._expected != diff_id:
            raise LayerMismatch(f"the layer's archive has the digest {diff_id}, not {self._expected} as the image says")
        return self._harvest.result(
            digest=self._digest, diff_id=diff_id, size=self._decompressor.given, entries=self._walker.entries
        )

    def _take(self, piece: bytes) -> None:
        self._hashed.update(piece)
        self._walker.feed(piece)


def _hash(expected: str) -> hashlib._Hash:
    """By the algorithm of the digest that is expected; OCI registers two."""
    algorithm = expected.partition(":")[0] or "sha256"
    if algorithm not in ("sha256", "sha512"):
        raise LayerUnsupported(f"{expected[:80]!r} is no digest by sha256 or sha512")
    return hashlib.new(algorithm)
