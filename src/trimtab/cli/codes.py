"""Exit codes, and failures in one line: scripts read the first, people the second. Nobody gets a traceback."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any

OK, FAILED, USAGE, NOT_FOUND, REFUSED, TIMED_OUT, INTERRUPTED = 0, 1, 2, 3, 4, 124, 130


class Problem(Exception):  # noqa: N818 - it is shown to people, who know it is an error
    """A failure of a command's own, with its exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def run(command: Coroutine[Any, Any, int]) -> int:
    """Run a command to its exit code; a failure becomes one line on standard error."""
    try:
        return asyncio.run(command)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:
        code, message = told(error)
        complain(message)
        return code


def told(error: Exception) -> tuple[int, str]:
    """The exit code and the line of a failure. What is not known here is a mistake of ours: $TRIMTAB_DEBUG shows where."""
    from trimtab.client.config import ConfigError
    from trimtab.client.transport import Silent, Unreachable
    from trimtab.model.errors import StatusError

    if isinstance(error, Problem):
        return error.code, str(error)
    if isinstance(error, StatusError):
        return code_of(error), error.message
    if isinstance(error, Unreachable):
        return FAILED, f"{error}; is it running? `trimtab up` starts a server"
    if isinstance(error, Silent):
        return TIMED_OUT, str(error)
    if isinstance(error, ConfigError | OSError):
        return FAILED, str(error)
    if os.environ.get("TRIMTAB_DEBUG"):
        raise error
    return FAILED, f"unexpected {type(error).__name__}: {error}; TRIMTAB_DEBUG=1 shows where"


def code_of(error: Any) -> int:
    """Of a StatusError."""
    if error.code == 404:
        return NOT_FOUND
    if error.code in (401, 403, 409):
        return REFUSED
    return TIMED_OUT if error.code == 504 else FAILED


def together(codes: list[int]) -> int:
    """One exit code for several parts: what all failures agree on, else 1."""
    failures = {code for code in codes if code}
    return OK if not failures else failures.pop() if len(failures) == 1 else FAILED


def complain(message: str) -> None:
    """One line, whatever a server put into its message."""
    print(f"error: {plain(' '.join(message.split()))}", file=sys.stderr, flush=True)


def plain(text: str) -> str:
    """Text of others for a terminal, which obeys control characters: none is let through."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def escaped(text: str) -> str:
    """The same, with control characters shown: names of files may have them, and are told apart by them."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
