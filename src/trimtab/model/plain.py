"""What JSON, and so an API server, can be told. YAML can say more: dates, bytes, sets, numbers without bounds."""

from __future__ import annotations

import math
from typing import Any

LEAST, GREATEST = -(1 << 63), (1 << 64) - 1
"""The whole numbers that an API server is sent."""


class NotPlain(ValueError):  # noqa: N818 - it reads as what is wrong
    """A value that JSON cannot say. The message names the field and what to do, never the value, which may be secret."""


def check_plain(value: Any, path: str = "") -> None:
    """NotPlain for the first value that JSON cannot say; `path` is where `value` is."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if type(key) is not str:
                raise NotPlain(f"{path or 'document'}: the key {key!r} is not text: quote it")
            if type(inner) is not str:
                check_plain(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            if type(inner) is not str:
                check_plain(inner, f"{path}[{number}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise NotPlain(f"{path}: {value} is not a number in JSON: quote it, if it is meant as text")
    elif isinstance(value, int):
        if not LEAST <= value <= GREATEST:
            raise NotPlain(f"{path}: the number is larger than 64 bits can say: quote it, if it is meant as text")
    elif value is not None and not isinstance(value, str):
        kind = type(value).__name__
        raise NotPlain(f"{path}: a value of type {kind} cannot be said in JSON: quote it, and leave out its YAML tag")
