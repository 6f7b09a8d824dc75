"""The type of every node. Errors are gathered with the places and the words of cel-go; a wrong part does not hide the
next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trimtab.model.cel import types as t
from trimtab.model.cel.declarations import functions, type_names
from trimtab.model.cel.errors import CelError
from trimtab.model.cel.lexer import Source
from trimtab.model.cel.syntax import (
    Call,
    Conditional,
    Fold,
    Ident,
    ListNode,
    Literal,
    Logic,
    MapNode,
    Message,
    Node,
    Select,
    qualified_name,
)
from trimtab.model.cel.values import type_name

_LITERALS = {
    "bool": t.BOOL, "int": t.INT, "uint": t.UINT, "double": t.DOUBLE, "string": t.STRING, "bytes": t.BYTES,
    "null_type": t.NULL,
}  # fmt: skip


class Checker:
    """Checks one expression. `used` are the variables it refers to."""

    def __init__(self, source: Source, variables: Mapping[str, t.Type]) -> None:
        self._source = source
        self._scopes: list[dict[str, t.Type]] = [dict(variables)]
        self._bound = t.Substitution()
        self._nodes: list[Node] = []
        self._issues: list[tuple[int, str]] = []
        self.used: set[str] = set()

    def check(self, root: Node) -> None:
        """Write the types. Raises CelError."""
        self._check(root)
        for node in self._nodes:
            node.type = self._bound.resolve(node.type, t.DYN)
        self.raise_issues()

    def report(self, place: int, message: str) -> None:
        self._issues.append((place, message))

    def raise_issues(self) -> None:
        if self._issues:
            raise CelError(self._source.text, [self._source.issue(place, text) for place, text in self._issues])

    def _check(self, node: Node) -> t.Type:
        self._nodes.append(node)
        node.type = _CHECKS[type(node)](self, node)
        return node.type

    def _variable(self, name: str) -> t.Type | None:
        name = name.removeprefix(".")
        for depth in range(len(self._scopes) - 1, -1, -1):
            found = self._scopes[depth].get(name)
            if found is not None:
                if depth == 0:
                    self.used.add(name)
                return found
        return None

    def _undeclared(self, place: int, name: str) -> t.Type:
        self.report(place, f"undeclared reference to '{name}' (in container '')")
        return t.ERROR

    def _literal(self, node: Literal) -> t.Type:
        return _LITERALS[type_name(node.value)]

    def _ident(self, node: Ident) -> t.Type:
        found = self._variable(node.name)
        if found is not None:
            return found
        denoted = type_names().get(node.name)
        if denoted is None:
            return self._undeclared(node.place, node.name)
        node.constant = denoted
        return t.type_of(denoted)

    def _select(self, node: Select) -> t.Type:
        if not node.test and not node.optional:
            name = qualified_name(node)
            denoted = type_names().get(name) if name is not None and "." in name else None
            if denoted is not None:
                node.constant = denoted
                return t.type_of(denoted)
        operand = self._bound.resolve(self._check(node.operand))
        target, was_optional = t.unwrap_optional(operand)
        result = self._field(node, target)
        if node.test:
            return t.BOOL
        if was_optional or node.optional:
            result = t.optional_of(result)
        return self._bound.resolve(result)

    def _field(self, node: Select, target: t.Type) -> t.Type:
        if target.kind == t.MAP:
            return target.params[1]
        if target.kind == t.STRUCT:
            field = target.field(node.field)
            if field is None:
                self.report(node.place, f"undefined field '{node.field}'")
                return t.ERROR
            return field.type
        if target.kind == t.PARAM:
            self._bound.assignable([t.DYN], [target])
        elif target.kind > t.ERROR_KIND:
            self.report(node.place, f"type '{target.text}' does not support field selection")
        return t.DYN

    def _call(self, node: Call) -> t.Type:
        args = [self._check(arg) for arg in node.args]
        if node.target is None:
            if node.function.removeprefix(".") not in functions():
                return self._undeclared(node.place, node.function)
            node.function = node.function.removeprefix(".")
            return self._resolve(node, args, member=False)
        prefix = qualified_name(node.target)
        if prefix is not None and f"{prefix}.{node.function}" in functions():
            node.function = f"{prefix}.{node.function}"
            node.target = None
            return self._resolve(node, args, member=False)
        target = self._check(node.target)
        if node.function not in functions():
            return self._undeclared(node.place, node.function)
        return self._resolve(node, [target, *args], member=True)

    def _resolve(self, node: Call, args: list[t.Type], member: bool) -> t.Type:
        result: t.Type | None = None
        for overload in functions()[node.function]:
            if overload.member != member or len(overload.args) != len(args):
                continue
            kinds = self._bound.instantiate((overload.result, *overload.args), overload.params)
            if not self._bound.assignable(args, kinds[1:]):
                continue
            node.overloads.append(overload.id)
            found = self._bound.resolve(kinds[0])
            if result is None:
                result = found
            elif result.kind != t.DYN_KIND and found != result:
                result = t.DYN
        if result is None:
            shown = t.signature([self._bound.resolve(arg, t.DYN) for arg in args], member)
            self.report(node.place, f"found no matching overload for '{node.function}' applied to '{shown}'")
            return t.ERROR
        return result

    def _logic(self, node: Logic) -> t.Type:
        result = t.BOOL
        for term in node.terms:
            kind = self._check(term)
            if not self._bound.assignable([kind], [t.BOOL]):
                shown = self._bound.resolve(kind)
                self.report(term.place, f"expected type 'bool' but found '{shown.text}'")
                result = t.ERROR
        return result

    def _conditional(self, node: Conditional) -> t.Type:
        args = [self._check(node.test), self._check(node.then), self._check(node.otherwise)]
        choice = self._bound.fresh()
        if self._bound.assignable(args, [t.BOOL, choice, choice]):
            return self._bound.resolve(choice)
        shown = t.signature([self._bound.resolve(arg, t.DYN) for arg in args], False)
        self.report(node.place, f"found no matching overload for '_?_:_' applied to '{shown}'")
        return t.ERROR

    def _joined(self, before: t.Type | None, now: t.Type) -> t.Type:
        """The type of both. That elements are of one type is validated later, because `format` is exempt."""
        if before is None:
            return now
        return t.most_general(before, now) if self._bound.assignable([before], [now]) else t.DYN

    def _element(self, node: Node, optional: bool) -> t.Type:
        kind = self._check(node)
        if not optional:
            return kind
        inner, was_optional = t.unwrap_optional(self._bound.resolve(kind))
        if not was_optional and inner.kind != t.DYN_KIND:
            self.report(node.place, f"expected type 'optional_type({inner.text})' but found '{inner.text}'")
        return inner

    def _list(self, node: ListNode) -> t.Type:
        kind: t.Type | None = None
        for item, optional in zip(node.items, node.optional, strict=True):
            kind = self._joined(kind, self._element(item, optional))
        return t.list_of(kind or self._bound.fresh())

    def _map(self, node: MapNode) -> t.Type:
        keys: t.Type | None = None
        values: t.Type | None = None
        for (key, value), optional in zip(node.entries, node.optional, strict=True):
            keys = self._joined(keys, self._check(key))
            values = self._joined(values, self._element(value, optional))
        return t.map_of(keys or self._bound.fresh(), values or self._bound.fresh())

    def _message(self, node: Message) -> t.Type:
        return self._undeclared(node.place, node.name)

    def _fold(self, node: Fold) -> t.Type:
        source = self._bound.resolve(self._check(node.range))
        if node.macro in ("optMap", "optFlatMap"):
            return self._optional_map(node, source)
        if source.kind in (t.LIST, t.MAP):
            variable = source.params[0]
        elif source.kind in (t.DYN_KIND, t.ERROR_KIND, t.PARAM):
            self._bound.assignable([t.DYN], [source])
            variable = t.DYN
        else:
            allowed = "(must be list, map, or dynamic)"
            message = f"expression of type '{source.text}' cannot be range of a comprehension {allowed}"
            self.report(node.range.place, message)
            variable = t.ERROR
        self._scopes.append({node.variable: variable})
        filtered = self._check(node.filter) if node.filter is not None else t.BOOL
        body = self._check(node.body)
        self._scopes.pop()
        if node.macro == "map":
            self._predicate(node, filtered, body)
            return t.list_of(body)
        self._predicate(node, body, variable)
        return t.list_of(variable) if node.macro == "filter" else t.BOOL

    def _predicate(self, node: Fold, kind: t.Type, item: t.Type) -> None:
        """A predicate that is not a bool is reported where the expansion of the macro would fail."""
        if self._bound.assignable([kind], [t.BOOL]):
            return
        shown = self._bound.resolve(kind, t.DYN).text
        if node.macro in ("all", "exists"):
            self.report(node.body.place, f"expected type 'bool' but found '{shown}'")
            return
        listed = f"list({self._bound.resolve(item, t.DYN).text})"
        accumulated = "int" if node.macro == "exists_one" else listed
        self.report(
            node.place,
            f"found no matching overload for '_?_:_' applied to '({shown}, {accumulated}, {accumulated})'",
        )

    def _optional_map(self, node: Fold, source: t.Type) -> t.Type:
        inner = self._bound.fresh()
        if not self._bound.assignable([source], [t.optional_of(inner)]):
            shown = t.signature([source], True)
            self.report(node.place, f"found no matching overload for 'hasValue' applied to '{shown}'")
            self.report(node.place, f"found no matching overload for 'value' applied to '{shown}'")
            return t.ERROR
        self._scopes.append({node.variable: self._bound.resolve(inner)})
        body = self._check(node.body)
        self._scopes.pop()
        if node.macro == "optMap":
            return t.optional_of(body)
        self._bound.assignable([body], [t.optional_of(self._bound.fresh())])
        return body


_CHECKS: dict[type[Node], Callable[[Any, Any], t.Type]] = {
    Literal: Checker._literal, Ident: Checker._ident, Select: Checker._select, Call: Checker._call,
    Logic: Checker._logic, Conditional: Checker._conditional, ListNode: Checker._list, MapNode: Checker._map,
    Message: Checker._message, Fold: Checker._fold,
}  # fmt: skip
