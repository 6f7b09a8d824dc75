"""How long a message waits until it is handed out again: longer each time, or as long as a registry wishes.

Counts are of this process and are forgotten with it: then a pause is shorter than it might be, and the queue's limit of
deliveries holds all the same.
"""

from __future__ import annotations

import random

import msgspec

from trimtab.model.backoff import Chance, pause
from trimtab.systems.images.worker.handling import Later

FIRST, LONGEST = 30.0, 600.0
MOST = 10_000
"""Messages that are remembered; the oldest are forgotten."""


class _Tried(msgspec.Struct, frozen=True):
    times: int
    reason: str
    why: str


class Patience:
    """Of one handler. Keys are uids of what the messages are about."""

    def __init__(self, chance: Chance | None = None) -> None:
        self._chance = chance or random.Random()  # noqa: S311 - jitter
        self._tried: dict[str, _Tried] = {}

    def later(self, key: str, reason: str, why: str, wish: float | None = None) -> Later:
        """To be raised. `wish` are seconds that somebody asked us to wait."""
        before = self._tried.pop(key, None)
        times = before.times if before else 0
        self._tried[key] = _Tried(times + 1, reason, why)
        if len(self._tried) > MOST:
            del self._tried[next(iter(self._tried))]
        return Later(why, min(LONGEST, max(wish or 0.0, pause(times, FIRST, LONGEST, self._chance))))

    def last(self, key: str) -> tuple[str, str]:
        """The reason for which it was put off last, and its sentence; both empty when this process does not know."""
        tried = self._tried.get(key)
        return (tried.reason, tried.why) if tried else ("", "")

    def forget(self, key: str) -> None:
        self._tried.pop(key, None)
