"""A caller that waits: whoever imports has nothing else to do meanwhile."""

from __future__ import annotations

import random

from trimtab.model import backoff
from trimtab.model.clock import Clock
from trimtab.systems.rest.calling.contract import Answer, Caller, CallError, ErrorClass, Request

TRIES = 5
FIRST, LONGEST = 0.5, 60.0
PASSING = (ErrorClass.THROTTLED, ErrorClass.TRANSIENT)


class Patient:
    """Reads again what failed for a reason that may pass. Nothing else goes through it, so that is always safe."""

    def __init__(self, caller: Caller, clock: Clock, chance: random.Random) -> None:
        self._caller, self._clock, self._chance = caller, clock, chance
        self.endpoint, self.connection = caller.endpoint, caller.connection

    async def call(self, request: Request) -> Answer:
        for attempt in range(TRIES - 1):
            try:
                return await self._caller.call(request)
            except CallError as error:
                if error.kind not in PASSING or (error.retry_after or 0.0) > LONGEST:
                    raise
                wait = backoff.pause(attempt, FIRST, LONGEST, self._chance)
                await self._clock.sleep(wait if error.retry_after is None else error.retry_after)
        return await self._caller.call(request)
