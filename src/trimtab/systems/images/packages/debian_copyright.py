"""Licences of Debian packages: `usr/share/doc/<package>/copyright`, in the machine-readable form or in free words.

The machine-readable form names licences in Debian's own short words, of which the usual ones are turned into SPDX's.
Free words are searched for the common licences that they refer to.
"""

from __future__ import annotations

import re

from trimtab.systems.images.packages.package import Body

MAX_BYTES = 1 << 20

_PATH = re.compile(r"usr/share/doc/([a-z0-9][a-z0-9+.-]+)/copyright")
_COMMON = re.compile(rb"[A-Za-z0-9][A-Za-z0-9.-]*")
_GNU = re.compile(r"(A?GPL|LGPL|GFDL)-(\d)(?:\.(\d))?(?:\.0)?(\+?)")
_NAMES = {
    "Apache-2": "Apache-2.0",
    "BSD-2-clause": "BSD-2-Clause",
    "BSD-3-clause": "BSD-3-Clause",
    "BSD-4-clause": "BSD-4-Clause",
    "Expat": "MIT",
    "zlib": "Zlib",
}
_OPERATORS = {"or": "OR", "and": "AND", "with": "WITH"}
_MOST = 50
_MAX_WORD = 200


def package_of(path: str) -> str:
    """The package whose copyright file this is; empty when it is none."""
    match = _PATH.fullmatch(path)
    return match[1] if match else ""


def read(body: Body) -> tuple[str, ...]:
    """The licences that the file names, each once, in order of their names."""
    if b"copyright-format/" in body[:2000]:
        parts = body.split(b"\nLicense:")[1:]
        words = {bytes(part[:_MAX_WORD].partition(b"\n")[0]).strip() for part in parts}
    else:
        parts = body.split(b"/usr/share/common-licenses/")[1:]
        words = {match[0].rstrip(b".-") for part in parts if (match := _COMMON.match(part[:_MAX_WORD]))}
    texts = (word.decode("utf-8", "replace") for word in words if word)
    return tuple(sorted({_named(text) for text in texts})[:_MOST])


def _named(text: str) -> str:
    """Each word of `GPL-2+ or Expat` by itself. One that is not known stays, as does a list with commas."""
    if "," in text:
        return text
    return " ".join(_OPERATORS.get(word) or _short(word) for word in text.split())


def _short(word: str) -> str:
    match = _GNU.fullmatch(word)
    if match is None:
        return _NAMES.get(word, word)
    return f"{match[1]}-{match[2]}.{match[3] or 0}-{'or-later' if match[4] else 'only'}"
