"""One scalar against its node: type, bounds, length, pattern, enumeration.

A pattern that RE2 does not know (look-around) is not checked: the service does that. Formats of strings are the service's
business, too.
"""

from __future__ import annotations

import functools
from typing import Any

from trimtab.model.schema.patterns import BadPattern, Matcher, matcher
from trimtab.systems.rest.model import Comparator, Node
from trimtab.systems.rest.syncing.paths import Path
from trimtab.systems.rest.validating.finding import Found, listed, meant

SCALARS = ("string", "integer", "number", "boolean")
_WORDS = {"string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false"}
_WIDTHS = {"int32": 2**31, "int64": 2**63}


def check(node: Node, value: Any, path: Path, found: Found, *, silent: bool) -> None:
    """`silent`: the value may be a secret."""
    if not _is(node.type, value):
        found.mistyped(path, value, f"must be {_WORDS[node.type]}")
        return
    if node.type == "string":
        _text(node, value, path, found, silent=silent)
    elif node.type in ("integer", "number"):
        _number(node, value, path, found, silent=silent)
    if node.enum:
        _listed(node, value, path, found, silent=silent)


def _is(kind: str, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(node: Node, value: str, path: Path, found: Found, *, silent: bool) -> None:
    if node.min_length is not None and len(value) < node.min_length:
        found.wrong(path, value, f"must have at least {_counted(node.min_length)}", silent=silent)
    if node.max_length is not None and len(value) > node.max_length:
        found.wrong(path, value, f"must have at most {_counted(node.max_length)}", silent=silent)
    if node.pattern:
        matches = pattern(node.pattern)
        if matches is not None and not matches(value):
            found.wrong(path, value, f"must match {node.pattern}", silent=silent)


def _number(node: Node, value: float, path: Path, found: Found, *, silent: bool) -> None:
    if node.minimum is not None and value < node.minimum:
        found.wrong(path, value, f"must be at least {node.minimum:g}", silent=silent)
    if node.maximum is not None and value > node.maximum:
        found.wrong(path, value, f"must be at most {node.maximum:g}", silent=silent)
    width = _WIDTHS.get(node.format) if node.type == "integer" else None
    if width is not None and not -width <= value < width:
        found.wrong(path, value, f"does not fit into {node.format}", silent=silent)


def _listed(node: Node, value: Any, path: Path, found: Found, *, silent: bool) -> None:
    if any(_same(node, value, known) for known in node.enum):
        return
    hint = meant(value, [known for known in node.enum if isinstance(known, str)]) if isinstance(value, str) else ""
    text = f"must be one of {listed(node.enum)}" + (f"; {hint}" if hint and not silent else "")
    if node.open_enum:
        shown = "this value" if silent else listed((value,))
        found.warn(path, f"{shown} is none of the values that the document knows: {listed(node.enum)}")
    else:
        found.wrong(path, value, text, silent=silent)


def _same(node: Node, value: Any, known: Any) -> bool:
    if isinstance(value, str) and isinstance(known, str) and node.compare is Comparator.CASELESS:
        return value.casefold() == known.casefold()
    return bool(value == known) and isinstance(value, bool) == isinstance(known, bool)


@functools.lru_cache(maxsize=4096)
def pattern(text: str) -> Matcher | None:
    """None when RE2 does not know it."""
    try:
        return matcher(text)
    except BadPattern:
        return None


def _counted(number: int) -> str:
    return f"{number} character{'' if number == 1 else 's'}"
