"""Alpine versions, as apk-tools orders them: `1.2.3a_rc1_p2~0abc-r4`.

Numbers after the first that begin with a zero compare as text, and before all others. Where one version goes on and the
other does not, the longer is newer, unless it goes on with a suffix of a pre-release. Of two that go on differently, the
one with the earlier part of the grammar is newer.
"""

from __future__ import annotations

import re

Part = tuple[int, int, int | str]
Key = tuple[Part, ...]


def key(version: str) -> Key:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError("no Alpine version: digits(.digits)[letter](_suffix[number])[~hash][-r#]")
    numbers, letter, suffixes, commit, revision = match.groups()
    first, *rest = numbers.split(".")
    parts: list[Part] = [(_DIGIT, 1, int(first))]
    parts.extend((_DIGIT, 0, number) if number[0] == "0" else (_DIGIT, 1, int(number)) for number in rest)
    if letter:
        parts.append((_LETTER, 0, letter))
    for suffix, number in _SUFFIX.findall(suffixes):
        rank = _SUFFIXES[suffix]
        parts.append((_BEFORE if rank < 0 else _AFTER, rank, 0))
        if number:
            parts.append((_SUFFIX_NUMBER, 0, int(number)))
    if commit:
        parts.append((_COMMIT, 0, commit))
    if revision:
        parts.append((_REVISION, 0, int(revision)))
    parts.append((_END, 0, 0))
    return tuple(parts)


_BEFORE, _END, _REVISION, _COMMIT, _SUFFIX_NUMBER, _AFTER, _LETTER, _DIGIT = range(8)
_SUFFIXES = {"alpha": -4, "beta": -3, "pre": -2, "rc": -1, "cvs": 1, "svn": 2, "git": 3, "hg": 4, "p": 5}
_SUFFIX = re.compile(r"_(alpha|beta|pre|rc|cvs|svn|git|hg|p)([0-9]*)")
_VERSION = re.compile(
    r"([0-9]+(?:\.[0-9]+)*)([a-z]?)((?:_(?:alpha|beta|pre|rc|cvs|svn|git|hg|p)[0-9]*)*)"
    r"(?:~([0-9a-f]+))?(?:-r([0-9]+))?"
)
