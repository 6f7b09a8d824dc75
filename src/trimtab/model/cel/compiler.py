"""From a checked tree to closures. A closure takes the frame and gives a value or raises.

The frame is a list: what is left of the cost limit, then the variables, then one place for each macro's variable.
This is the hot path: a chain of fields is one closure that walks the raw object, and operators on known types skip
the dispatch. The limit is looked at where work can pile up (loops, calls with a price) and at the end, not at every
step.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

from trimtab.model.cel import folds, lists, operators, stdlib
from trimtab.model.cel import types as t
from trimtab.model.cel.binding import Bounded, ListType, MapType, SchemaObject
from trimtab.model.cel.constants import check_pattern, constant, function_of
from trimtab.model.cel.cost import NEW_LIST, NEW_MAP
from trimtab.model.cel.errors import CostExceeded, EvaluationError, NoSuchOverload, no_such_overload
from trimtab.model.cel.folds import Code, Frame
from trimtab.model.cel.prices import PRICES, Price
from trimtab.model.cel.syntax import (
    Call,
    Conditional,
    Fold,
    Ident,
    ListNode,
    Logic,
    MapNode,
    Node,
    Select,
)
from trimtab.model.cel.values import ABSENT, LISTS, MAPS, NONE, Function, Optional, type_name

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "_<_": operator.lt, "_<=_": operator.le, "_>_": operator.gt, "_>=_": operator.ge,
}  # fmt: skip
_AFFIXES: dict[str, Callable[[str, str], bool]] = {
    "starts_with_string": str.startswith, "ends_with_string": str.endswith,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add_int64": operator.add, "subtract_int64": operator.sub, "multiply_int64": operator.mul,
}  # fmt: skip

LARGE_BODY = 100  # nodes: what a loop repeats is counted then, though it may be free


class Compiler:
    """Compiles one expression. `width` is the length that its frame must have."""

    def __init__(self, variables: Mapping[str, int]) -> None:
        self._places: dict[str, int] = dict(variables)
        self.width = len(variables) + 1
        self._nodes = 0

    def compile(self, node: Node) -> Code:
        value = constant(node)
        self._nodes += 1
        if value is ABSENT:
            return _COMPILERS[type(node)](self, node)
        return _fixed(value)

    def _ident(self, node: Ident) -> Code:
        if node.constant is not None:
            return _fixed(node.constant)
        place = self._places[node.name.removeprefix(".")]

        def variable(frame: Frame) -> Any:
            frame[0] -= 1
            return frame[place]

        return variable

    def _select(self, node: Select) -> Code:
        if node.constant is not None:
            return _fixed(node.constant)
        extra = 0 if _is_attribute(node.operand) else 1
        if node.optional:
            operand, field = self.compile(node.operand), node.field

            def optional(frame: Frame) -> Any:
                value = stdlib.optional_select(operand(frame), field)
                frame[0] -= value.present + extra
                return value

            return optional
        if _is_walked(node.operand.type):
            return self._chain(node)
        operand, field, has = self.compile(node.operand), node.field, node.test

        def dynamic(frame: Frame) -> Any:
            value = operand(frame)
            if has:
                return stdlib.has(value, field)
            frame[0] -= 1 + extra
            return stdlib.select(value, field)

        return dynamic

    def _chain(self, node: Select) -> Code:
        """`base.a.b.c` through object types: the raw object is walked and only the last value is bound."""
        fields: list[t.Field] = []
        base: Node = node
        while (
            isinstance(base, Select)
            and base.constant is None
            and not base.optional
            and (base is node or not base.test)
            and _is_walked(base.operand.type)
        ):
            fields.append(_field(base))
            base = base.operand
        fields.reverse()
        last = fields[-1]
        if node.test:
            return _presence(self.compile(base), fields[:-1], last)
        cost, bind = len(fields) + (0 if _is_attribute(base) else 1), _binder(last.type)
        keys = tuple(field.key for field in fields)
        if isinstance(base, Ident) and base.constant is None:
            return _walk(self._places[base.name.removeprefix(".")], fields, keys, cost + 1, bind)
        source = self.compile(base)

        def walk(frame: Frame) -> Any:
            frame[0] -= cost
            view = source(frame)
            try:
                value = view.value
                for key in keys:
                    value = value[key]
            except (KeyError, TypeError, AttributeError):
                value = None
            if value is None:
                raise _missing(view, fields)
            return value if bind is None else bind(value)

        return walk

    def _logic(self, node: Logic) -> Code:
        terms = tuple(self.compile(term) for term in node.terms)
        decisive = not node.conjunction

        def logic(frame: Frame) -> Any:
            failure: EvaluationError | None = None
            for term in terms:
                try:
                    value = term(frame)
                    if value is decisive:
                        return decisive
                    if type(value) is not bool:
                        failure = failure or no_such_overload()
                except EvaluationError as error:
                    failure = failure or error
            if failure is not None:
                raise failure
            return not decisive

        return logic

    def _conditional(self, node: Conditional) -> Code:
        test, then, otherwise = self.compile(node.test), self._rootless(node.then), self._rootless(node.otherwise)

        def conditional(frame: Frame) -> Any:
            value = test(frame)
            if value is True:
                return then(frame)
            if value is False:
                return otherwise(frame)
            raise no_such_overload()

        return conditional

    def _rootless(self, node: Node) -> Code:
        """A branch or an index: where it is a variable or a field, its variable is not charged for."""
        code = self.compile(node)
        if not _is_attribute(node) or isinstance(node, Conditional):
            return code

        def rootless(frame: Frame) -> Any:
            frame[0] += 1
            return code(frame)

        return rootless

    def _list(self, node: ListNode) -> Code:
        items = tuple(self.compile(item) for item in node.items)
        if any(node.optional):
            optional = tuple(node.optional)

            def some(frame: Frame) -> Any:
                frame[0] -= NEW_LIST
                made = []
                for item, maybe in zip(items, optional, strict=True):
                    value = item(frame)
                    if maybe:
                        if type(value) is not Optional:
                            raise no_such_overload()
                        if not value.present:
                            continue
                        value = value.value
                    made.append(value)
                return made

            return some

        def new(frame: Frame) -> Any:
            frame[0] -= NEW_LIST
            return [item(frame) for item in items]

        return new

    def _map(self, node: MapNode) -> Code:
        entries = tuple((self.compile(key), self.compile(value)) for key, value in node.entries)
        optional = tuple(node.optional)

        def new(frame: Frame) -> Any:
            frame[0] -= NEW_MAP
            made: dict[Any, Any] = {}
            for (key, value), maybe in zip(entries, optional, strict=True):
                name, item = key(frame), value(frame)
                if not isinstance(name, str | int):
                    raise EvaluationError("unsupported key type")
                if maybe:
                    if type(item) is not Optional:
                        raise no_such_overload()
                    if not item.present:
                        continue
                    item = item.value
                made[name] = item
            return made

        return new

    def _call(self, node: Call) -> Code:
        if node.function in ("_[_]", "_[?_]"):
            return self._index(node)
        args = [self.compile(arg) for arg in node.operands]
        if node.function in _PATTERNS:
            check_pattern(node.operands[1])
        fast = self._operator(node, args)
        if fast is not None:
            return fast
        name = node.function
        if name in ("or", "orValue"):
            return operators.either(args[0], args[1], name == "orValue")
        function = function_of(name, node.target is not None)
        if name == "sum":
            function = functools.partial(lists.total, kind=node.overloads[0].split("_")[1])
        dynamic = any(operand.type.kind in (t.DYN_KIND, t.NULL_KIND) for operand in node.operands)
        if dynamic and name[0].isalpha() and name not in _UNNAMED:
            function = _named(name, function)
        return _call(function, args, PRICES.get(name))

    def _index(self, node: Call) -> Code:
        container, key = self.compile(node.args[0]), self._rootless(node.args[1])
        cost = 1 if _is_attribute(node.args[0]) else 2
        if node.function == "_[?_]":

            def optional(frame: Frame) -> Any:
                value = stdlib.optional_index(container(frame), key(frame))
                frame[0] -= cost if value.present else cost - 1
                return value

            return optional

        if node.overloads == ["index_map"] and node.args[1].type.name == "string":

            def entry(frame: Frame) -> Any:
                entries, name = container(frame), key(frame)
                frame[0] -= cost
                if type(entries) is dict and name in entries:
                    return entries[name]
                return stdlib.index(entries, name)

            return entry

        def index(frame: Frame) -> Any:
            value = stdlib.index(container(frame), key(frame))
            frame[0] -= cost if value is not NONE else cost - 1
            return value

        return index

    def _operator(self, node: Call, args: list[Code]) -> Code | None:
        """Operators on types that are known, without dispatch."""
        if len(node.overloads) != 1 or len(args) != 2 or any(_nullable(operand) for operand in node.operands):
            return None
        name, overload, (left, right) = node.function, node.overloads[0], args
        if name == "_==_" and isinstance(node.args[0].type, ListType | MapType | SchemaObject):
            return operators.same_shape(left, right, MAPS if node.args[0].type.kind != t.LIST else LISTS)
        if name in ("_==_", "_!=_"):
            return operators.equality(left, right, name == "_==_", _static(node.args), constant(node.args[1]))
        if overload == "in_list":
            return operators.one_of(left, constant(node.args[1]), _static([node.args[0]]))
        if any(operand.type.kind != t.SCALAR for operand in node.operands):
            return None
        if name in _COMPARED and overload.endswith("_int64"):
            return operators.comparison(_COMPARED[name], left, right, constant(node.args[1]))
        if name in _COMPARED and overload.endswith("_string"):
            return operators.string_comparison(_COMPARED[name], left, right)
        if overload in _ARITHMETIC:
            return operators.arithmetic(_ARITHMETIC[overload], left, right)
        if overload in _AFFIXES and _static(node.operands) == "string":
            return operators.affix(_AFFIXES[overload], left, right)
        return None

    def _fold(self, node: Fold) -> Code:
        source = self.compile(node.range)
        before = self._places.get(node.variable)
        place = self._places[node.variable] = self.width
        self.width += 1
        body = self._in_loop(node.body)
        condition = None if node.filter is None else self._in_loop(node.filter)
        if before is None:
            del self._places[node.variable]
        else:
            self._places[node.variable] = before
        match node.macro:
            case "all":
                return folds.quantifier(source, place, body, False, 3)
            case "exists":
                return folds.quantifier(source, place, body, True, 4)
            case "exists_one":
                return folds.exists_one(source, place, body)
            case "filter":
                return folds.kept(source, place, body)
            case "map":
                return folds.mapped(source, place, body, condition)
        return folds.optional_map(source, place, body, node.macro == "optMap")

    def _in_loop(self, node: Node) -> Code:
        before = self._nodes
        code = self.compile(node)
        size = self._nodes - before
        return folds.weighed(code, size >> 3) if size > LARGE_BODY else code


def _fixed(value: Any) -> Code:
    return lambda frame: value


def _is_attribute(node: Node) -> bool:
    """Whether cel-go resolves this node as a variable with qualifiers, which are charged for one by one."""
    if isinstance(node, Ident | Select):
        return node.constant is None and not (isinstance(node, Select) and node.test)
    return isinstance(node, Conditional) or (isinstance(node, Call) and node.function in ("_[_]", "_[?_]"))


def _is_walked(kind: t.Type) -> bool:
    return kind.kind == t.STRUCT and kind.walked and bool(kind.fields)


def _field(node: Select) -> t.Field:
    field = node.operand.type.field(node.field)
    assert field is not None  # noqa: S101 - the checker found it
    return field


def _nullable(node: Node) -> bool:
    return getattr(node.type, "nullable", False)


def _binder(kind: t.Type) -> Callable[[Any], Any] | None:
    """How a value that is not null is bound, or None when it is used as it is."""
    return None if type(kind) is Bounded or getattr(kind, "plain", False) else kind.bind


def _walk(
    place: int, fields: list[t.Field], keys: tuple[str, ...], cost: int, bind: Callable[[Any], Any] | None
) -> Code:
    """The fields of a variable: the commonest thing that a rule does."""
    first, rest = keys[0], keys[1:]

    def walk(frame: Frame) -> Any:
        frame[0] -= cost
        try:
            value = frame[place].value[first]
            for key in rest:
                value = value[key]
        except (KeyError, TypeError, AttributeError):
            value = None
        if value is None:
            raise _missing(frame[place], fields)
        return value if bind is None else bind(value)

    return walk


def _static(nodes: list[Node]) -> str:
    """The name of the simple type that all nodes have, else nothing."""
    name = nodes[0].type.name
    return name if name in ("string", "int", "bool") and all(node.type.name == name for node in nodes) else ""


def _missing(view: Any, fields: list[t.Field]) -> Exception:
    """Why a chain of fields has no value."""
    value = view.value if hasattr(view, "value") else None
    for field in fields:
        value = value.get(field.key) if isinstance(value, Mapping) else None
        if value is None:
            return EvaluationError(f"no such key: {field.key}")
    return no_such_overload()


def _presence(source: Code, fields: list[t.Field], last: t.Field) -> Code:
    cost, keys, final = len(fields), tuple(field.key for field in fields), last.key

    def has(frame: Frame) -> bool:
        frame[0] -= cost
        view = source(frame)
        if view is None:
            return False
        value = view.value
        for key in keys:
            value = value.get(key)
            if value is None:
                raise _missing(view, fields)
        return value.get(final) is not None

    return has


def _named(name: str, function: Function) -> Function:
    """The function, which says its name and its arguments' types when it has no overload for them."""

    def named(*values: Any) -> Any:
        try:
            return function(*values)
        except NoSuchOverload:
            shown = "" if name == "size" else f"({', '.join(type_name(value) for value in values)})"
            raise NoSuchOverload(f"no such overload: {name}{shown}") from None

    return named


