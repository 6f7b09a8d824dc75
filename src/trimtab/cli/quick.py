"""`trimtab up` past the parser of the command line, which brings in pydantic: 70 ms, and 10 MB that a server would carry for
its whole life. Options, types and defaults are those of the command in `commands_running`; whatever is not plain is left to
the parser.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

READERS: dict[Any, Callable[[str], Any]] = {Path: Path, int: int, str: str}


def run(command: Callable[..., None], words: Sequence[str]) -> None:
    """Exit as the command does; return when there is something to explain: help, a mistake, an option of another kind."""
    given = arguments(command, words)
    if given is None:
        return
    try:
        command(**given)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except typer.BadParameter:
        return


def arguments(command: Callable[..., None], words: Sequence[str]) -> dict[str, Any] | None:
    """The arguments that these words mean; None when they are not plainly `--option value` or `--option=value`."""
    hints = get_type_hints(command, include_extras=True)
    given: dict[str, Any] = {}
    for name in inspect.signature(command).parameters:
        variable = getattr(_option(hints[name]), "envvar", None)
        if isinstance(variable, str) and os.environ.get(variable):
            given[name] = _read(hints[name], os.environ[variable])
    left = list(words)
    while left:
        word, equals, value = left.pop(0).partition("=")
        name = word.removeprefix("--").replace("-", "_")
        if not word.startswith("--") or name not in hints or (not equals and not left):
            return None
        value = value if equals else left.pop(0)
        if (read := _read(hints[name], value)) is None:
            return None
        given[name] = [*given.get(name, ()), *read] if isinstance(read, list) else read
    return None if any(value is None for value in given.values()) else given


def _option(hint: Any) -> Any:
    return next((extra for extra in get_args(hint)[1:] if hasattr(extra, "envvar")), None)


def _read(hint: Any, text: str) -> Any:
    """The value of a text; None for types that are the parser's."""
    kind = get_args(hint)[0]
    if list[str] in (kind, *get_args(kind)):
        return [text]
    reader = READERS.get(kind)
    try:
        return reader(text) if reader is not None and not text.startswith("-") else None
    except ValueError:
        return None
