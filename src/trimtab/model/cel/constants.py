"""Constants: what is made of literals only is computed once, and what fails so is refused, as cel-go does at planning."""

from __future__ import annotations

import functools
from typing import Any

from trimtab.model.cel import lists, stdlib, strings
from trimtab.model.cel.errors import EvaluationError, InstantiationError
from trimtab.model.cel.syntax import Call, ListNode, Literal, MapNode, Node
from trimtab.model.cel.values import ABSENT, Function

_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})


def function_of(name: str, member: bool) -> Function:
    """What a function runs; one that is called on a value may also be called without."""
    for table in (stdlib.FUNCTIONS, strings.FUNCTIONS, lists.FUNCTIONS):
        found = table.get(f".{name}") if member else None
        found = found or table.get(name)
        if found is not None:
            return found
    libraries = _libraries()
    return (libraries.get(f".{name}") if member else None) or libraries[name]


@functools.cache
def _libraries() -> dict[str, Function]:
    from trimtab.model.cel import authz, formats, network, quantity  # most expressions do without

    return {**network.FUNCTIONS, **quantity.FUNCTIONS, **formats.FUNCTIONS, **authz.FUNCTIONS}


def constant(node: Node) -> Any:
    """The value of a node that is made of literals only, else ABSENT. Raises InstantiationError."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, ListNode) and not any(node.optional):
        items = [constant(item) for item in node.items]
        return ABSENT if any(item is ABSENT for item in items) else items
    if isinstance(node, MapNode) and not any(node.optional):
        return _constant_map(node)
    if isinstance(node, Call) and node.target is None and node.function in _CONVERSIONS and len(node.args) == 1:
        value = constant(node.args[0])
        if value is not ABSENT:
            try:
                return function_of(node.function, member=False)(value)
            except EvaluationError as error:
                raise InstantiationError(str(error)) from None
    return ABSENT


def _constant_map(node: MapNode) -> Any:
    made: dict[Any, Any] = {}
    for key, value in node.entries:
        name, item = constant(key), constant(value)
        if name is ABSENT or item is ABSENT or not isinstance(name, str | int):
            return ABSENT
        made[name] = item
    return made


def check_pattern(node: Node) -> None:
    if isinstance(node, Literal):
        try:
            strings.pattern(node.value)
        except ValueError as error:
            raise InstantiationError(str(error)) from None
