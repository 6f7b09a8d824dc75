"""Ctrl-C: once to end in order, twice to end at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from types import FrameType

from trimtab.cli.codes import INTERRUPTED


def stop_on_signals(stop: asyncio.Event) -> None:
    """Set `stop` on SIGINT and SIGTERM. The handlers are Python's own, so that they run also while something blocks the
    loop: then the second is the way out."""
    loop = asyncio.get_running_loop()
    seen = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            os._exit(INTERRUPTED)
        loop.call_soon_threadsafe(stop.set)
        print("stopping: what runs comes to its end; again to end at once", file=sys.stderr, flush=True)

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, handle)
