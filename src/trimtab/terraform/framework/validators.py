"""Validators of one value: its length, its form, its range.

They see known values only: what is null is the schema's matter, what is unknown is validated once it is known. A validator
returns the rule that is broken, as words that follow the attribute's name, or None; the value itself is added to them where
it is no secret.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trimtab.terraform.framework.paths import ROOT, Path
from trimtab.terraform.framework.values import UNKNOWN

Fault = tuple[Path, str, Any]
"""Where, below the value; the rule; the value that breaks it."""


class Validator(ABC):
    @abstractmethod
    def fault(self, value: Any) -> str | None:
        """The rule that a value, neither null nor unknown, breaks: "must be …"."""

    def faults(self, value: Any) -> Iterator[Fault]:
        text = self.fault(value)
        if text is not None:
            yield ROOT, text, value


@dataclass(frozen=True, slots=True)
class Length(Validator):
    """Of a string in characters, of a collection in elements."""

    least: int = 0
    most: int | None = None

    def fault(self, value: Any) -> str | None:
        unit = "characters" if isinstance(value, str) else "elements"
        if len(value) < self.least:
            return f"must have at least {self.least} {unit}"
        if self.most is not None and len(value) > self.most:
            return f"must have at most {self.most} {unit}"
        return None


class OneOf(Validator):
    def __init__(self, *choices: Any) -> None:
        self.choices = choices

    def fault(self, value: Any) -> str | None:
        if any(type(value) is type(choice) and value == choice for choice in self.choices):
            return None
        return f"must be one of {', '.join(map(shown, self.choices))}"


class Matches(Validator):
    """A regular expression that the whole string must match."""

    def __init__(self, pattern: str, description: str = "") -> None:
        self.pattern = re.compile(pattern)
        self.description = description

    def fault(self, value: Any) -> str | None:
        if self.pattern.fullmatch(value):
            return None
        return f"must {self.description or f'match {self.pattern.pattern}'}"


@dataclass(frozen=True, slots=True)
class Between(Validator):
    """A number in a closed range; None is an open end."""

    least: float | None = None
    most: float | None = None

    def fault(self, value: Any) -> str | None:
        if self.least is not None and value < self.least:
            return f"must be at least {self.least}"
        if self.most is not None and value > self.most:
            return f"must be at most {self.most}"
        return None


@dataclass(frozen=True, slots=True)
class Satisfies(Validator):
    """Any condition, with the words for when it does not hold: "must be …"."""

    condition: Callable[[Any], bool]
    text: str

    def fault(self, value: Any) -> str | None:
        return None if self.condition(value) else self.text


class Unique(Validator):
    """No element of the list twice."""

    def fault(self, value: Any) -> str | None:
        for at, element in enumerate(value):
            if element is not UNKNOWN and element in value[:at]:
                return "must not hold an element twice"
        return None


class Each(Validator):
    """Validators for every element of a list, a set or a map."""

    def __init__(self, *validators: Validator) -> None:
        self.validators = validators

    def fault(self, value: Any) -> str | None:
        return next((text for _, text, _ in self.faults(value)), None)

    def faults(self, value: Any) -> Iterator[Fault]:
        for step, element in _elements(value):
            for where, text, broken in check(self.validators, element):
                yield step.join(where), text, broken


class Keys(Validator):
    """Validators for every key of a map."""

    def __init__(self, *validators: Validator) -> None:
        self.validators = validators

    def fault(self, value: Any) -> str | None:
        return next((text for _, text, _ in self.faults(value)), None)

    def faults(self, value: Any) -> Iterator[Fault]:
        for key in value:
            for validator in self.validators:
                text = validator.fault(key)
                if text is not None:
                    yield ROOT.key(key), f"has a key that {text}", key


def _elements(value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        yield from ((ROOT.key(key), element) for key, element in value.items())
    else:
        yield from ((ROOT.index(at), element) for at, element in enumerate(value))


def check(validators: tuple[Validator, ...], value: Any) -> Iterator[Fault]:
    """What all of them say of a value that may be null or unknown."""
    if value is not None and value is not UNKNOWN:
        for validator in validators:
            yield from validator.faults(value)


def shown(value: Any) -> str:
    """As a user would write it, shortened."""
    text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
