"""Ends a step that never ends. A task that loops without ever waiting holds the whole loop, and no time-out of the loop can
come; so a thread looks on in real time, and raises `Spinning` inside of the step.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import traceback
from types import TracebackType
from typing import Self

from trimtab.testing.loop import SimulatedLoop

SECONDS = 15.0
FRAMES = 12


class Spinning(BaseException):
    """Raised in a step that has run for too long."""


class Watchdog:
    """While inside, the loop must take a step every few seconds of real time. One that does not raises `HotLoop`."""

    def __init__(self, loop: SimulatedLoop, seconds: float = SECONDS) -> None:
        self._loop = loop
        self._seconds = seconds
        self._thread = threading.get_ident()
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="watchdog")

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        last = self._loop.steps
        while not self._over.wait(self._seconds):
            if self._loop.steps == last:
                frames = traceback.extract_stack(sys._current_frames()[self._thread])[-FRAMES:]
                self._loop.spun = self._loop.spun or "".join(traceback.format_list(frames))
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(Spinning))
            last = self._loop.steps
