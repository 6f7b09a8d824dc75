"""Compile an expression once, evaluate it often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.model.cel import stdlib, strings
from trimtab.model.cel import types as t
from trimtab.model.cel.checker import Checker
from trimtab.model.cel.compiler import Compiler
from trimtab.model.cel.cost import Estimator
from trimtab.model.cel.declarations import runtime_name
from trimtab.model.cel.errors import CostExceeded, EvaluationError, no_such_overload
from trimtab.model.cel.folds import Code
from trimtab.model.cel.parser import parse
from trimtab.model.cel.syntax import (
    Call,
    Conditional,
    Fold,
    ListNode,
    Literal,
    Logic,
    MapNode,
    Node,
    Select,
)
from trimtab.model.cel.values import RUNNING, Steps

PER_CALL = 1_000_000
PER_OBJECT = 10_000_000


class Budget:
    """What evaluations may still cost together, and each of them alone."""

    __slots__ = ("per_call", "remaining", "steps")

    def __init__(self, total: int = PER_OBJECT, per_call: int = PER_CALL) -> None:
        self.remaining = total
        self.per_call = per_call
        self.steps = Steps()


class Program:
    """A compiled expression. `uses` are the variables that it refers to."""

    __slots__ = ("_code", "_names", "_root", "_spare", "source", "type", "uses")

    def __init__(
        self, source: str, root: Node, code: Code, names: tuple[str, ...], width: int, uses: frozenset[str]
    ) -> None:
        self.source = source
        self.type = root.type
        self.uses = uses
        self._root = root
        self._code = code
        self._names = names
        self._spare = (None,) * (width - len(names) - 1)  # for the variables of macros

    def evaluate(self, bindings: Mapping[str, Any], budget: Budget) -> Any:
        """The value. Spends from the budget, also when it raises EvaluationError or CostExceeded."""
        frame: list[Any] = [budget.per_call, *map(bindings.get, self._names), *self._spare]
        outer, RUNNING[0] = RUNNING[0], budget.steps
        try:
            value = self._code(frame)
        except RecursionError:  # values within values, made by variables that use each other
            raise CostExceeded from None
        except (TypeError, AttributeError) as error:  # a value that its type did not foretell
            raise no_such_overload() from error
        finally:
            RUNNING[0] = outer
            budget.remaining -= budget.per_call - frame[0]
        if frame[0] < 0:
            raise CostExceeded
        return value

    def estimate(self, self_type: t.Type | None = None) -> int:
        """The most that one evaluation can cost, by the bounds in the type of `self`."""
        return Estimator(self_type).estimate(self._root)[1]


def compile(source: str, variables: Mapping[str, t.Type], *, result: t.Type | None = t.BOOL) -> Program:  # noqa: A001
    """An expression over variables of these types. Raises CelError; WrongResult when it is not a `result`."""
    root, text = parse(source)
    checker = Checker(text, variables)
    checker.check(root)
    _validate(checker, root, exempt=False)
    checker.raise_issues()
    if result is not None and root.type != result:
        raise WrongResult(root.type, result)
    names = tuple(variables)
    compiler = Compiler({name: place for place, name in enumerate(names, 1)})
    code = compiler.compile(root)
    return Program(source, root, code, names, compiler.width, frozenset(checker.used))


class WrongResult(Exception):  # noqa: N818 - the expression is sound, only not what was asked for
    """An expression of another type than was asked for."""

    def __init__(self, found: t.Type, wanted: t.Type) -> None:
        self.found = found
        self.wanted = wanted
        super().__init__(f"must evaluate to {wanted.text}, not {found.text}")


def _validate(checker: Checker, node: Node, exempt: bool) -> None:
    """What is wrong with literals: durations, timestamps, patterns and formats that can be known to fail."""
    if isinstance(node, Call):
        _validate_call(checker, node)
        exempt = exempt or node.function == "format"
        children = node.operands
    elif isinstance(node, ListNode):
        children = node.items
        if not exempt:
            _validate_alike(checker, node.items, node.optional)
    elif isinstance(node, MapNode):
        if not exempt:
            _validate_alike(checker, [key for key, _ in node.entries], [False] * len(node.entries))
            _validate_alike(checker, [value for _, value in node.entries], node.optional)
        children = [part for entry in node.entries for part in entry]
    elif isinstance(node, Logic):
        children = node.terms
    elif isinstance(node, Conditional):
        children = [node.test, node.then, node.otherwise]
    elif isinstance(node, Fold):
        children = [node.range, node.body] if node.filter is None else [node.range, node.filter, node.body]
    elif isinstance(node, Select) and node.constant is None:
        children = [node.operand]
    else:
        return
    for child in children:
        _validate(checker, child, exempt)


def _validate_alike(checker: Checker, nodes: list[Node], optional: list[bool]) -> None:
    """The elements of a list or a map must have one type."""
    kinds = [
        t.unwrap_optional(node.type)[0] if maybe else node.type for node, maybe in zip(nodes, optional, strict=True)
    ]
    for node, kind in zip(nodes, kinds, strict=True):
        if kind != kinds[0]:
            checker.report(node.place, f"expected type '{kinds[0].text}' but found '{kind.text}'")
            return


def _validate_call(checker: Checker, node: Call) -> None:
    if node.function == "format" and node.target is not None:
        _validate_format(checker, node)
        return
    argument = node.args[0] if node.args else None
    if not isinstance(argument, Literal) or type(argument.value) is not str:
        return
    try:
        if node.function == "duration":
            stdlib.to_duration(argument.value)
        elif node.function == "timestamp":
            stdlib.to_timestamp(argument.value)
        elif node.function == "matches":
            strings.pattern(argument.value)
    except (EvaluationError, ValueError):
        checker.report(argument.place, f"invalid {node.function} argument")


def _validate_format(checker: Checker, node: Call) -> None:
    text, args = node.target, node.args[0]
    if not isinstance(text, Literal) or type(text.value) is not str or not isinstance(args, ListNode):
        return
    try:
        used = [clause for _, _, clause in strings.clauses(text.value) if clause]
    except EvaluationError as error:
        checker.report(node.place, str(error))
        return
    for place, clause in enumerate(used):
        if place >= len(args.items):
            checker.report(node.place, f"index {place} out of range")
            return
        problem = strings.clause_problem(clause, runtime_name(args.items[place].type))
        if problem is not None:
            checker.report(args.items[place].place, f"error during formatting: {problem}")
            return
    if len(args.items) > len(used):
        checker.report(
            node.place,
            f"too many arguments supplied to string.format (expected {len(used)}, got {len(args.items)})",
        )
