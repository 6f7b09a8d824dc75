"""Threads that make the calls of one connection, so that a peer that does not take its answers holds up no other.

They are kept for the next call until the pool is closed. Their number is bounded; what is too much waits its turn.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final

THREADS: Final = 256


class Pool:
    def __init__(self, most: int = THREADS) -> None:
        self._most = most
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._closed = False
        self._open = 0
        """Work that was given and is not done."""

    def run(self, work: Callable[[], None]) -> None:
        """Returns at once. `work` must not raise."""
        with self._lock:
            if self._closed:
                return
            self._open += 1
            grow = self._open > self._threads and self._threads < self._most
            self._threads += grow
        self._work.put(work)
        if grow:
            threading.Thread(target=self._serve, name="call", daemon=True).start()

    def close(self) -> None:
        """Threads end when they are done with what they do; what has not begun is not done."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            threads = self._threads
        for _ in range(threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None and not self._closed:
            try:
                work()
            finally:
                with self._lock:
                    self._open -= 1
