"""Who waits for whom, within this process: an object that needs another's ID is woken when that one has it.

It only saves waiting: whoever waits also looks again by itself after a while.
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

    def wait(self, wanted: Wanted, wake: Wake, request: Request) -> None:
        self._waiting.setdefault(wanted, {})[wake, request] = None

    def tell(self, wanted: Wanted) -> None:
        """It is there, or it changed."""
        for wake, request in self._waiting.pop(wanted, ()):
            wake(request)

    def forget(self, wake: Wake) -> None:
        """A controller ends."""
        for wanted, waiting in list(self._waiting.items()):
            kept = {who: None for who in waiting if who[0] != wake}
            if kept:
                self._waiting[wanted] = kept
            else:
                del self._waiting[wanted]
