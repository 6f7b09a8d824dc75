"""The order of versions in each ecosystem.

`key` gives a value that sorts as the version does; keys of one scheme compare with each other only. Most are plain tuples
that are made once and cached, because the same few thousand versions are asked for again and again. A text that is no
version raises CannotCompareError: whoever asks reports it, since "not affected" would be a guess.
"""

from __future__ import annotations

import functools
from typing import Any

from trimtab.systems.images.vulnerabilities.schemes import apk, deb, gem, maven, pypi, rpm, semver

LONGEST = 256
"""Characters of a version. Real ones have less than 100; numbers in longer ones would cost time."""


class CannotCompareError(Exception):
    """A text is no version of its scheme, or a range cannot be judged by versions."""

    def __init__(self, version: str, why: str) -> None:
        super().__init__(f"{version[:80]!r} cannot be compared: {why}")
        self.version = version[:LONGEST]
        self.why = why


def scheme_of(ecosystem: str) -> str | None:
    """How versions of an OSV ecosystem (`Debian:12`, `PyPI`) are ordered; None for one that is not known here."""
    return _SCHEME_OF.get(ecosystem.partition(":")[0])


def compare(ecosystem: str, left: str, right: str) -> int:
    """Below, at or above zero, as left is older than, equal to or newer than right. CannotCompareError."""
    scheme = scheme_of(ecosystem)
    if scheme is None:
        raise CannotCompareError(left, f"the order of versions in {ecosystem[:80]} is not known")
    one, other = key(scheme, left), key(scheme, right)
    return 0 if one == other else -1 if one < other else 1


@functools.lru_cache(maxsize=1 << 16)
def key(scheme: str, version: str) -> Any:
    """What sorts as the version does, among keys of the same scheme. CannotCompareError."""
    if not version:
        raise CannotCompareError(version, "it is empty")
    if len(version) > LONGEST:
        raise CannotCompareError(version, f"it is longer than {LONGEST} characters")
    try:
        return _KEYS[scheme](version)
    except ValueError as error:
        raise CannotCompareError(version, str(error)) from None


_KEYS: dict[str, Any] = {
    "deb": deb.key,
    "rpm": rpm.key,
    "apk": apk.key,
    "semver": semver.key,
    "pypi": pypi.key,
    "maven": maven.key,
    "gem": gem.key,
}
_SCHEME_OF = {
    "Debian": "deb",
    "Ubuntu": "deb",
    "Alpine": "apk",
    "Wolfi": "apk",
    "Chainguard": "apk",
    "Red Hat": "rpm",
    "Rocky Linux": "rpm",
    "AlmaLinux": "rpm",
    "SUSE": "rpm",
    "openSUSE": "rpm",
    "Mageia": "rpm",
    "PyPI": "pypi",
    "npm": "semver",
    "Go": "semver",
    "crates.io": "semver",
    "Maven": "maven",
    "RubyGems": "gem",
}
