"""What can go wrong with an expression: at compilation, at evaluation, or because it costs too much.

`EvaluationError` is a value in CEL's eyes: `&&`, `||` and `all` may absorb it. `CostExceeded` is never absorbed.
"""

from __future__ import annotations

import msgspec

_SHOWN_ISSUES = 100
_SNIPPET_LENGTH = 16384


class Issue(msgspec.Struct, frozen=True):
    """One problem of an expression. `line` counts from 1, `column` from 0; both are -1 when there is no place."""

    line: int
    column: int
    message: str


class CelError(Exception):
    """An expression that does not compile. `report` lists the issues as cel-go prints them."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.issues = sorted(issues, key=lambda issue: (issue.line, issue.column))
        self.report = _report(source, self.issues)
        self.message = f"compilation failed: {self.report}"
        super().__init__(self.message)


class InstantiationError(CelError):
    """An expression whose constants already fail: `int('x')`, or a pattern that is none."""

    def __init__(self, reason: str) -> None:
        super().__init__("", [])
        self.report = reason
        self.message = f"program instantiation failed: {reason}"
        self.args = (self.message,)


class EvaluationError(Exception):
    """An error value: no such key, overflow, division by zero, no such overload."""


class CostExceeded(Exception):  # noqa: N818 - it is a limit, not an error of the expression
    """An evaluation that passed the limit of a call."""

    def __init__(self, message: str = "operation cancelled: actual cost limit exceeded") -> None:
        super().__init__(message)


class NoSuchOverload(EvaluationError):  # noqa: N818 - the name that cel-go gives it
    """A function that has no meaning for the values it was given, which only dynamic types let happen."""


def no_such_overload() -> NoSuchOverload:
    return NoSuchOverload("no such overload")


def _report(source: str, issues: list[Issue]) -> str:
    lines = source.split("\n")
    shown = [_display(issue, lines) for issue in issues[:_SHOWN_ISSUES]]
    if len(issues) > _SHOWN_ISSUES:
        shown.append(f"{len(issues) - _SHOWN_ISSUES} more errors were truncated")
    return "\n".join(shown)


def _display(issue: Issue, lines: list[str]) -> str:
    text = f"ERROR: <input>:{issue.line}:{issue.column + 1}: {issue.message}"
    if not 1 <= issue.line <= len(lines):
        return text
    snippet = lines[issue.line - 1].replace("\t", " ")
    if len(snippet.encode()) > _SNIPPET_LENGTH:
        return text
    # Wide characters are pointed at with wide dots, so that the mark stands under the right place.
    dots = "".join("." if ord(char) < 128 else "\uff0e" for char in snippet[: max(issue.column, 0)])
    mark = "^" if issue.column >= len(snippet) or ord(snippet[issue.column]) < 128 else "\uff3e"
    return f"{text}\n | {snippet}\n | {dots}{mark}"
