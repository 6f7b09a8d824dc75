"""The path elements of a list's elements: by its keys if it is a map, by value if it is a set."""

from __future__ import annotations

from typing import Any

from trimtab.server.apply.fieldset import key_element, value_element
from trimtab.server.apply.types import List

_SCALARS = (str, int, float, bool)


class UnkeyedError(ValueError):
    """An element that its list cannot tell from others."""


def element_of(kind: List, item: Any) -> str:
    """The path element of one element. Raises UnkeyedError, with the words of the API, when it has none."""
    if not kind.keys:
        if isinstance(item, _SCALARS):
            return value_element(item)
        if isinstance(item, dict):
            raise UnkeyedError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise UnkeyedError("not supported: associative list with lists as elements")
        raise UnkeyedError("associative list without keys has an element that's an explicit null")
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise UnkeyedError(f"associative list with keys may not have {what}")
    keys = []
    for name in kind.keys:
        value = item[name] if name in item else kind.defaults.get(name)
        if value is None and name not in item:
            text = f'associative list with keys has an element that omits key field "{name}"'
            raise UnkeyedError(f"{text} (and doesn't have default value)")
        keys.append((name, value))
    return key_element(keys)


def indexed(kind: List, items: list[Any]) -> dict[str, list[Any]]:
    """The elements by path element, in order. One that has none is passed over: it was or will be refused elsewhere."""
    index: dict[str, list[Any]] = {}
    for item in items:
        try:
            element = element_of(kind, item)
        except UnkeyedError:
            continue
        index.setdefault(element, []).append(item)
    return index
