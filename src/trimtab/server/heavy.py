"""Requests with large bodies, and what they may take from everybody else.

A body of some megabytes takes this thread up to a second to read, judge and write. Of one user they are answered one after
the other, and after each the server rests from them for as long as it took: whoever asks for something else waits for one
of them, not for all that one user has sent. Service accounts of one namespace are as one user, since whoever has rights in
it can make any number of them.

Caveat: nobody waits longer than `PATIENCE` for one that is answered: it may wait itself, for a webhook that is slow, or for
one that writes as the same user.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator

HEAVY = 256 * 1024  # bytes
PATIENCE = 10.0
LONG, LONGEST_REST = 0.02, 2.0

_ACCOUNT = "system:serviceaccount:"


class Heavy:
    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._queues: dict[str, _Queue] = {}

    async def turn(self, user: str) -> contextlib.AbstractContextManager[None]:
        """Wait for it. It ends with the context, and a while after."""
        whose = user.rpartition(":")[0] if user.startswith(_ACCOUNT) else user
        queue = self._queues.setdefault(whose, _Queue())
        queue.length += 1
        try:
            await queue.lock.acquire()
        except BaseException:
            self._left(whose, queue)
            raise
        return self._taken(whose, queue)

    @contextlib.contextmanager
    def _taken(self, whose: str, queue: _Queue) -> Iterator[None]:
        loop, started, held = asyncio.get_running_loop(), self._now(), True

        def release() -> None:
            nonlocal held
            if held:
                held = False
                queue.lock.release()
                self._left(whose, queue)

        timer = loop.call_later(PATIENCE, release)
        try:
            yield
        finally:
            timer.cancel()
            took = self._now() - started
            if took > LONG:
                loop.call_later(min(took, LONGEST_REST), release)
            else:
                release()

    def _left(self, whose: str, queue: _Queue) -> None:
        queue.length -= 1
        if not queue.length:
            del self._queues[whose]


class _Queue:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.length = 0
