"""What a provider tells its user: errors and warnings, with the place in the configuration that they are about."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from trimtab.terraform.framework import paths
from trimtab.terraform.framework.paths import Path

ERROR = 1
WARNING = 2
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
"""What a terminal obeys rather than shows (C0 and C1), but for the newline. Servers and configurations may hold it."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    severity: int
    summary: str
    detail: str = ""
    path: Path | None = None

    def message(self) -> dict[str, Any]:
        """The protocol's Diagnostic."""
        message: dict[str, Any] = {
            "severity": self.severity,
            "summary": _escaped(self.summary),
            "detail": _escaped(self.detail),
        }
        if self.path is not None and self.path.steps:
            message["attribute"] = self.path.message()
        return message


class Failed(Exception):  # noqa: N818 - it is what happened to the operation
    """The operation cannot go on. What was saved before stays saved."""

    def __init__(self, summary: str, detail: str = "", path: str | Path | None = None) -> None:
        super().__init__(f"{summary}: {detail}" if detail else summary)
        self.diagnostic = Diagnostic(ERROR, summary, detail, _place(path))


@dataclass(slots=True)
class Diagnostics:
    """Collects: an operation may tell many things before it ends."""

    items: list[Diagnostic] = field(default_factory=list)

    def error(self, summary: str, detail: str = "", path: str | Path | None = None) -> None:
        self.items.append(Diagnostic(ERROR, summary, detail, _place(path)))

    def warning(self, summary: str, detail: str = "", path: str | Path | None = None) -> None:
        self.items.append(Diagnostic(WARNING, summary, detail, _place(path)))

    def failed(self) -> bool:
        return any(item.severity == ERROR for item in self.items)

    def messages(self) -> list[dict[str, Any]]:
        return [item.message() for item in self.items]


def _place(path: str | Path | None) -> Path | None:
    return None if path is None else paths.path(path)


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
