"""Logs: one line an event, for people on a terminal and as JSON for machines. Tracebacks never show local variables:
those hold request bodies, and so secrets.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure(*, json: bool | None = None, level: int = logging.INFO) -> None:
    """Log to standard error. By default JSON unless it is a terminal."""
    chosen = _preferred if json is None else json
    as_json = not sys.stderr.isatty() if chosen is None else chosen
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    if as_json:
        tail: list[Any] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        tail = [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    structlog.configure(
        processors=[*shared, *tail],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def prefer(json: bool | None) -> None:
    """What `configure` does when it is not told: JSON, text, or whichever suits standard error."""
    global _preferred
    _preferred = json


_preferred: bool | None = None
