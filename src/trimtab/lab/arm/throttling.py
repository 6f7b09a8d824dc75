"""How many calls a subscription has left, by reads, writes and deletes: buckets that refill, as ARM's do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from trimtab.lab.arm.behaviour import Limit
from trimtab.lab.arm.checking import ArmError
from trimtab.model.clock import Clock

Class = Literal["reads", "writes", "deletes"]
UNLIMITED = 11999


def class_of(method: str) -> Class:
    return "reads" if method in ("GET", "HEAD") else "deletes" if method == "DELETE" else "writes"


class Throttle:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: dict[tuple[str, str], tuple[float, float]] = {}  # what is left, and when that was
        self._closed: dict[str, int] = {}

    def close(self, subscription: str, retry_after: int) -> None:
        """Refuse every call of a subscription from now on."""
        self._closed[subscription.lower()] = retry_after

    def open(self, subscription: str) -> None:
        """Let calls through again, with full buckets."""
        self._closed.pop(subscription.lower(), None)
        for key in [each for each in self._left if each[0] == subscription.lower()]:
            del self._left[key]

    def take(self, subscription: str, method: str, limits: Mapping[str, Limit]) -> dict[str, str]:
        """The headers that say what is left. Raises when nothing is."""
        kind = class_of(method)
        wait = self._closed.get(subscription)
        if wait is not None:
            raise _throttled(subscription, wait, kind)
        limit = limits.get(kind)
        if limit is None:
            return {f"x-ms-ratelimit-remaining-subscription-global-{kind}": str(UNLIMITED)}
        now = self._clock.monotonic()
        left, since = self._left.get((subscription, kind), (float(limit.calls), now))
        left = min(float(limit.calls), left + (now - since) * limit.per_second)
        if left < 1:
            self._left[subscription, kind] = (left, now)
            raise _throttled(subscription, limit.retry_after, kind)
        self._left[subscription, kind] = (left - 1, now)
        return {f"x-ms-ratelimit-remaining-subscription-global-{kind}": str(int(left - 1))}


def _throttled(subscription: str, wait: int, kind: Class) -> ArmError:
    headers = {"Retry-After": str(wait), f"x-ms-ratelimit-remaining-subscription-global-{kind}": "0"}
    message = f"Number of {kind} for subscription '{subscription}' exceeded the limit. Try again after {wait} seconds."
    return ArmError(429, "SubscriptionRequestsThrottled", message, headers)
