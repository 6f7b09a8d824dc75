"""One user of a folder at a time, between processes too.

The kernel holds the lock for an open file and drops it with the process, so a crash leaves none. It is asked for again
and again rather than waited for: a thread that waits in the kernel could not be cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path

from trimtab.runtime.git.errors import TimedOut

_FIRST, _LONGEST = 0.005, 0.25


@contextlib.asynccontextmanager
async def exclusive(file: Path, *, within: float) -> AsyncIterator[None]:
    """TimedOut when another has it all that time."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        pause = _FIRST
        async with asyncio.timeout(within):
            while not _taken(descriptor):
                await asyncio.sleep(pause)
                pause = min(_LONGEST, pause * 2)
    except TimeoutError:
        os.close(descriptor)
        raise TimedOut(f"{file.parent} is in use by another process for more than {within:g} s") from None
    except BaseException:
        os.close(descriptor)
        raise
    try:
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
