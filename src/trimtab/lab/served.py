"""A real server as one process of the lab: it runs from construction until `stop`, and answers when that returns."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from trimtab.testing.processes import PeerFailed, Process


class Served:
    """Base of those servers. Their constructors end with `_begin`."""

    pid: int
    _process: Process

    def _begin(self, process: Process, ready: Callable[[], bool], *, within: float) -> None:
        """Wait until it answers. One that does not is ended: PeerFailed."""
        self._process, self.pid = process, process.pid
        try:
            process.wait_until(ready, within=within)
        except PeerFailed:
            self.stop()
            raise

    def stop(self) -> None:
        self._process.stop()

    def kill(self) -> None:
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
