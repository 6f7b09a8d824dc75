"""The thread of the sweeps, seen from the others: jobs go in by commands, a listener hears what becomes of them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from trimtab.systems.discovery.sweep.job import Job, SweepFailed
from trimtab.systems.discovery.sweep.loop import Listener, Loop


class SweepThread:
    """Runs from construction until `stop`. All methods may be called in any thread, also after its end."""

    def __init__(self, rate: float, sockets: int, enter: Callable[[], None] | None = None) -> None:
        self._lock = threading.Lock()
        self._over = False
        self._enter = enter
        self._commands: deque[Callable[[Loop], None]] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._loop = Loop(rate, sockets, self._wake, self._commands)
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)
        self._thread.start()

    def add(self, job: Job, listener: Listener) -> None:
        if not self._ask(lambda loop: loop.begin(job, listener)):
            listener.fail(SweepFailed("the sweeper was closed"))

    def remove(self, listener: Listener, gone: Callable[[], None]) -> None:
        """Ends a job, and calls `gone` when nothing of it is left."""

        def drop(loop: Loop) -> None:
            loop.drop(listener)
            gone()

        if not self._ask(drop):
            gone()

    def stop(self) -> None:
        """Ends all jobs, and the thread."""
        self._ask(lambda loop: loop.stop())

    def join(self) -> None:
        self._thread.join()

    def _ask(self, command: Callable[[Loop], None]) -> bool:
        """False when the thread is over."""
        with self._lock:
            if self._over:
                return False
            self._commands.append(command)
            os.eventfd_write(self._wake, 1)
            return True

    def _run(self) -> None:
        end = SweepFailed("the sweeper was closed")
        try:
            if self._enter is not None:
                self._enter()
            self._loop.run()
        except Exception as error:  # whoever waits for a sweep gets it
            end = SweepFailed(f"the sweep's thread broke: {error!r}")
            end.__cause__ = error
        with self._lock:
            self._over = True
            os.close(self._wake)
        while self._commands:  # asked for at the last moment
            self._commands.popleft()(self._loop)
        self._loop.close(end)
