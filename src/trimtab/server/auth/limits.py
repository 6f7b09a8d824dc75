"""Limits on what one client, and all of them, may have going on at once: too much is a 429 that says when to come back.

Watches and other long requests are counted apart: they wait, they do not work. `system:masters` always gets an answer.
"""

from __future__ import annotations

from types import TracebackType

import msgspec

from trimtab.model.errors import too_many_requests
from trimtab.server.auth.identity import MASTERS, User

MESSAGE = "Too many requests, please try again later."


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How many at once."""

    requests: int = 600
    requests_per_user: int = 300
    watches: int = 10_000
    watches_per_user: int = 4_000


class InFlight:
    """What is going on. One thread only: counting needs no lock."""

    def __init__(self, limits: Limits) -> None:
        self.requests = Gauge(limits.requests, limits.requests_per_user)
        self.watches = Gauge(limits.watches, limits.watches_per_user)

    def acquire(self, user: User, long_running: bool = False) -> Place:
        """A place for one request, given back when its `with` ends. Raises StatusError 429 when there is none."""
        return (self.watches if long_running else self.requests).take(user)


class Gauge:
    """How many are going on, in total and by user."""

    __slots__ = ("_limit", "_user_limit", "by_user", "total")

    def __init__(self, limit: int, user_limit: int) -> None:
        self._limit = limit
        self._user_limit = user_limit
        self.total = 0
        self.by_user: dict[str, int] = {}

    def take(self, user: User) -> Place:
        count = self.by_user.get(user.name, 0)
        if (self.total >= self._limit or count >= self._user_limit) and MASTERS not in user.groups:
            raise too_many_requests(MESSAGE)
        self.total += 1
        self.by_user[user.name] = count + 1
        return Place(self, user.name)

    def release(self, name: str) -> None:
        self.total -= 1
        left = self.by_user[name] - 1
        if left:
            self.by_user[name] = left
        else:
            del self.by_user[name]


class Place:
    """One place, held until the end of `with`."""

    __slots__ = ("_gauge", "_name")

    def __init__(self, gauge: Gauge, name: str) -> None:
        self._gauge = gauge
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gauge.release(self._name)
