"""Clients of webhooks, one for each origin and each way to trust it, kept while they are of use.

A client is pinned to its origin's host: a webhook that redirects elsewhere is not followed.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from trimtab.model.clock import Clock

if TYPE_CHECKING:
    from trimtab.runtime.outbound import Outbound

MOST = 64
AT_ONCE = 512
"""Many runs may ask one webhook, and a slow one must not make them wait for each other until their time is over."""
LONGEST_PAUSE = 60.0
"""Seconds for which a webhook may ask to be left alone."""


class Way(msgspec.Struct, frozen=True):
    """`retries` are part of it because a client has one number of attempts."""

    host: str
    port: int
    ca: bytes = b""
    retries: int = 0


class Connections:
    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._kept: OrderedDict[Way, _Kept] = OrderedDict()

    @contextlib.asynccontextmanager
    async def to(self, way: Way) -> AsyncIterator[Outbound]:
        kept = self._kept.get(way)
        if kept is None:
            kept = self._kept[way] = _Kept(_outbound(way, self._clock))
        self._kept.move_to_end(way)
        kept.users += 1
        try:
            await self._trim()
            yield kept.outbound
        finally:
            kept.users -= 1

    async def close(self) -> None:
        kept = tuple(self._kept.values())
        self._kept.clear()
        for one in kept:
            await one.outbound.close()

    async def _trim(self) -> None:
        idle = [way for way, kept in self._kept.items() if not kept.users]
        for way in idle[: max(0, len(self._kept) - MOST)]:
            await self._kept.pop(way).outbound.close()


class _Kept:
    def __init__(self, outbound: Outbound) -> None:
        self.outbound = outbound
        self.users = 0


def _outbound(way: Way, clock: Clock | None) -> Outbound:
    from trimtab.runtime.outbound import Budget, HostPin, Limits, Outbound, Tls

    host = f"[{way.host}]" if ":" in way.host else way.host
    return Outbound(
        Budget(concurrent=AT_ONCE, rate=AT_ONCE, burst=AT_ONCE, attempts=way.retries + 1, longest_wish=LONGEST_PAUSE),
        Tls(ca=way.ca),
        HostPin(hosts=(f"{host}:{way.port}",)),
        limits=Limits(read=300.0, connections=AT_ONCE, connections_per_host=AT_ONCE),
        clock=clock,
    )
