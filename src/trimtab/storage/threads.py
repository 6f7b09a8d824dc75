"""Blocking work in a thread that never outlives its caller.

`asyncio.to_thread` returns at once when it is cancelled and leaves the thread at work, on files that the caller then
closes. Here a cancelled caller waits for the thread first: blocking work must therefore be short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    work = asyncio.ensure_future(asyncio.to_thread(act, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError:
                continue  # already on the way out
        if not work.cancelled():
            work.exception()  # the cancellation is what the caller hears of
        raise
