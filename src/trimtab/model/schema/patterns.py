"""Regular expressions of users. Go's regexp and RE2 are one language; both run in linear time, whatever the pattern."""

from __future__ import annotations

from collections.abc import Callable

import re2

Matcher = Callable[[str], bool]


class BadPattern(ValueError):  # noqa: N818  it reads as what it is
    """RE2 refuses the pattern. The message is what Go says of it."""


def matcher(pattern: str) -> Matcher:
    """Whether the pattern is somewhere in a text. Raises `BadPattern`."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        search = re2.compile(pattern, options=options).search
    except re2.error as error:
        raise BadPattern(_in_go(error)) from None
    quick = _one_of_a_set(pattern, options)
    if quick is None:
        return lambda text: search(text) is not None
    # A set answers five times faster, but says no also when it runs out of memory.
    return lambda text: bool(quick(text)) or search(text) is not None


def _one_of_a_set(pattern: str, options: object) -> Callable[[str], list[int] | None] | None:
    try:
        patterns = re2.Set.SearchSet(options)
        patterns.Add(pattern)
        patterns.Compile()
    except re2.error:
        return None
    match: Callable[[str], list[int] | None] = patterns.Match
    return match


_IN_GO = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
}
"""What RE2 and Go's regexp say of the same mistake."""


def _in_go(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    said, _, where = text.partition(": ")
    return f"error parsing regexp: {_IN_GO.get(said, said)}: `{where}`"
