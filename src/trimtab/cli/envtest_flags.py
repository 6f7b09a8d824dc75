"""The command line of the stand-ins, as Go's pflag reads one: `--name=value`, `--name value`, and `--name` for truth.

What a stand-in does not know it ignores and says so: a test suite that sets a flag for some other version still runs.
What it knows and cannot do as told is an error that names the flag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

TRUE, FALSE = ("true", "t", "1", "T", "TRUE", "True"), ("false", "f", "0", "F", "FALSE", "False")
_DURATION = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class WrongFlag(Exception):  # noqa: N818 - it is shown to people, who know it is an error
    """A flag cannot be followed. The message names it."""


class Flag(NamedTuple):
    """One flag that is known. `about` is empty where it has no effect here, and none is expected."""

    kind: str  # str, bool, int, duration or list
    about: str = ""


class Parsed(NamedTuple):
    values: Mapping[str, tuple[str, ...]]
    """By name, as often as it was given."""
    unknown: tuple[str, ...] = ()

    def text(self, name: str, default: str = "") -> str:
        return self.values.get(name, (default,))[-1]

    def listed(self, name: str) -> tuple[str, ...]:
        given = (part.strip() for value in self.values.get(name, ()) for part in value.split(","))
        return tuple(part for part in given if part)

    def truth(self, name: str, default: bool) -> bool:
        return self.text(name, "true" if default else "false") in TRUE


def parse(words: Sequence[str], known: Mapping[str, Flag]) -> Parsed:
    """Raises WrongFlag for a value that a known flag cannot have, and for what is no flag at all."""
    values: dict[str, tuple[str, ...]] = {}
    unknown = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("-") or not name.strip("-"):
            raise WrongFlag(f'unexpected argument "{word}"')
        flag = known.get(name) if word.startswith("--") else None
        if flag is None:
            unknown.append(word.partition("=")[0])
            if not equals and left and not left[0].startswith("-"):
                left.pop(0)  # its value
            continue
        if not equals:
            if flag.kind == "bool":
                value = "true"
            elif not left:
                raise WrongFlag(f"flag needs an argument: --{name}")
            else:
                value = left.pop(0)
        _check(name, flag.kind, value)
        values[name] = (*values.get(name, ()), value)
    return Parsed(values, tuple(unknown))


def seconds(text: str) -> float:
    """A duration as Go writes it: `1h0m0s`. ValueError when it is none."""
    if text == "0":
        return 0.0
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f'"{text}" is not a duration, as 1h or 90s')
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def usage(program: str, about: str, known: Mapping[str, Flag]) -> str:
    """What `--help` prints. envtest looks in it for the flags that it may use."""
    lines = [about, "", "Usage:", f"  {program} [flags]", "", "Flags:"]
    for name, flag in sorted(known.items()):
        left = f"      --{name}" + ("" if flag.kind == "bool" else f" {_NAMES[flag.kind]}")
        lines.append(f"{left:<55} {flag.about or 'Accepted; there is nothing here that it would change.'}")
    return "\n".join(lines)


_NAMES = {"str": "string", "int": "int", "duration": "duration", "list": "strings"}


def _check(name: str, kind: str, value: str) -> None:
    wrong = f'invalid argument "{value}" for "--{name}" flag: '
    if kind == "bool" and value not in (*TRUE, *FALSE):
        raise WrongFlag(wrong + "must be true or false")
    if kind == "int" and not re.fullmatch(r"-?\d{1,9}", value):
        raise WrongFlag(wrong + "must be a whole number")
    if kind == "duration":
        try:
            seconds(value)
        except ValueError as error:
            raise WrongFlag(wrong + str(error)) from None
