"""The clock of deadlines: time in which the thread did not listen does not count.

A thread that gets no processor, or waits for the interpreter's lock, cannot hear an answer. So each turn of its loop
says how long it was away, and what exceeds the allowance is taken off the clock: every deadline moves by as much.
"""

from __future__ import annotations

ALLOWANCE = 0.1
"""Seconds that a turn may come late without harm: what came meanwhile is read before anything expires."""


class Attention:
    def __init__(self, now: float) -> None:
        self._heard = now
        self._lost = 0.0

    def time(self, now: float) -> float:
        """What the clock of deadlines shows at a moment of the real one."""
        return now - self._lost

    def real(self, time: float) -> float:
        """The moment at which the clock will show `time`, if nothing more is lost."""
        return time + self._lost

    def heard(self, slept: float, asked: float | None, now: float) -> float:
        """The thread went to sleep at `slept` for `asked` seconds and listens again now. Gives its lag."""
        overslept = 0.0 if asked is None else max(0.0, now - slept - asked)
        lag = max(0.0, slept - self._heard) + overslept
        self._heard = now
        if lag > ALLOWANCE:
            self._lost += lag - ALLOWANCE
        return lag
