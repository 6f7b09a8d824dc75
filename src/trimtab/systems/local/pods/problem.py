"""Why a container cannot be started now."""

from __future__ import annotations


class CannotStart(Exception):  # noqa: N818 - it reads as what happened
    """`reason` is a word as `kubectl get pods` shows it; the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


CONFIG = "CreateContainerConfigError"
