"""What a status may show of an answer whose schema nobody knows: no value that came from a Secret, nothing that is named as
secrets are, and no more than fits. And what an expression makes of an answer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from trimtab.systems.rest.compiling.classes import named_as_secret
from trimtab.systems.rest.reconciling import memory

MOST = 32 * 1024
"""Bytes of JSON of one answer."""
DEEPEST = 64


class NotShown(Exception):  # noqa: N818 - it reads as what happened
    """Nothing of it can be shown. The text says why, without the value."""


def shown(value: Any, hidden: Collection[str]) -> Any:
    """What may be shown. `hidden` are the secrets that are known. Raises NotShown."""
    found = _shown(value, frozenset(hidden) - {""}, 0)
    if found is None and value is not None:
        raise NotShown("the answer is a secret, which a status does not show: export it")
    size = len(memory.text(found))
    if size > MOST:
        raise NotShown(f"the answer has {size} bytes, and a status takes {MOST}: choose what matters by `select`")
    return found


def selected(expression: str, answer: Any) -> Any:
    """What JMESPath finds. Raises NotShown: its own errors quote what they met."""
    if not expression:
        return answer
    import jmespath

    try:
        return jmespath.search(expression, answer)
    except (ValueError, TypeError, ArithmeticError, AttributeError, RecursionError):  # JMESPath's own are ValueErrors
        raise NotShown(f"the expression {expression!r} cannot be applied to the answer") from None


def _shown(value: Any, hidden: frozenset[str], depth: int) -> Any:
    """None for what may not be shown; a status has no nulls."""
    if depth > DEEPEST or (isinstance(value, str) and any(secret in value for secret in hidden)):
        return None
    if isinstance(value, dict):
        fields = {
            name: _shown(each, hidden, depth + 1)
            for name, each in value.items()
            if not any(secret in name for secret in hidden) and not (isinstance(each, str) and _is_secret(name))
        }
        return {name: each for name, each in fields.items() if each is not None}
    if isinstance(value, list):
        items = (_shown(each, hidden, depth + 1) for each in value)
        return [each for each in items if each is not None]
    return value


def _is_secret(name: str) -> bool:
    return named_as_secret(name.replace("_", "").replace("-", ""))
