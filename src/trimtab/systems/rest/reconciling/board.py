"""Who waits for whom, within this process: an object that needs another's ID is woken when that one has it, or has
another.

It only saves waiting: whoever waits also looks again by itself after a while. Each turn says anew for whom it waits, so
nothing is left of objects that are gone, or of references that a spec no longer has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trimtab.runtime.changes import Request

Wake = Callable[[Request], None]


class Wanted(NamedTuple):
    """An object, or with kind "Secret" a Secret."""

    kind: str
    namespace: str
    name: str


class Board:
    def __init__(self) -> None:
        self._waiting: dict[Wanted, dict[tuple[Wake, Request], None]] = {}
        self._wants: dict[tuple[Wake, Request], set[Wanted]] = {}

    def __len__(self) -> int:
        """How many wait for something."""
        return len(self._wants)

    def wait(self, wanted: Wanted, wake: Wake, request: Request) -> None:
        self._waiting.setdefault(wanted, {})[wake, request] = None
        self._wants.setdefault((wake, request), set()).add(wanted)

    def tell(self, wanted: Wanted) -> None:
        """It is there, or it changed, or it is gone."""
        for wake, request in self._waiting.pop(wanted, ()):
            self._unwant((wake, request), wanted)
            wake(request)

    def leave(self, wake: Wake, request: Request) -> None:
        """One waits for nothing any more."""
        for wanted in self._wants.pop((wake, request), ()):
            waiting = self._waiting[wanted]
            del waiting[wake, request]
            if not waiting:
                del self._waiting[wanted]

    def forget(self, wake: Wake) -> None:
        """A controller ends."""
        for who in [who for who in self._wants if who[0] == wake]:
            self.leave(*who)

    def _unwant(self, who: tuple[Wake, Request], wanted: Wanted) -> None:
        wants = self._wants[who]
        wants.discard(wanted)
        if not wants:
            del self._wants[who]
