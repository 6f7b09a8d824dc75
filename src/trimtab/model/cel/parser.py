"""From text to a tree. Operators by precedence, macros recognised where they stand.

Depth is bounded (`MAX_DEPTH`, `MAX_NESTING`), so that the checker, the estimator and the compiled closures may
recurse without care.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, TypeVar

from trimtab.model.cel.errors import CelError, Issue
from trimtab.model.cel.lexer import MAX_SOURCE, Source, Token, bytes_value, string_value, tokens
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
from trimtab.model.cel.types import RESERVED
from trimtab.model.cel.values import Uint

MAX_DEPTH = 250  # of the tree, as cel-go
MAX_NESTING = 120  # of parentheses, arguments and branches: each takes five frames of the parser
_INT_MAX = (1 << 63) - 1
_UINT_MAX = (1 << 64) - 1
_OPERATORS = {
    "==": "_==_", "!=": "_!=_", "<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "in": "@in",
    "+": "_+_", "-": "_-_", "*": "_*_", "/": "_/_", "%": "_%_",
}  # fmt: skip
_LEVELS = {
    "||": 0, "&&": 1, "==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "in": 2, "+": 3, "-": 3, "*": 4, "/": 4,
    "%": 4,
}  # fmt: skip
_STARTS = frozenset({"[", "{", "(", ".", "-", "!", "true", "false", "null", "float", "int", "uint", "string", "bytes",
                     "ident"})  # fmt: skip
_EXPECTED = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_QUANTIFIERS = frozenset({"all", "exists", "exists_one"})
N = TypeVar("N", bound=Node)


def parse(text: str) -> tuple[Node, Source]:
    """The tree of an expression. Raises CelError."""
    source = Source(text)
    if len(text) > MAX_SOURCE:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {MAX_SOURCE}"
        raise CelError("", [Issue(-1, -1, message)])
    found, issues = tokens(source)
    parser = _Parser(source, found, issues)
    node = parser.whole()
    if issues:
        raise CelError(text, issues)
    return node, source


class _Stop(Exception):  # noqa: N818 - ends the parse; the issue is already noted
    pass


class _Parser:
    def __init__(self, source: Source, found: list[Token], issues: list[Issue]) -> None:
        self._source = source
        self._tokens = found
        self._issues = issues
        self._at = 0
        self._nesting = 0

    def whole(self) -> Node:
        try:
            node = self._expression()
            token = self._peek()
            if token.kind != "eof":
                rest = len(self._tokens) - self._at
                word = "extraneous" if rest == 2 else "mismatched"
                self._fail(token.place, f"Syntax error: {word} input '{token.shown}' expecting <EOF>")
            return node
        except _Stop:
            return Literal(0, None)

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "eof":
            self._at += 1
        return token

    def _take(self, kind: str) -> Token | None:
        token = self._tokens[self._at]
        if token.kind != kind:
            return None
        self._at += 1
        return token

    def _expect(self, kind: str, among: str = "") -> Token:
        token = self._peek()
        if token.kind != kind:
            message = f"missing '{kind}' at '{token.shown}'"
            if kind == "ident" and token.kind in ("true", "false", "null", "eof"):
                message = f"mismatched input '{token.shown}' expecting IDENTIFIER"
            elif kind == "ident":
                message = f"no viable alternative at input '{self._tokens[self._at - 1].text}{token.shown}'"
            elif among or kind == ":":
                message = f"mismatched input '{token.shown}' expecting {among or repr(kind)}"
            self._fail(token.place, f"Syntax error: {message}")
        return self._next()

    def _note(self, place: int, message: str) -> None:
        self._issues.append(self._source.issue(place, message))

    def _fail(self, place: int, message: str) -> NoReturn:
        self._note(place, message)
        raise _Stop

    def _grow(self, node: N, children: Iterable[Node]) -> N:
        node.depth = 1 + max((child.depth for child in children), default=0)
        if node.depth > MAX_DEPTH:
            self._fail(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")
        return node

    def _expression(self) -> Node:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self._fail(-1, f"expression recursion limit exceeded: {MAX_NESTING}")
        node = self._binary(0)
        question = self._take("?")
        if question is not None:
            then = self._binary(0)
            self._expect(":")
            otherwise = self._expression()
            node = self._grow(Conditional(question.place, node, then, otherwise), (node, then, otherwise))
        self._nesting -= 1
        return node

    def _binary(self, level: int) -> Node:
        """A chain of operators that bind as `level` or tighter. The right side climbs, the left side loops."""
        left = self._unary()
        while True:
            token = self._peek()
            binding = _LEVELS.get(token.kind, -1)
            if binding < level:
                return left
            self._next()
            if binding <= 1:
                left = self._logic(left, token, binding)
                continue
            right = self._binary(binding + 1)
            left = self._grow(Call(token.place, _OPERATORS[token.kind], None, [left, right]), (left, right))

    def _logic(self, left: Node, token: Token, binding: int) -> Node:
        terms = [left, self._binary(binding + 1)]
        while self._take(token.kind) is not None:
            terms.append(self._binary(binding + 1))
        return self._grow(Logic(token.place, token.kind == "&&", terms), terms)

    def _unary(self) -> Node:
        token = self._peek()
        if token.kind not in ("!", "-"):
            return self._member()
        count = 0
        while self._take(token.kind) is not None:
            count += 1
        place = token.place
        if token.kind == "-" and count == 1 and self._peek().kind in ("int", "float"):
            # A single minus belongs to the number, so that the smallest integer can be written.
            operand = self._member(self._tokens[self._at - 1].place)
            count -= 1
        else:
            operand = self._member()
        if count % 2 == 0:
            return operand
        return self._grow(Call(place, "!_" if token.kind == "!" else "-_", None, [operand]), (operand,))

    def _member(self, minus: int = -1) -> Node:
        node = self._primary(minus)
        while True:
            token = self._peek()
            if token.kind == ".":
                node = self._selected(node)
            elif token.kind == "[":
                self._next()
                optional = self._take("?") is not None
                index = self._expression()
                self._expect("]")
                function = "_[?_]" if optional else "_[_]"
                node = self._grow(Call(token.place, function, None, [node, index]), (node, index))
            elif token.kind == "{" and (name := qualified_name(node)) is not None:
                node = self._message(name)
            else:
                return node

    def _selected(self, operand: Node) -> Node:
        dot = self._next()
        if self._take("?") is not None:
            field = self._expect("ident")
            return self._grow(Select(dot.place, operand, field.text, optional=True), (operand,))
        name = self._expect("ident")
        if self._peek().kind != "(":
            return self._grow(Select(dot.place, operand, name.text), (operand,))
        opening = self._next()
        args = self._list(")")[0]
        macro = self._fold(opening.place, name.text, operand, args)
        if macro is not None:
            return self._grow(macro, (operand, *args))
        return self._grow(Call(opening.place, name.text, operand, args), (operand, *args))

    def _primary(self, minus: int) -> Node:
        token = self._peek()
        kind = token.kind
        if kind == "ident" or kind == ".":
            return self._name()
        if kind not in _STARTS:
            following = self._tokens[min(self._at + 1, len(self._tokens) - 1)].kind
            word = "extraneous" if following in _STARTS and kind != "eof" else "mismatched"
            self._fail(token.place, f"Syntax error: {word} input '{token.shown}' expecting {_EXPECTED}")
        self._next()
        if kind == "(":
            node = self._expression()
            self._expect(")")
            return node
        if kind == "[":
            items, optional = self._list("]")
            return self._grow(ListNode(token.place, items, optional), items)
        if kind == "{":
            entries, optional = self._entries()
            return self._grow(MapNode(token.place, entries, optional), (part for entry in entries for part in entry))
        return Literal(token.place if minus < 0 else minus, self._literal(token, minus))

    def _name(self) -> Node:
        dot = self._take(".")
        token = self._expect("ident")
        start = token.place if dot is None else dot.place
        if token.text in RESERVED:
            self._fail(start, f"reserved identifier: {token.text}")
        name = token.text if dot is None else f".{token.text}"
        opening = self._take("(")
        if opening is None:
            return Ident(token.place, name)
        args = self._list(")")[0]
        if name == "has" and len(args) == 1:
            return self._presence(opening.place, args[0])
        return self._grow(Call(opening.place, name, None, args), args)

    def _presence(self, place: int, arg: Node) -> Node:
        if isinstance(arg, Select) and not arg.optional and not arg.test:
            return self._grow(Select(place, arg.operand, arg.field, test=True), (arg,))
        self._note(arg.place, "invalid argument to has() macro")
        return Literal(place, False)

    def _fold(self, place: int, name: str, operand: Node, args: list[Node]) -> Node | None:
        """The macro that this call is, if it is one."""
        if name in _QUANTIFIERS and len(args) == 2:
            problem = "argument must be a simple name"
        elif (name == "map" and len(args) in (2, 3)) or (name == "filter" and len(args) == 2):
            problem = "argument is not an identifier"
        elif name in ("optMap", "optFlatMap") and len(args) == 2:
            problem = f"{name}() variable name must be a simple identifier"
        else:
            return None
        variable = args[0]
        if not isinstance(variable, Ident):
            self._note(variable.place, problem)
            return Literal(place, False)
        condition = args[1] if len(args) == 3 else None
        return Fold(place, name, operand, variable.name, args[-1], condition)

    def _list(self, closing: str) -> tuple[list[Node], list[bool]]:
        items: list[Node] = []
        optional: list[bool] = []
        if closing == "]" and self._peek().kind == "," and self._tokens[self._at + 1].kind == "]":
            self._next()
        while self._peek().kind != closing:
            optional.append(closing == "]" and self._take("?") is not None)
            items.append(self._expression())
            if self._take(",") is None:
                break
            if closing == ")" and self._peek().kind == ")":
                self._expression()  # a trailing comma is allowed in lists only: says what was expected
        self._expect(closing, "{']', ','}" if closing == "]" and items else "")
        return items, optional

    def _entries(self) -> tuple[list[tuple[Node, Node]], list[bool]]:
        entries: list[tuple[Node, Node]] = []
        optional: list[bool] = []
        while self._peek().kind != "}":
            optional.append(self._take("?") is not None)
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression()))
            if self._take(",") is None:
                break
        self._expect("}", "{'}', ','}" if entries else "")
        return entries, optional

    def _message(self, name: str) -> Node:
        place = self._next().place
        while self._peek().kind != "}":
            self._take("?")
            self._expect("ident")
            self._expect(":")
            self._expression()
            if self._take(",") is None:
                break
        self._expect("}")
        return Message(place, name)

    def _literal(self, token: Token, minus: int) -> Any:
        kind, text, place = token.kind, token.text, token.place if minus < 0 else minus
        sign = "" if minus < 0 else "-"
        try:
            if kind == "int":
                number = int(sign + text, 16 if text.startswith("0x") else 10) if len(text) < 30 else _INT_MAX + 1
                if not -_INT_MAX - 1 <= number <= _INT_MAX:
                    self._fail(place, "invalid int literal")
                return number
            if kind == "uint":
                number = int(text[:-1], 16 if text.startswith("0x") else 10) if len(text) < 30 else -1
                if not 0 <= number <= _UINT_MAX:
                    self._fail(place, "invalid uint literal")
                return Uint(number)
            if kind == "float":
                double = float(sign + text)
                if double in (float("inf"), float("-inf")):
                    self._fail(place, "invalid double literal")
                return double
            if kind == "string":
                return string_value(text)
            if kind == "bytes":
                return bytes_value(text)
        except ValueError as error:
            self._fail(place, str(error))
        return {"true": True, "false": False}.get(kind)
