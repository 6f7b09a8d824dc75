"""Time that leaps for controllers at work: never in the midst of a reconcile, whose "again in ten minutes" would count from
after the leap, so that the test waits for a look that is not due."""

from __future__ import annotations

import asyncio

from tests.systems.images.station import LeapClock
from trimtab.runtime.metrics import Metrics

PATIENCE = 1.0  # a reconcile may itself wait for time to pass; then the leap is what it waits for


async def leap(clock: LeapClock, seconds: float, metrics: Metrics | None) -> None:
    """When the reconciles that are under way have ended, or one of them has lasted long, time passes."""
    queues = list(metrics.queues.values()) if metrics is not None else []
    ends = [(queue.worked, sum(queue.worked.counts) + len(queue.observe().working)) for queue in queues]
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while loop.time() < until and any(sum(worked.counts) < end for worked, end in ends):  # noqa: ASYNC110 - they tell nobody
        await asyncio.sleep(0.002)
    clock.leap(seconds)