def _call(function: Function, args: list[Code], price: Price | None) -> Code:
    if price is not None:
        codes = tuple(args)

        def priced(frame: Frame) -> Any:
            values = tuple([code(frame) for code in codes])
            result = function(*values)
            frame[0] -= price(values, result)
            if frame[0] < 0:
                raise CostExceeded
            return result

        return priced
    if len(args) == 1:
        only = args[0]

        def unary(frame: Frame) -> Any:
            frame[0] -= 1
            return function(only(frame))

        return unary
    if len(args) == 2:
        left, right = args

        def binary(frame: Frame) -> Any:
            frame[0] -= 1
            return function(left(frame), right(frame))

        return binary

    def call(frame: Frame) -> Any:
        frame[0] -= 1
        return function(*[code(frame) for code in args])

    return call


_UNNAMED = frozenset(
    {"contains", "startsWith", "endsWith", "matches", "find", "findAll"}
)  # cel-go gives no name in their errors
_PATTERNS = frozenset({"matches", "find", "findAll"})


_COMPILERS: dict[type[Node], Callable[[Any, Any], Code]] = {
 Ident: Compiler._ident, Select: Compiler._select, Call: Compiler._call,
    Logic: Compiler._logic, Conditional: Compiler._conditional, ListNode: Compiler._list, MapNode: Compiler._map,
    Fold: Compiler._fold,
}  # fmt: skip
