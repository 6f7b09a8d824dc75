"""What a walk finds wrong, before its path is known.

A check sees a value and not where it is. It returns None or findings; each container on the way up adds a step to them.
Thus a valid object costs no path at all, and the messages, which repeat the path, are written at the end.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.schema.gotext import number, quoted


class Stage(enum.IntEnum):
    """The real server checks an object in these passes; errors come in this order."""

    SCHEMA = 0
    EMBEDDED = 1
    LIST_TYPE = 2
    UNKNOWN = 3


class MapKey(str):
    """A step through `additionalProperties`."""

    __slots__ = ()


Step = str | int
MAX_ERRORS = 2000
T = TypeVar("T")


class Finding:
    """One thing wrong, some steps below the value that was checked."""

    __slots__ = ("stage", "steps", "write")

    def __init__(self, stage: Stage, write: Callable[[str], FieldError], steps: Iterable[Step] = ()) -> None:
        self.stage = stage
        self.write = write
        self.steps: list[Step] = list(steps)  # the innermost first


Found = list[Finding] | None
Check = Callable[[Any], Found]


def above(found: list[Finding], step: Step, into: Found) -> list[Finding]:
    """Move findings of a child to its parent's list."""
    for finding in found:
        finding.steps.append(step)
    if into is None:
        return found
    into.extend(found)
    return into


def added(items: list[T] | None, item: T) -> list[T]:
    """The list with one more; made when first needed, because a valid object needs none."""
    if items is None:
        return [item]
    items.append(item)
    return items


def errors(found: Sequence[Finding]) -> list[FieldError]:
    """The errors, each once, pass by pass. To write more than so many would take seconds, and nobody reads them."""
    wrong = sorted((f for f in found if f.stage is not Stage.UNKNOWN), key=lambda f: f.stage)
    written: dict[str, FieldError] = {}
    for finding in wrong[:MAX_ERRORS]:
        error = finding.write(_path(finding))
        written.setdefault(str(error), error)
    return list(written.values())


def unknown(found: Sequence[Finding]) -> list[str]:
    return sorted(_path(finding) for finding in found if finding.stage is Stage.UNKNOWN)


def _path(finding: Finding) -> str:
    path = ""
    for step in reversed(finding.steps):
        keyed = isinstance(step, MapKey) and finding.stage in (Stage.EMBEDDED, Stage.LIST_TYPE)
        if isinstance(step, int) or keyed:
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path


def wrong_type(expected: str, actual: str) -> Finding:
    def write(path: str) -> FieldError:
        detail = f"{path} in body must be of type {expected}: {quoted(actual)}"
        return FieldError(path or "<nil>", FieldProblem.TYPE_INVALID, actual, detail)

    return Finding(Stage.SCHEMA, write)


def invalid(value: Any, complaint: str) -> Finding:
    """`spec.x in body <complaint>`."""

    def write(path: str) -> FieldError:
        return FieldError(path or "<nil>", FieldProblem.INVALID, value, f"{path} in body {complaint}")

    return Finding(Stage.SCHEMA, write)


def composite(complaint: str) -> Finding:
    """Complaints of anyOf, oneOf, allOf and not name the path in the text only."""

    def write(path: str) -> FieldError:
        return FieldError("<nil>", FieldProblem.INVALID, "", f"{quoted(path)} {complaint}")

    return Finding(Stage.SCHEMA, write)


def not_positive(factor: float) -> Finding:
    def write(path: str) -> FieldError:
        detail = f"factor MultipleOf declared for {path} must be positive: {number(factor)}"
        return FieldError(path or "<nil>", FieldProblem.INVALID, factor, detail)

    return Finding(Stage.SCHEMA, write)


def required(name: str) -> Finding:
    return Finding(Stage.SCHEMA, lambda path: FieldError(path, FieldProblem.REQUIRED, ""), [name])


def forbidden(name: str) -> Finding:
    """A field that `additionalProperties: false` of a combinator does not allow."""

    def write(path: str) -> FieldError:
        return FieldError(path or "<nil>", FieldProblem.INVALID, name, f"{path}.{name} in body is a forbidden property")

    return Finding(Stage.SCHEMA, write)


def unsupported(value: Any, detail: str) -> Finding:
    return Finding(Stage.SCHEMA, lambda path: FieldError(path or "<nil>", FieldProblem.UNSUPPORTED, value, detail))


def too_long(most: int) -> Finding:
    detail = f"may not be more than {most} bytes"
    return Finding(Stage.SCHEMA, lambda path: FieldError(path or "<nil>", FieldProblem.TOO_LONG, None, detail))


def too_many(size: int, most: int) -> Finding:
    detail = f"must have at most {most} items"
    return Finding(Stage.SCHEMA, lambda path: FieldError(path or "<nil>", FieldProblem.TOO_MANY, size, detail))


def duplicate(index: int, value: Any) -> Finding:
    return Finding(Stage.LIST_TYPE, lambda path: FieldError(path, FieldProblem.DUPLICATE, value), [index])


def pruned(name: str) -> Finding:
    return Finding(Stage.UNKNOWN, lambda path: FieldError(path, FieldProblem.INVALID), [name])
