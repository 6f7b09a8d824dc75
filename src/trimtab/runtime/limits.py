"""How long to wait before trying again: a back-off for each key, and a token bucket for all of them.

Both only compute; who uses them does the waiting. The defaults of `Backoff` are those of controller-runtime: 5 ms, doubled
with each failure, up to 1000 s. Chance is passed in, so a test can repeat it.
"""

from __future__ import annotations

from collections.abc import Hashable
from random import Random
from typing import Generic, TypeVar

from trimtab.model.clock import Clock

K = TypeVar("K", bound=Hashable)


class Backoff(Generic[K]):
    """Exponential delays, counted for each key.

    Jitter only shortens: a delay is between `1 - jitter` and 1 times its nominal length, so that keys that failed together
    do not come back together, and `longest` stays a promise. A key costs memory until `forget`.
    """

    def __init__(
        self,
        first: float = 0.005,
        factor: float = 2.0,
        longest: float = 1000.0,
        jitter: float = 0.1,
        *,
        random: Random,
    ) -> None:
        if not 0 < first <= longest:
            raise ValueError(f"a back-off needs 0 < first <= longest, not first={first} and longest={longest}")
        if factor < 1:
            raise ValueError(f"a back-off must not shrink: factor={factor} is below 1")
        if not 0 <= jitter < 1:
            raise ValueError(f"jitter={jitter} must be at least 0 and below 1")
        self._first = first
        self._factor = factor
        self._longest = longest
        self._jitter = jitter
        self._random = random
        self._delays: dict[K, float] = {}  # nominal, after the last failure

    def next(self, key: K) -> float:
        """Count a failure of this key; the seconds to wait before it is tried again."""
        last = self._delays.get(key)
        delay = self._delays[key] = self._first if last is None else min(self._longest, last * self._factor)
        return delay * (1 - self._jitter * self._random.random())

    def forget(self, key: K) -> None:
        """The key succeeded, or is given up: its next failure is its first."""
        self._delays.pop(key, None)


class TokenBucket:
    """At most `burst` at once and `rate` a second after that.

    A reservation always succeeds and says how long to wait for it; those who come later queue behind it, until it is put
    back. The bucket is full at first.
    """

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs rate > 0 and burst >= 1, not rate={rate} and burst={burst}")
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)  # below zero: already promised
        self._filled = clock.monotonic()

    def reserve(self) -> float:
        """Take one token; the seconds until it is there."""
        self._tokens = self._there() - 1
        return max(0.0, -self._tokens / self._rate)

    def put_back(self) -> None:
        """The token was not needed after all."""
        self._tokens = min(self._burst, self._there() + 1)

    @property
    def full(self) -> bool:
        """Whether a new bucket would be the same."""
        return self._there() >= self._burst

    def _there(self) -> float:
        """The tokens by now."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        return self._tokens
