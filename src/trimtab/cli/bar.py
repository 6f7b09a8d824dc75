"""How far work has come: a bar on a terminal, and elsewhere a line now and then. On standard error, beside results."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

STEP = 0.1  # of the whole; a line for each where there is no terminal


class Bar:
    """From `with` to its end. Figures may come as often as they like."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._told: tuple[str, int] = ("", -1)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[note]}", markup=False),
            )
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.__enter__()
            self._task = self._progress.add_task(self._title, total=None, note="waiting")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.__exit__(kind, error, trace)

    def show(self, done: int, total: int | None = None, note: str = "") -> None:
        """So much is done, of so much as far as it is known."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=total, note=note)
            return
        step = int(done / total / STEP) if total else 0
        if (note, step) != self._told:
            self._told = (note, step)
            count = f"{done} of {total}" if total else str(done or "")
            self.note(": ".join(text for text in (count, note) if text))

    def note(self, text: str) -> None:
        """A line beside the bar."""
        line = f"{self._title}: {' '.join(text.split())}"
        if self._progress is not None:
            self._progress.console.print(line, markup=False, highlight=False)
        else:
            print(line, file=sys.stderr, flush=True)
