"""The `fieldPath` of a rule: `.spec.ports` or `['a-b'].c`, followed through the schema that the rule stands in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def field_path(path: str, schema: Mapping[str, Any]) -> str | None:
    """The path as errors show it, or None when it does not lead to a field of the schema."""
    shown = ""
    here: Mapping[str, Any] = schema
    tokens = iter(_TOKEN.findall(path))
    for word in tokens:
        name = _name(word, tokens)
        if name is None:
            return None
        if here.get("properties") is not None:
            below = here["properties"].get(name)
            shown += f".{name}" if shown else name
        else:
            below = here.get("additionalProperties")
            shown += f"[{name}]"
        if not isinstance(below, Mapping):
            return None
        here = below
    return shown


def _name(word: str, tokens: Iterator[str]) -> str | None:
    if word == ".":
        return next(tokens, None)
    if word != "[":
        return None
    quoted = next(tokens, "")
    if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'" or next(tokens, "") != "]":
        return None
    name = ""
    at = 1
    while at < len(quoted) - 1:
        if quoted[at] == "\\":
            at += 1
            if quoted[at] not in _ESCAPES:
                return None
            name += _ESCAPES[quoted[at]]
        else:
            name += quoted[at]
        at += 1
    return name
