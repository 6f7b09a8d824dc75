"""Messages that came before: by the provider's name for them, and by the digest of what was signed.

The name is not part of what a provider signs, so a message that is sent again under another name is still known by its
body. Where nobody signs the body, two pushes may have the same one, and the name decides. Bounded: the oldest are
forgotten; then a replay costs one fetch that finds nothing new.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from trimtab.model.clock import Clock

MOST = 4096
FOR = 24 * 3600.0


class Deliveries:
    """Of one process."""

    def __init__(self, clock: Clock, *, most: int = MOST, seconds: float = FOR) -> None:
        self._clock, self._most, self._seconds = clock, most, seconds
        self._seen: OrderedDict[str, float] = OrderedDict()

    def is_known(self, hook: str, delivery: str, body: bytes, *, signed: bool = True) -> bool:
        horizon = self._clock.monotonic() - self._seconds
        return any(self._seen.get(key, horizon) > horizon for key in _keys(hook, delivery, body, signed))

    def remember(self, hook: str, delivery: str, body: bytes, *, signed: bool = True) -> None:
        """Only when it was acted on: what failed may come again."""
        now = self._clock.monotonic()
        for key in _keys(hook, delivery, body, signed):
            self._seen[key] = now
            self._seen.move_to_end(key)
        while len(self._seen) > self._most:
            self._seen.popitem(last=False)


def _keys(hook: str, delivery: str, body: bytes, signed: bool) -> list[str]:
    names = [f"{hook} name {delivery[:128]}"] if delivery else []
    return [*names, f"{hook} body {hashlib.sha256(body).hexdigest()}"] if signed or not names else names
