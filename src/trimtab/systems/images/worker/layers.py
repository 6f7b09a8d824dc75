"""The results of an image's layers: from the cache, or from the registry.

What is cached is proven: a digest's diffID is known only from bytes that had this digest, so an image that claims the
diffID of another layer does not get its result. A layer whose diffID nobody says is cached all the same.

Memory: a layer may hold a file of `Limits.held_bytes` while it is read, so large layers are read one at a time in a
process, whatever images they are of. Small ones go beside them, as long as they also unpack to little.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path

import msgspec

from trimtab.storage.scratch import Scratch
from trimtab.storage.threads import in_thread
from trimtab.systems.images.kinds import ImageLayer
from trimtab.systems.images.layers.cache import LayerCache
from trimtab.systems.images.layers.layer import MEDIA_TYPES, read_layer_async
from trimtab.systems.images.layers.problems import (
    LIMITS,
    LayerDamaged,
    LayerMismatch,
    LayerTooLarge,
    LayerUnsupported,
    Limits,
)
from trimtab.systems.images.layers.result import LayerResult

Pull = Callable[[ImageLayer], AsyncGenerator[bytes, None]]
"""The bytes of a layer as the registry has them, verified at their end."""

RESULTS_BYTES = 2 << 30
NAMES_BYTES = 2 << 20
SMALL = 1 << 20
"""Bytes of a layer in the registry that is tried as a small one."""
SMALL_LIMITS = msgspec.structs.replace(LIMITS, layer_bytes=8 << 20)
SMALL_AT_ONCE = 3


class Layers:
    """Made once in a process."""

    def __init__(self, scratch: Scratch, *, limits: Limits = LIMITS) -> None:
        self._cache = LayerCache(scratch.dir("layers", RESULTS_BYTES))
        self._names = scratch.dir("layer-names", NAMES_BYTES)  # digests to diffIDs
        self._limits = limits
        self._large = asyncio.Semaphore(1)
        self._small = asyncio.Semaphore(SMALL_AT_ONCE)

    async def result(self, layer: ImageLayer, pull: Pull) -> LayerResult:
        """What the layer does. LayerError, and what `pull` raises."""
        _check_type(layer)
        async with self._names.fill(layer.digest, partial(self._learn, layer, pull)) as path:
            diff_id = await in_thread(path.read_text)
        if layer.diff_id and layer.diff_id != diff_id:
            raise LayerMismatch(f"{layer.digest} unpacks to {diff_id}, not to {layer.diff_id} as the image says")
        cached = await in_thread(self._cache.get, diff_id)
        return cached or await self._cache.fill(diff_id, partial(self._read, layer, pull))

    async def _learn(self, layer: ImageLayer, pull: Pull, path: Path) -> None:
        result = await self._read(layer, pull)

        async def read() -> LayerResult:
            return result

        await self._cache.fill(result.diff_id, read)
        await in_thread(path.write_text, result.diff_id)

    async def _read(self, layer: ImageLayer, pull: Pull) -> LayerResult:
        if layer.size <= SMALL:
            try:
                async with self._small:
                    return await _read(layer, pull, SMALL_LIMITS)
            except LayerTooLarge:
                pass  # it is larger than it looks
        async with self._large:
            return await _read(layer, pull, self._limits)


async def _read(layer: ImageLayer, pull: Pull, limits: Limits) -> LayerResult:
    async with aclosing(pull(layer)) as pieces:
        try:
            return await read_layer_async(
                pieces,
                media_type=layer.media_type or "",
                digest=layer.digest,
                diff_id=layer.diff_id or "",
                limits=limits,
            )
        except (LayerDamaged, LayerUnsupported):
            async for _ in pieces:
                pass  # if these are not the layer's bytes, that is what is wrong, and the end says so
            raise


def _check_type(layer: ImageLayer) -> None:
    """Before anything is pulled."""
    if layer.media_type and layer.media_type.partition(";")[0] not in MEDIA_TYPES:
        raise LayerUnsupported(f"{layer.media_type[:120]!r} is no media type of an image layer")


class Gathered:
    """The results of one image's layers, within what an image may have."""

    MOST_BYTES = 32 << 20
    MOST_PACKAGES = 50_000

    def __init__(self) -> None:
        self.results: list[LayerResult] = []
        self._bytes = self._packages = 0

    def add(self, result: LayerResult) -> None:
        """LayerTooLarge when all of them are more than is held at once."""
        self._bytes += len(msgspec.msgpack.encode(result))
        self._packages += sum(len(finding.packages) for finding in result.findings)
        if self._bytes > self.MOST_BYTES:
            raise LayerTooLarge(f"what the layers name takes more than {self.MOST_BYTES} bytes")
        if self._packages > self.MOST_PACKAGES:
            raise LayerTooLarge(f"the layers name more than {self.MOST_PACKAGES} packages")
        self.results.append(result)
