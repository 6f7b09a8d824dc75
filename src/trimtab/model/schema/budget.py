"""What defaults may add to one object. A schema may give each of a million empty items a default of kilobytes: what is far
larger than any object may be is refused while it grows, not once it has filled the memory.

One count for all threads: where two walk at once, a bound is a little nearer or further.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.model.errors import too_large

MOST = 4 * 1024 * 1024
"""Bytes, as JSON. An object may have 1.5 MiB."""

_spent = [0]


def begin() -> None:
    """Another object."""
    _spent[0] = 0


def spend(size: int) -> None:
    """Raises StatusError 413 when it is too much."""
    _spent[0] += size
    if _spent[0] > MOST:
        raise too_large(f"the defaults of its schema would add more than {MOST} bytes to the object")


def size_of(value: Any) -> int:
    """Of a default, with the comma after it."""
    return len(msgspec.json.encode(value)) + 1
