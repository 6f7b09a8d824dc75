"""Reads documents whose fields nobody has checked, and notes what it does not understand.

A field that nobody read is a problem, too: `rest` reports it. So nothing that a user wrote is dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.model.duration import nanoseconds

Document = dict[str, Any]

ITEMS = 1000
TEXT = 16384
UINT32 = 2**32 - 1


class Problem(msgspec.Struct, frozen=True):
    """What is wrong, and where. One that is no error leaves the rest as good as it is."""

    path: str
    text: str
    error: bool = True

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class Fields:
    """One mapping of a document. A field of the wrong type reads as absent, and is reported."""

    def __init__(self, value: Any, path: str, problems: list[Problem]) -> None:
        self.path, self.problems = path, problems
        self._read: set[str] = set()
        self._value: Document = {}
        if isinstance(value, dict):
            self._value = value
        elif value is not None:
            self.refuse("is no mapping")

    def __contains__(self, name: str) -> bool:
        return self._value.get(name) is not None

    def names(self) -> list[str]:
        """All fields, for a mapping whose keys are a user's."""
        self._read.update(self._value)
        return [name for name in self._value if isinstance(name, str)]

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def refuse(self, text: str, name: str = "") -> None:
        self._note(Problem(self.at(name) if name else self.path, text))

    def warn(self, text: str, name: str = "") -> None:
        self._note(Problem(self.at(name) if name else self.path, text, error=False))

    def _note(self, problem: Problem) -> None:
        if problem not in self.problems and len(self.problems) < 100:
            self.problems.append(problem)

    def rest(self) -> None:
        """Report what was not read."""
        for name, value in self._value.items():
            if name not in self._read and value is not None:
                self.refuse("is not known here", str(name)[:80])

    def ignore(self, *names: str) -> None:
        """These mean nothing here, and nothing is lost by that."""
        self._read.update(names)

    def take(self, name: str) -> Any:
        self._read.add(name)
        return self._value.get(name)

    def text(self, name: str) -> str:
        """ "" when it is not there."""
        value = self.take(name)
        if value is None:
            return ""
        if isinstance(value, str) and len(value) <= TEXT and "\0" not in value:
            return value
        self.refuse("is no text of a sensible length", name)
        return ""

    def flag(self, name: str) -> bool | None:
        value = self.take(name)
        if value is None or isinstance(value, bool):
            return value
        self.refuse("is neither true nor false", name)
        return None

    def number(self, name: str, low: int = 0, high: int = UINT32) -> int | None:
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.refuse(f"is no whole number from {low} to {high}", name)
            return None
        return value

    def share(self, name: str) -> float | None:
        """A part of a hundred."""
        value = self.take(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
            self.refuse("is no number from 0 to 100", name)
            return None
        return float(value)

    def seconds(self, name: str) -> str:
        """A duration as Envoy reads it, "" when it is not there."""
        text = self.text(name)
        if not text:
            return ""
        try:
            length = nanoseconds(text)
        except ValueError:
            self.refuse(f"{text[:40]!r} is no duration such as 10s or 1m30s", name)
            return ""
        if not 0 <= length <= 100 * 365 * 86400 * 10**9:
            self.refuse(f"{text[:40]!r} is no time that can be waited for", name)
            return ""
        return f"{length // 10**9}.{length % 10**9:09d}".rstrip("0").rstrip(".") + "s"

    def part(self, name: str) -> Fields:
        """A mapping below; an empty one when it is not there."""
        return Fields(self.take(name), self.at(name), self.problems)

    def parts(self, name: str) -> list[Fields]:
        return [Fields(each, f"{self.at(name)}[{i}]", self.problems) for i, each in enumerate(self._list(name))]

    def texts(self, name: str) -> list[str]:
        found = []
        for index, each in enumerate(self._list(name)):
            if isinstance(each, str) and 0 < len(each) <= TEXT and "\0" not in each:
                found.append(each)
            else:
                self.refuse("is no text of a sensible length", f"{name}[{index}]")
        return found

    def _list(self, name: str) -> Sequence[Any]:
        value = self.take(name)
        if value is None:
            return ()
        if not isinstance(value, list) or len(value) > ITEMS:
            self.refuse(f"is no list of at most {ITEMS} items", name)
            return ()
        return value


def string_match(fields: Fields, *, ignore_case: bool = False) -> Document | None:
    """Istio's StringMatch as Envoy's StringMatcher; None when there is none, which means: it is there."""
    given = [name for name in ("exact", "prefix", "regex") if name in fields]
    if len(given) > 1:
        fields.refuse(f"has {' and '.join(given)}: only one can hold")
    found: Document | None = None
    for name in ("exact", "prefix", "regex"):
        text = fields.text(name)
        if name not in given[:1]:
            continue
        if name == "regex":
            found = {"safe_regex": {"regex": ("(?i)" if ignore_case else "") + checked_regex(fields, name, text)}}
        elif name == "prefix" and not text:
            found = None  # everything begins with nothing
        else:
            found = {name: text, **({"ignore_case": True} if ignore_case else {})}
    fields.rest()
    return found


def checked_regex(fields: Fields, name: str, text: str) -> str:
    """The pattern, which must be one that Envoy's engine takes."""
    import re2

    if not text:
        fields.refuse("is an empty pattern", name)
        return ".*"
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        re2.compile(text, options)
    except re2.error as error:
        fields.refuse(f"is no RE2 pattern: {str(error)[:200]}", name)
        return ".*"
    return text


TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
"""RFC 9110, 5.6.2."""
