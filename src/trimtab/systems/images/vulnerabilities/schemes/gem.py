"""RubyGems versions, as Gem::Version orders them.

Segments are numbers and words; a word is a pre-release, so it sorts before numbers. Zeros at the end, and those just
before the first word, do not count; the shorter of two versions goes on with zeros. A hyphen stands for `.pre.`.
"""

from __future__ import annotations

import functools
import itertools
import re

Segment = tuple[int, int | str]


@functools.total_ordering
class Key:
    """Sorts as the version does; it goes on with zeros for ever, which no plain tuple does."""

    __slots__ = ("segments",)

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        self.segments = segments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.segments == other.segments

    def __lt__(self, other: Key) -> bool:
        for one, two in itertools.zip_longest(self.segments, other.segments, fillvalue=_ZERO):
            if one != two:
                return one < two
        return False

    __hash__ = None  # type: ignore[assignment]


def key(version: str) -> Key:
    text = version.strip()
    if not _VERSION.fullmatch(text):
        raise ValueError("no RubyGems version: digits, letters, dots and hyphens, with a number first")
    segments: list[Segment] = [
        (1, int(part)) if part[0] in "0123456789" else (0, part)
        for part in _SEGMENT.findall(text.replace("-", ".pre."))
    ]
    words = next((i for i, segment in enumerate(segments) if segment[0] == 0), len(segments))
    return Key((*_without_zeros(segments[:words]), *_without_zeros(segments[words:])))


def _without_zeros(segments: list[Segment]) -> list[Segment]:
    end = len(segments)
    while end and segments[end - 1] == _ZERO:
        end -= 1
    return segments[:end]


_ZERO: Segment = (1, 0)
_VERSION = re.compile(r"[0-9]+(?:\.[0-9A-Za-z]+)*(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?")
_SEGMENT = re.compile(r"[0-9]+|[A-Za-z]+")
