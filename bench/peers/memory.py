"""What both Python programs do on SIGUSR1: give memory back that nobody uses, as the Go one does."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import signal

from ledger import Ledger


def collect_when_asked(ledger: Ledger) -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    def collect() -> None:
        gc.collect()
        if trim is not None:
            trim(0)
        ledger.collected()

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, collect)
