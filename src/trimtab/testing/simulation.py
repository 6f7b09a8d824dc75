"""Controllers under hundreds of random schedules, each of which its seed repeats.

    @simulate(schedules=200)
    async def test_every_widget_gets_its_config_map(world: World) -> None:
        ...

Each schedule is the test's coroutine on a `World` of its own: another order of steps, other faults, other crashes. A schedule
that fails tells its seed and its story; `TRIMTAB_SEED=17 pytest …` runs that one alone, and it takes the same steps again.
`TRIMTAB_SCHEDULES=5000` runs more than the test asks for.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec

import msgspec

from trimtab.testing.loop import DAY, SimulatedLoop
from trimtab.testing.sealed import sealed
from trimtab.testing.watchdog import Watchdog
from trimtab.testing.world import STORM, Weather, World

P = ParamSpec("P")
LINES = 60


class Outcome(msgspec.Struct, frozen=True):
    """What became of one schedule."""

    seed: int | str
    fingerprint: str
    """Equal when two runs took the same steps."""
    story: tuple[str, ...]
    trace: tuple[str, ...]
    error: BaseException | None = None


class Simulation:
    """One schedule."""

    def __init__(self, seed: int | str, *, weather: Weather = STORM, longest: float = DAY, trace: bool = False) -> None:
        self.seed = seed
        self.weather = weather
        self._longest = longest
        self._trace = trace

    def run(self, test: Callable[[World], Awaitable[None]]) -> Outcome:
        """Run the test in it. A failure is in the outcome; nothing is raised but what ends programs."""
        loop = SimulatedLoop(self.seed, longest=self._longest, trace=self._trace)
        log = _Log()
        error: BaseException | None = None
        with sealed(self.seed, log), Watchdog(loop):
            try:
                loop.run_until_complete(self._lived(test, log))
            except Exception as raised:
                error = raised
            fingerprint, trace = loop.fingerprint, tuple(loop.trace or ())
            story = tuple(log.world.story) if log.world is not None else ()
            loop.clear_away()
        return Outcome(self.seed, fingerprint, story, trace, error)

    async def _lived(self, test: Callable[[World], Awaitable[None]], log: _Log) -> None:
        world = log.world = World(self.seed, self.weather)
        await world.open()
        await test(world)


def replay(seed: int | str, test: Callable[[World], Awaitable[None]], *, weather: Weather = STORM) -> Outcome:
    """Run one schedule with a trace of its steps."""
    return Simulation(seed, weather=weather, trace=True).run(test)


def simulate(
    schedules: int = 100, *, weather: Weather = STORM
) -> Callable[[Callable[Concatenate[World, P], Awaitable[None]]], Callable[P, None]]:
    """Make a test of a coroutine: it passes when all schedules do. Arguments after the world are the test's fixtures."""

    def decorate(test: Callable[Concatenate[World, P], Awaitable[None]]) -> Callable[P, None]:
        def run(*args: P.args, **options: P.kwargs) -> None:
            async def once(world: World) -> None:
                await test(world, *args, **options)

            for seed in _seeds(schedules):
                outcome = Simulation(seed, weather=weather).run(once)
                if outcome.error is not None:
                    again = Simulation(seed, weather=weather).run(once)
                    _explain(outcome, again)
                    raise outcome.error

        signature = inspect.signature(test)
        run.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
        run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
        run.__module__ = test.__module__
        run.test = test  # type: ignore[attr-defined]
        return run

    return decorate


def _seeds(schedules: int) -> list[int]:
    chosen = os.environ.get("TRIMTAB_SEED")
    if chosen:
        return [int(chosen)]
    return list(range(max(schedules, int(os.environ.get("TRIMTAB_SCHEDULES", "0")))))


def _explain(outcome: Outcome, again: Outcome) -> None:
    error = outcome.error
    if error is None:
        return
    skipped = len(outcome.story) - LINES
    error.add_note(
        "".join(f"{line}\n" for line in (*([f"… {skipped} lines"] if skipped > 0 else ()), *outcome.story[-LINES:]))
    )
    if again.fingerprint == outcome.fingerprint:
        error.add_note(f"schedule {outcome.seed} failed; TRIMTAB_SEED={outcome.seed} repeats it step by step")
    else:
        error.add_note(
            f"schedule {outcome.seed} failed, and a second run of it went another way ({outcome.fingerprint}, then "
            f"{again.fingerprint}): something takes time or randomness from outside, or walks through a set"
        )


class _Log:
    """The project's log, as lines of the story."""

    def __init__(self) -> None:
        self.world: World | None = None
        self._bound: dict[str, Any] = {}

    def bind(self, **values: Any) -> _Log:
        bound = _Log()
        bound.world, bound._bound = self.world, {**self._bound, **values}
        return bound

    new = bind

    def __getattr__(self, level: str) -> Callable[..., None]:
        def say(event: str = "", **values: Any) -> None:
            if self.world is None or level == "debug":
                return
            told = {**self._bound, **values}
            raised = told.pop("exc_info", None) or (sys.exc_info()[1] if level == "exception" else None)
            if isinstance(raised, BaseException):
                told["raised"] = f"{raised!r} {_where(raised)}"
            self.world.note(f"{level}: {event} " + " ".join(f"{name}={value}" for name, value in told.items()))

        return say


def _where(raised: BaseException) -> str:
    frames = traceback.extract_tb(raised.__traceback__)[-3:]
    return " > ".join(f"{frame.name} {os.path.basename(frame.filename)}:{frame.lineno}" for frame in frames)
