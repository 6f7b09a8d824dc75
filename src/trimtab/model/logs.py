"""The logger of the whole project. structlog is loaded at the first event: a quiet server starts without it.

Tracebacks never show local variables: those hold request bodies, and so secrets.
"""

from __future__ import annotations

import sys
from typing import Any

as_json: bool | None = None
"""Whether to log JSON; None: unless standard error is a terminal."""


class Log:
    """`log.info("what happened", key=value)`, as structlog has it."""

    def __init__(self) -> None:
        self._logger: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._logger is None:
            self._logger = _configured()
        return getattr(self._logger, name)


log = Log()


def _configured() -> Any:
    import structlog

    from trimtab.model.redacted import redact

    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        redact,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    terminal = sys.stderr.isatty()
    if as_json is False or (as_json is None and terminal):
        console = structlog.dev.ConsoleRenderer(colors=terminal, exception_formatter=structlog.dev.plain_traceback)
        tail: list[Any] = [console]
    else:
        tail = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*shared, *tail],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    return structlog.get_logger()
