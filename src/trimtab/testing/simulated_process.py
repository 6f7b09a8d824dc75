"""A process of a simulation: tasks that stall together and die together.

All that is started inside of it belongs to it: tasks, timers and callbacks inherit the context variable `PROCESS`. The
simulated loop asks before each step whether the step's process may run. A stalled process (SIGSTOP, a machine that
swaps) goes on later, without knowing that time has passed. A dead one never runs again, not even its `finally` blocks:
power cuts run none either. What is left of it is cleared away when the loop closes.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TypeVar

T = TypeVar("T")


class State(enum.Enum):
    RUNNING = "running"
    STALLED = "stalled"
    DEAD = "dead"


class Event(enum.Enum):
    STALL = "stall"
    RESUME = "resume"
    KILL = "kill"


def after(state: State, event: Event) -> State:
    """The life of a process. The dead stay dead."""
    if state is State.DEAD or event is Event.KILL:
        return State.DEAD
    return State.STALLED if event is Event.STALL else State.RUNNING


class SimulatedProcess:
    """`fuse` counts down its steps: at zero it dies, between two awaits wherever that is."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = State.RUNNING
        self.steps = 0
        self.fuse: int | None = None
        self.died: Callable[[], None] | None = None
        """Called once, at death, from outside of the process."""

    def run(self, function: Callable[..., T], *args: object) -> T:
        """Call a function inside of the process: what it starts belongs to it."""
        context = copy_context()
        context.run(PROCESS.set, self)
        return context.run(function, *args)

    def stall(self) -> None:
        self._hear(Event.STALL)

    def resume(self) -> None:
        self._hear(Event.RESUME)

    def kill(self) -> None:
        was = self.state
        self._hear(Event.KILL)
        if was is not State.DEAD and self.died is not None:
            self.died()

    def may_step(self) -> bool:
        """Asked by the loop before each step of the process; burns the fuse."""
        if self.state is not State.RUNNING:
            return False
        if self.fuse is not None:
            if self.fuse <= 0:
                self.kill()
                return False
            self.fuse -= 1
        self.steps += 1
        return True

    def _hear(self, event: Event) -> None:
        self.state = after(self.state, event)


PROCESS: ContextVar[SimulatedProcess | None] = ContextVar("PROCESS", default=None)
