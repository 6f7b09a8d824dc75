"""Trying again when a peer is away for a moment. Every call of `Blobs` may be repeated, so each is."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trimtab.model.backoff import pause
from trimtab.model.clock import Clock

T = TypeVar("T")

ATTEMPTS = 5
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0


async def retried(
    act: Callable[[], Awaitable[T]],
    temporary: tuple[type[Exception], ...],
    *,
    clock: Clock,
    chance: random.Random,
) -> T:
    """The result of the first attempt that succeeds; after the last one its error."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return await act()
        except temporary:
            await clock.sleep(pause(attempt, FIRST_PAUSE, LONGEST_PAUSE, chance))
    return await act()
