"""Debian and Ubuntu versions, as Debian Policy 5.6.12 orders them: `[epoch:]upstream[-revision]`.

Both parts are read as turns of text and number. In text `~` sorts before the end, the end before letters, and letters
before all else. A key lists these characters as numbers, with a zero for each end; what is absent counts as zero.
"""

from __future__ import annotations

import functools
import re

Key = tuple[int, tuple[int, ...], tuple[int, ...]]


def key(version: str) -> Key:
    match = _VERSION.fullmatch(version)
    epoch, upstream, revision = match.groups() if match else (None, ":", None)
    if ":" in upstream and epoch is None:
        raise ValueError("no Debian version: [epoch:]upstream[-revision] of letters, digits and . + ~ - :")
    return int(epoch or 0), _turns(upstream), _turns(revision or "")


def _turns(text: str) -> tuple[int, ...]:
    order: list[int] = []
    for word, number in _TURN.findall(text or "0"):
        order += _word(word)
        order.append(int(number or 0))
    order.append(0)
    return tuple(order)


@functools.lru_cache(maxsize=4096)
def _word(word: str) -> tuple[int, ...]:
    """Few different ones are in use."""
    return (*map(_ORDER.__getitem__, word), 0)


# The revision is what follows the last hyphen. A colon is part of the upstream version only after an epoch.
_VERSION = re.compile(r"(?:([0-9]{1,9}):)?([A-Za-z0-9.+~:_-]+?)(?:-([A-Za-z0-9.+~_]+))?(?<!-)")
_TURN = re.compile(r"(?=.)([^0-9]*)([0-9]*)")
_ORDER = {c: ord(c) if c.isalpha() else -1 if c == "~" else ord(c) + 256 for c in map(chr, range(33, 127))}
