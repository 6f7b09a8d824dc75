"""What was found, in the words of a Kubernetes API server. Bounded: a body made of mistakes costs no more than a few."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any

from trimtab.model.errors import Bare, FieldError, FieldProblem
from trimtab.systems.rest.syncing.paths import Path, format_path

MOST = 100
LONGEST = 64


class Found:
    """Errors and warnings, in the order of the spec."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []

    @property
    def full(self) -> bool:
        return len(self.errors) >= MOST

    def forbid(self, path: Path, detail: str) -> None:
        """Without the value: it may be a secret, or large."""
        self._add(FieldError(format_path(path), FieldProblem.FORBIDDEN, None, detail))

    def require(self, path: Path, detail: str = "") -> None:
        self._add(FieldError(format_path(path), FieldProblem.REQUIRED, None, detail))

    def duplicate(self, path: Path, value: Any) -> None:
        self._add(FieldError(format_path(path), FieldProblem.DUPLICATE, _shown(value)))

    def wrong(self, path: Path, value: Any, detail: str, *, silent: bool = False) -> None:
        """With the value, unless it must not be shown."""
        if silent:
            self.forbid(path, detail)
            return
        self._add(FieldError(format_path(path), FieldProblem.INVALID, _shown(value), detail))

    def mistyped(self, path: Path, value: Any, detail: str) -> None:
        """With the type of the value, which tells enough."""
        self._add(FieldError(format_path(path), FieldProblem.TYPE_INVALID, type_of(value), detail))

    def warn(self, path: Path, text: str) -> None:
        if len(self.warnings) < MOST:
            self.warnings.append(f"{format_path(path)}: {text}")

    def _add(self, error: FieldError) -> None:
        if not self.full:
            self.errors.append(error)


def _shown(value: Any) -> Any:
    """Short, and a structure as its writer knows it."""
    if isinstance(value, dict | list):
        return Bare(_cut(json.dumps(value, ensure_ascii=False)))
    return _cut(value) if isinstance(value, str) else value


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def type_of(value: Any) -> str:
    """As JSON Schema calls it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def meant(given: str, known: Iterable[str]) -> str:
    """`did you mean "capacity"?`, or "" when nothing is near. Case is the most common mistake."""
    names = list(known)
    close = next((name for name in names if name.casefold() == given.casefold()), None)
    if close is None:
        near = difflib.get_close_matches(given[:LONGEST], names, n=1, cutoff=0.6)
        close = near[0] if near else None
    return "" if close is None else f"did you mean {json.dumps(close)}?"


def listed(values: Iterable[Any], most: int = 16) -> str:
    """`"a", "b"`."""
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")
