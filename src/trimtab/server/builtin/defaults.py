"""Makes a document what it is after Go has decoded it, the real server has set its defaults, and Go has encoded it:
absent fields get their defaults, fields that Go leaves out when they are zero go, those that it always writes come.

Compiled once for each definition, and only the parts of a document that have such fields are visited.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from trimtab.server.builtin.tables import DEFINITIONS, PREFIX, defaults

Step = Callable[[Any], None]


def completed(name: str) -> Step:
    """The step that completes one object of a kind in place. Its metadata is not touched."""
    return _root(name)


@functools.cache
def completed_status(name: str) -> Step:
    """The step that gives one object of a kind its status, as far as that is never absent."""
    step = _child(DEFINITIONS[name]["properties"]["status"])

    def complete(value: Any) -> None:
        status = value.setdefault("status", {})
        if step is not None:
            step(status)

    return complete


@functools.cache
def _root(name: str) -> Step:
    skipped = frozenset(("metadata", "apiVersion", "kind"))
    return _step(name, _below(name, skipped), skipped)


_structs: dict[str, Step] = {}


def _struct(name: str) -> Step:
    if name not in _structs:
        below: dict[str, Step] = {}
        _structs[name] = _step(name, below)
        below |= _below(name)  # after that, because types refer to themselves (JSONSchemaProps)
    return _structs[name]


def _below(name: str, skipped: frozenset[str] = frozenset()) -> dict[str, Step]:
    properties = DEFINITIONS[name].get("properties", {})
    return {f: step for f, part in properties.items() if f not in skipped and (step := _child(part)) is not None}


def _step(name: str, below: dict[str, Step], skipped: frozenset[str] = frozenset()) -> Step:
    """Completes one struct. A document has fewer fields than its definition, so the document's are gone through."""
    table = defaults().get(name, {})
    always = [(field, value) for field, value in table.get("always", {}).items() if field not in skipped]
    omits = frozenset(table.get("omits", ())) - skipped

    def complete(value: Any) -> None:
        if not isinstance(value, dict):
            return
        absent = None
        for field, given in value.items():
            if field in below:
                below[field](given)
            elif not given and field in omits and given in ("", 0) and not isinstance(given, float):
                absent = [field] if absent is None else [*absent, field]
        for field in absent or ():
            del value[field]
        for field, given in always:
            if field not in value:
                value[field] = given = given.copy() if isinstance(given, dict) else given
                if field in below:
                    below[field](given)

    return complete


def _child(part: dict[str, Any]) -> Step | None:
    """What to do with a field; None where nothing below it ever needs anything."""
    if "$ref" in part:
        name = part["$ref"].removeprefix(PREFIX)
        return _struct(name) if name in _relevant() else None
    for word, values in (("items", _items), ("additionalProperties", _values)):
        if isinstance(part.get(word), dict) and (step := _child(part[word])) is not None:
            return values(step)
    return None


def _items(step: Step) -> Step:
    def each(value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                step(item)

    return each


def _values(step: Step) -> Step:
    def each(value: Any) -> None:
        if isinstance(value, dict):
            for item in value.values():
                step(item)

    return each


@functools.cache
def _relevant() -> frozenset[str]:
    """The definitions that have defaults, or lead to one that has."""
    found = set(defaults())
    users: dict[str, list[str]] = {}
    for name in DEFINITIONS:
        for other in DEFINITIONS.references(name):
            users.setdefault(other, []).append(name)
    pending = list(found)
    while pending:
        for user in users.get(pending.pop(), ()):
            if user not in found:
                found.add(user)
                pending.append(user)
    return frozenset(found)
