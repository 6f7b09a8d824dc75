"""The tree of an expression. Every node knows its place; the checker writes `type`, the compiler and the estimator
read it.

Macros are nodes of their own (`Fold`), not expanded into loops: they run faster and cost what the expansion would
cost.
"""

from __future__ import annotations

from typing import Any

from trimtab.model.cel.types import ERROR, Type


class Node:
    __slots__ = ("depth", "path", "place", "size", "type")

    def __init__(self, place: int) -> None:
        self.place = place
        self.depth = 1
        self.type: Type = ERROR
        self.path: tuple[str, ...] | None = None  # written by the estimator: where in `self` the value is
        self.size: tuple[int, int] | None = None  # written by the estimator: bounds of a computed value


class Literal(Node):
    __slots__ = ("value",)

    def __init__(self, place: int, value: Any) -> None:
        super().__init__(place)
        self.value = value


class Ident(Node):
    __slots__ = ("constant", "name")

    def __init__(self, place: int, name: str) -> None:
        super().__init__(place)
        self.name = name
        self.constant: Type | None = None  # the type that the name denotes


class Select(Node):
    """`operand.field`; with `test` it is `has(operand.field)`; with `optional` it is `operand.?field`."""

    __slots__ = ("constant", "field", "operand", "optional", "test")

    def __init__(self, place: int, operand: Node, field: str, test: bool = False, optional: bool = False) -> None:
        super().__init__(place)
        self.operand = operand
        self.field = field
        self.test = test
        self.optional = optional
        self.constant: Type | None = None


class Call(Node):
    """A function or an operator (`_+_`). `overloads` are the ids that the checker found possible."""

    __slots__ = ("args", "function", "overloads", "target")

    def __init__(self, place: int, function: str, target: Node | None, args: list[Node]) -> None:
        super().__init__(place)
        self.function = function
        self.target = target
        self.args = args
        self.overloads: list[str] = []

    @property
    def operands(self) -> list[Node]:
        return self.args if self.target is None else [self.target, *self.args]


class Logic(Node):
    """`a && b && …` or `a || b || …`."""

    __slots__ = ("conjunction", "terms")

    def __init__(self, place: int, conjunction: bool, terms: list[Node]) -> None:
        super().__init__(place)
        self.conjunction = conjunction
        self.terms = terms


class Conditional(Node):
    __slots__ = ("otherwise", "test", "then")

    def __init__(self, place: int, test: Node, then: Node, otherwise: Node) -> None:
        super().__init__(place)
        self.test = test
        self.then = then
        self.otherwise = otherwise


class ListNode(Node):
    __slots__ = ("items", "optional")

    def __init__(self, place: int, items: list[Node], optional: list[bool]) -> None:
        super().__init__(place)
        self.items = items
        self.optional = optional


class MapNode(Node):
    __slots__ = ("entries", "optional")

    def __init__(self, place: int, entries: list[tuple[Node, Node]], optional: list[bool]) -> None:
        super().__init__(place)
        self.entries = entries
        self.optional = optional


class Message(Node):
    """`Name{field: value}`: no type of Kubernetes can be made so, thus it only reports its name."""

    __slots__ = ("name",)

    def __init__(self, place: int, name: str) -> None:
        super().__init__(place)
        self.name = name


class Fold(Node):
    """A macro over a range: all, exists, exists_one, map, filter; or over an optional: optMap, optFlatMap."""

    __slots__ = ("body", "filter", "macro", "range", "variable")

    def __init__(
        self, place: int, macro: str, source: Node, variable: str, body: Node, condition: Node | None = None
    ) -> None:
        super().__init__(place)
        self.macro = macro
        self.range = source
        self.variable = variable
        self.body = body
        self.filter = condition


def qualified_name(node: Node) -> str | None:
    """`a.b.c` when the node is nothing but names."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None
