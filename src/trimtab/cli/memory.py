"""How a process that stays treats its memory: fewer collections, and large blocks given back."""

from __future__ import annotations

import ctypes
import gc


def tune(*, layers: bool = False) -> None:
    """Call it when everything is imported. `layers`: this process reads layers of images."""
    gc.freeze()  # what was imported stays: collections need not look at it again
    gc.set_threshold(50_000, 10, 10)  # requests make few cycles; looking for them often costs a tenth of the time
    if not layers:
        _return_large_blocks()


def _return_large_blocks() -> None:
    """Let glibc give large blocks back to the system: bodies come and go, and would leave holes. The limit is above the
    256 KiB that TLS reads into: those blocks are used again at once.

    A layer passes through hundreds of blocks, one after the other, and the system would clear each page of them again:
    a third of the time that it takes to read the layer. There glibc finds the limit by itself."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 320 * 1024)


M_MMAP_THRESHOLD = -3
