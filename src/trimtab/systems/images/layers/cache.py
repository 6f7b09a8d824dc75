"""Results of layers by diffID, in scratch: a base that many images share is read once.

    cache = LayerCache(scratch.dir("layers", max_bytes=1 << 30))
    result = cache.get(diff_id) or await cache.fill(diff_id, read)

`read` is called by one of all who ask at the same time, in this process or another. Results are rebuildable; a new
`EXTRACTOR` makes all old ones unseen, and they are evicted as they age.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from trimtab.storage.scratch import ScratchDir
from trimtab.storage.threads import in_thread
from trimtab.systems.images.layers.result import LayerResult

EXTRACTOR = 2
"""To be raised whenever a reader finds more, or a result has another form."""

_DECODER = msgspec.msgpack.Decoder(LayerResult)

Read = Callable[[], Awaitable[LayerResult]]


class LayerCache:
    """Layer results in a folder of scratch."""

    def __init__(self, folder: ScratchDir, *, extractor: int = EXTRACTOR) -> None:
        self._folder = folder
        self._extractor = extractor

    def get(self, diff_id: str) -> LayerResult | None:
        """The result when it is there: a small file, read at once."""
        with self._folder.use(self._key(diff_id)) as path:
            return None if path is None else load(path)

    async def fill(self, diff_id: str, read: Read) -> LayerResult:
        """The result, made by `read` when nobody has it. What `read` raises is raised, and nothing is kept."""
        made: list[LayerResult] = []

        async def make(path: Path) -> None:
            result = await read()
            if result.diff_id != diff_id:
                raise ValueError(f"the layer {result.diff_id} cannot be kept under {diff_id}")
            await in_thread(path.write_bytes, msgspec.msgpack.encode(result))
            made.append(result)

        async with self._folder.fill(self._key(diff_id), make, intact=_intact) as path:
            if made:
                return made[0]
            return _DECODER.decode(await in_thread(path.read_bytes))

    def _key(self, diff_id: str) -> str:
        return f"{self._extractor}-{diff_id}"


def load(path: Path) -> LayerResult | None:
    """The result in the file; None when it is not one, and is to be made again."""
    try:
        return _DECODER.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _intact(path: Path) -> bool:
    return load(path) is not None
