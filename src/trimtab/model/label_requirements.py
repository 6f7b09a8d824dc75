"""The conditions that a label selector is made of, checked, and their grammar.

`requirements` reads `app=web,tier in (a,b),!legacy`. Tokens, expectations and messages are those of
`k8s.io/apimachinery/pkg/labels`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from trimtab.model.errors import FieldError, FieldProblem, StatusError, bad_request
from trimtab.model.names import label_key_problems, label_value_problems

Operator = Literal["=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt"]


class Requirement(NamedTuple):
    """One condition on one label. All of a selector's hold together."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{self.values[0]}"
        return f"{self.key}{self.operator}{self.values[0]}"


def requirements(text: str) -> Sequence[Requirement]:
    """Read a selector. StatusError 400 when it is none."""
    return _Parser(text).requirements()


def requirement(key: str, operator: Operator, values: tuple[str, ...]) -> Requirement:
    """Check as labels.NewRequirement does."""
    errors = []
    if problems := label_key_problems(key):
        errors.append(FieldError("key", FieldProblem.INVALID, key, "; ".join(problems)))
    problem = ""
    if operator in ("in", "notin"):
        if not values:
            problem = "for 'in', 'notin' operators, values set can't be empty"
    elif operator in ("exists", "!"):
        if values:
            problem = "values set must be empty for exists and does not exist"
    elif operator in ("gt", "lt"):
        if len(values) != 1:
            problem = "for 'Gt', 'Lt' operators, exactly one value is required"
        errors += [
            FieldError(
                f"values[{i}]", FieldProblem.INVALID, value, "for 'Gt', 'Lt' operators, the value must be an integer"
            )
            for i, value in enumerate(values)
            if not INTEGER.fullmatch(value)
        ]
    elif len(values) != 1:
        problem = "exact-match compatibility requires one single value"
    if problem:
        errors.append(FieldError("values", FieldProblem.INVALID, list(values), problem))
    for i, value in enumerate(values):
        if problems := label_value_problems(value):
            errors.append(FieldError(f"values[{i}][{key}]", FieldProblem.INVALID, value, "; ".join(problems)))
    if errors:
        texts = list(dict.fromkeys(map(str, errors)))
        raise bad_request(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return Requirement(key, operator, values)


class _Parser:
    """Recursive descent over tokens; what is expected where, and how it is said, is apimachinery's."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def requirements(self) -> Sequence[Requirement]:
        found: list[Requirement] = []
        while True:
            kind, literal = self._peek()
            if kind == "end":
                return found
            if kind not in ("name", "!"):
                raise bad_request(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._one())
            except StatusError as error:
                raise bad_request(f"unable to parse requirement: {error.message}") from None
            kind, literal = self._next()
            if kind == "end":
                return found
            if kind != ",":
                raise bad_request(f"found '{literal}', expected: ',' or 'end of string'")
            kind, literal = self._peek()
            if kind not in ("name", "!"):
                raise bad_request(f"found '{literal}', expected: identifier after ','")

    def _one(self) -> Requirement:
        kind, key = self._next()
        absent = kind == "!"
        if absent:
            kind, key = self._next()
        if kind != "name":
            raise bad_request(f"found '{key}', expected: identifier")
        if problems := label_key_problems(key):
            raise bad_request(str(FieldError("<nil>", FieldProblem.INVALID, key, "; ".join(problems))))
        if absent:
            return requirement(key, "!", ())
        if self._peek()[0] in ("end", ","):
            return requirement(key, "exists", ())
        _, literal = self._next()
        operator = _BINARY.get(literal)
        if operator is None:
            raise bad_request(f"found '{literal}', expected: {_BINARY_LISTED}")
        values = self._set() if operator in ("in", "notin") else self._value()
        return requirement(key, operator, tuple(sorted(values)))

    def _value(self) -> set[str]:
        if self._peek()[0] in ("end", ","):
            return {""}
        kind, literal = self._next()
        if kind != "name":
            raise bad_request(f"found '{literal}', expected: identifier")
        return {literal}

    def _set(self) -> set[str]:
        kind, literal = self._next()
        if kind != "(":
            raise bad_request(f"found '{literal}' expected: '('")
        kind, literal = self._peek()
        if kind == ")":
            self._next()
            return {""}
        if kind not in ("name", ","):
            raise bad_request(f"found '{literal}', expected: ',', ')' or identifier")
        values = self._listed()
        self._next()  # the closing parenthesis: `_listed` stops nowhere else
        return values

    def _listed(self) -> set[str]:
        """Names between commas, up to the closing parenthesis. Between two commas is the empty string."""
        values: set[str] = set()
        while True:
            kind, literal = self._next()
            following, next_literal = self._peek()
            if kind == "name":
                values.add(literal)
                if following == ")":
                    return values
                if following != ",":
                    raise bad_request(f"found '{next_literal}', expected: ',' or ')'")
            elif kind == ",":
                if not values:
                    values.add("")
                if following == ")":
                    values.add("")
                    return values
                if following == ",":
                    self._next()
                    values.add("")
            else:
                raise bad_request(f"found '{literal}', expected: ',', or identifier")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at]

    def _next(self) -> tuple[str, str]:
        token = self._tokens[self._at]
        if self._at < len(self._tokens) - 1:
            self._at += 1
        return token


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, literal): kind is "name", a symbol, or "end". `in` and `notin` are names that may stand as operators."""
    found = []
    for match in _TOKEN.finditer(text):
        literal = match.group()
        found.append(("name" if literal[0] not in "=!(),><" else literal, literal))
    found.append(("end", ""))
    return found


_BINARY: dict[str, Operator] = {
    "in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt",
}  # fmt: skip
_BINARY_LISTED = "in, notin, =, ==, !=, gt, lt"


_TOKEN = re.compile(r"==|!=|[=!(),><]|[^=!(),><\s]+")
INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
