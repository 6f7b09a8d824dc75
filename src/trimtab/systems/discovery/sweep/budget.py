"""How fast packets may leave: a token bucket for all jobs, one more for a job with a cap of its own, and fair shares.

Time is passed in. A bucket holds no more than `DEPTH` seconds of its rate, so that a thread which was held up does not
make good for it by a burst.
"""

from __future__ import annotations

from collections.abc import Sequence

DEPTH = 0.05
"""Seconds."""
TICK = 0.002
"""Seconds between two sends, where the rate is the limit."""


class Bucket:
    """Fills at a rate, from full."""

    def __init__(self, rate: float, now: float) -> None:
        if rate <= 0:
            raise ValueError(f"a rate of {rate:g} packets a second sends nothing: give one above 0")
        self._rate = rate
        self._most = max(1.0, rate * DEPTH)
        self._worth = min(64.0, max(1.0, rate * TICK))
        self._tokens = self._most
        self._filled = now

    def available(self, now: float) -> int:
        """How many packets may go now."""
        if now > self._filled:
            self._tokens = min(self._most, self._tokens + (now - self._filled) * self._rate)
            self._filled = now
        return max(0, int(self._tokens))

    def spend(self, packets: int) -> None:
        self._tokens -= packets

    @property
    def wait(self) -> float:
        """Seconds from the last look until it is worth while to send; 0 when it is."""
        return max(0.0, (self._worth - self._tokens) / self._rate)


def share(available: int, wants: Sequence[int], turn: int = 0) -> list[int]:
    """Divides packets: equal parts, none more than it wants, nothing left over that somebody wants.

    What cannot be divided goes to those from `turn` on, so let it grow by one each time.
    """
    grants = [0] * len(wants)
    hungry = [place for place, want in enumerate(wants) if want > 0]
    while available > 0 and hungry:
        part = available // len(hungry)
        if part == 0:
            for offset in range(available):
                grants[hungry[(turn + offset) % len(hungry)]] += 1
            break
        for place in hungry:
            given = min(part, wants[place] - grants[place])
            grants[place] += given
            available -= given
        hungry = [place for place in hungry if grants[place] < wants[place]]
    return grants
