"""Semantic versions (semver.org 2.0.0, section 11), as npm, Go and crates.io write them.

Read a little more widely than the specification says, because advisories and packages do: a leading `v`, missing minor or
patch numbers, and leading zeros. Go's own releases (`go1.21rc2`) become what Go's vulnerability database calls them
(`1.21.0-rc.2`). What follows `+` never counts.
"""

from __future__ import annotations

import re

Identifier = tuple[int, int | str]
Key = tuple[int, int, int, int, tuple[Identifier, ...]]


def key(version: str) -> Key:
    match = _VERSION.fullmatch(version)
    if match is None:
        return _of_go(version)
    major, minor, patch, before = match.groups()
    numbers = int(major), int(minor or 0), int(patch or 0)
    return (*numbers, 1, ()) if before is None else (*numbers, 0, tuple(map(_identifier, before.split("."))))


def _of_go(version: str) -> Key:
    match = _GO.fullmatch(version)
    if match is None:
        raise ValueError("no semantic version: major[.minor[.patch]][-prerelease][+build]")
    major, minor, patch, stage, number = match.groups()
    numbers = int(major), int(minor), int(patch or 0)
    return (*numbers, 1, ()) if stage is None else (*numbers, 0, ((1, stage), (0, int(number))))


def _identifier(text: str) -> Identifier:
    return (0, int(text)) if text.isascii() and text.isdigit() else (1, text)


_VERSION = re.compile(
    r"[vV=]?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]*)?"
)
_GO = re.compile(r"(?:go)?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?(?:(beta|rc)([0-9]+))?(?: X:.*)?")
