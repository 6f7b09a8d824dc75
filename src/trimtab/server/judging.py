"""Rules of custom kinds (`x-kubernetes-validations`) and admission policies, and what they may take from everybody else.

They run in this thread, and within the budget that the API gives them some take half a second. While nothing took long,
nothing here waits. What is judged by rules that did is judged one object at a time, of each user one, so that users take
turns; and after each the server rests for as long as that took. Whoever asks for something else waits for one such object,
not for all that one user has sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from trimtab.model.errors import FieldError
from trimtab.model.schema import Schema

LONG = 0.02
"""Seconds that nobody notices."""

Document = dict[str, Any]
T = TypeVar("T")


class Judge(Protocol):
    """Whose rules they are. `slow` says whether they took long when they last ran."""

    slow: bool


class Judging:
    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._one = asyncio.Lock()
        self._users: dict[str, _Queue] = {}

    async def rules(
        self,
        user: str,
        schema: Schema,
        new: Document,
        old: Document | None,
        errors: Sequence[FieldError],
        warn: Callable[[str], None] | None = None,
    ) -> list[FieldError]:
        """What the rules of a kind say of an object; `errors` are those found before, `warn` is told what is forgiven."""
        if not schema.ruled:
            return []
        return await self.judged(user, schema, lambda: schema.rules(new, old, errors, warn))

    async def judged(self, user: str, judge: Judge, act: Callable[[], T]) -> T:
        """What `act` returns, which runs the rules of `judge`."""
        if not judge.slow:
            return self._timed(judge, act)[0]
        queue = self._users.setdefault(user, _Queue())
        queue.length += 1
        try:
            async with queue.lock, self._one:
                found, took = self._timed(judge, act)
                if took > LONG:
                    await asyncio.sleep(took)
                return found
        finally:
            queue.length -= 1
            if not queue.length:
                del self._users[user]

    def _timed(self, judge: Judge, act: Callable[[], T]) -> tuple[T, float]:
        started = self._now()
        found = act()
        took = self._now() - started
        judge.slow = took > LONG
        return found, took


class _Queue:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.length = 0
