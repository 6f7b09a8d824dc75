"""Prometheus' text format, as far as samples go (version 0.0.4). Pure, and bounded by what it is given.

Comments, types and help are passed over; so is the time of a sample, for it is of the moment when it was scraped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_LABELS = 64


class Malformed(ValueError):  # noqa: N818 - it reads as what happened
    """A line that is no sample. The text shows its beginning."""


def samples(text: str, names: frozenset[str] | None = None) -> Iterator[tuple[str, float]]:
    """Each series as it is written, with its value; only of these metrics where some are named. A page that is something
    else is refused, for it would look like one without metrics."""
    for line in text.split("\n"):
        found = sample(line)
        if found is not None and (names is None or named(found[0]) in names):
            yield found


def sample(line: str) -> tuple[str, float] | None:
    """The series as it is written, and its value; None for what is no sample and need not be one."""
    line = line.strip()
    if not line or line[0] == "#":
        return None
    series, rest = _split(line)
    return series, _number(rest, line)


def named(series: str) -> str:
    """The metric of a series as it is written."""
    return series.partition("{")[0].rstrip()


def parsed(series: str) -> tuple[str, dict[str, str]]:
    """Name and labels of a series as it is written."""
    name, brace, rest = series.partition("{")
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise _malformed(series)
    if not brace:
        return name, {}
    if not rest.endswith("}"):
        raise _malformed(series)
    labels: dict[str, str] = {}
    place, end = 0, len(rest) - 1
    while place < end:
        found = _LABEL.match(rest, place, end)
        if found is None or len(labels) >= MOST_LABELS:
            if not rest[place:end].strip():
                break
            raise _malformed(series)
        label, value = found.groups()
        labels[label] = _ESCAPED.sub(_unescaped, value) if "\\" in value else value
        place = found.end()
    return name, labels


def _split(line: str) -> tuple[str, str]:
    """The series, and what follows it. A brace within a label is before the last one."""
    end = line.rfind("}")
    if end >= 0:
        return line[: end + 1], line[end + 1 :]
    name, _, rest = line.replace("\t", " ").partition(" ")
    return name, rest


def _number(text: str, line: str) -> float:
    words = text.split()
    if not 1 <= len(words) <= 2 or "_" in words[0]:
        raise _malformed(line)
    try:
        return float(words[0])
    except ValueError:
        raise _malformed(line) from None


def _malformed(line: str) -> Malformed:
    return Malformed(f"{line[:80]!r} is no sample in Prometheus' text format")


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n", '"': '"', "\\": "\\"}.get(found[1], found[0])


_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
