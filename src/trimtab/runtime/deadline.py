"""A time limit by a `Clock`. `asyncio.timeout` knows only the loop's own time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from trimtab.model.clock import Clock

T = TypeVar("T")


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. It is cancelled when it takes longer, and TimeoutError is raised."""
    call = asyncio.create_task(work)
    alarm = asyncio.create_task(clock.sleep(seconds))
    try:
        await asyncio.wait({call, alarm}, return_when=asyncio.FIRST_COMPLETED)
        if not call.done():
            raise TimeoutError(f"no answer within {seconds:g} s")
        return call.result()
    finally:
        call.cancel()
        alarm.cancel()
