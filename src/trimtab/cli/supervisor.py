"""Keeps a child process running: started again with growing pauses when it dies, ended before we end.

The child holds the other end of a pipe as its standard input, so that it ends with us, however we end.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence

from trimtab.model import backoff
from trimtab.model.clock import Clock
from trimtab.model.logs import log

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
STEADY = 60.0  # seconds; a child that lived as long was a good one
GRACE = 45.0


class Supervisor:
    """One child."""

    def __init__(self, command: Sequence[str], *, name: str, clock: Clock, chance: random.Random) -> None:
        self._command = command
        self._name = name
        self._clock = clock
        self._chance = chance
        self._child: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        """Until cancelled; the child has ended when this returns."""
        failures = 0
        try:
            while True:
                began = self._clock.monotonic()
                ended = await self._lived()
                failures = 0 if self._clock.monotonic() - began >= STEADY else failures
                pause = backoff.pause(failures, FIRST_PAUSE, LONGEST_PAUSE, self._chance)
                log.error(f"the {self._name} ended", why=ended, again_in=round(pause, 1))
                await self._clock.sleep(pause)
                failures += 1
        finally:
            await self._end()

    async def _lived(self) -> str:
        """One life of the child; how it ended. A machine without memory or room for processes may have some later."""
        try:
            self._child = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is ours alone: we end it in order
            )
        except OSError as error:
            return f"it could not be started: {error.strerror}"
        code = await self._child.wait()
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    async def _end(self) -> None:
        child = self._child
        if child is None or child.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
        try:
            async with asyncio.timeout(GRACE):
                await child.wait()
        except TimeoutError:
            log.error(f"the {self._name} did not end in time and is killed")
            child.kill()
            await child.wait()
