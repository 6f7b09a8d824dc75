"""Label and field selectors: which objects a list, a watch or a controller means.

`parse` reads what a query string carries and refuses it with the messages of `k8s.io/apimachinery/pkg/{labels,fields}`.
`matches` runs once for each object of a list, so it does nothing but look up and compare.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from trimtab.model.errors import FieldError, FieldProblem, StatusError, bad_request
from trimtab.model.names import label_key_problems, label_value_problems

MAX_SELECTOR = 65_536
"""The longest selector that is read, in characters."""

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


class LabelSelector(msgspec.Struct, frozen=True):
    """Which labels an object must carry. Without requirements it matches everything; `nothing` matches no object."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read `app=web,tier in (a,b),!legacy`. StatusError 400 when it is not a selector."""
        if len(text) > MAX_SELECTOR:
            raise bad_request(f"the label selector is longer than {MAX_SELECTOR} characters")
        return cls(tuple(sorted(_LabelParser(text).requirements(), key=lambda r: r.key)))

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None) -> LabelSelector:
        """Read a `LabelSelector` of the API (matchLabels, matchExpressions). None matches nothing, {} everything."""
        if document is None:
            return cls(nothing=True)
        found = [_requirement(key, "=", (value,)) for key, value in (document.get("matchLabels") or {}).items()]
        for expression in document.get("matchExpressions") or ():
            said = expression.get("operator", "")
            operator = _DOCUMENT_OPERATORS.get(said)
            if operator is None:
                raise bad_request(f'"{said}" is not a valid label selector operator')
            found.append(_requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
        return cls(tuple(sorted(found, key=lambda r: r.key)))

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> LabelSelector:
        """Exactly these labels, taken as they are (a ReplicationController's or Service's selector)."""
        return cls(tuple(Requirement(key, "=", (labels[key],)) for key in sorted(labels)))

    @property
    def empty(self) -> bool:
        return not self.requirements and not self.nothing

    def matches(self, values: Mapping[str, str]) -> bool:
        for key, operator, wanted in self.requirements:
            value = values.get(key)
            if operator in ("=", "==", "in"):
                if value not in wanted:
                    return False
            elif operator in ("!=", "notin"):
                if value is not None and value in wanted:
                    return False
            elif operator == "exists":
                if value is None:
                    return False
            elif operator == "!":
                if value is not None:
                    return False
            elif not _compares(value, operator, wanted[0]):
                return False
        return not self.nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


class FieldRequirement(NamedTuple):
    """One condition on one field. A field that an object lacks counts as the empty string."""

    field: str
    operator: Literal["=", "!="]
    value: str

    def __str__(self) -> str:
        escaped = _ESCAPED.sub(lambda found: "\\" + found.group(), self.value)
        return f"{self.field}{self.operator}{escaped}"


class FieldSelector(msgspec.Struct, frozen=True):
    """Which values an object's selectable fields must have. Whether a field is selectable is the server's to say."""

    requirements: tuple[FieldRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        r"""Read `metadata.name=web,status.phase!=Running`; `\,`, `\=` and `\\` are escapes. StatusError 400."""
        if len(text) > MAX_SELECTOR:
            raise bad_request(f"the field selector is longer than {MAX_SELECTOR} characters")
        found = []
        for term in sorted(_split_terms(text)):
            if not term:
                continue
            split = _FIELD_OPERATOR.search(term)
            if split is None:
                raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
            operator: Literal["=", "!="] = "!=" if split.group() == "!=" else "="
            found.append(FieldRequirement(term[: split.start()], operator, _unescape(term[split.end() :])))
        return cls(tuple(found))

    @property
    def empty(self) -> bool:
        return not self.requirements

    def exact(self, field: str) -> str | None:
        """The one value that `field` must have, when the selector says so."""
        return next((r.value for r in self.requirements if r.field == field and r.operator == "="), None)

    def matches(self, values: Mapping[str, str]) -> bool:
        for field, operator, value in self.requirements:
            if (values.get(field, "") == value) is (operator == "!="):
                return False
        return True

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_DOCUMENT_OPERATORS: dict[str, Operator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_BINARY: dict[str, Operator] = {
    "in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt",
}  # fmt: skip
_BINARY_LISTED = "in, notin, =, ==, !=, gt, lt"


def _requirement(key: str, operator: Operator, values: tuple[str, ...]) -> Requirement:
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
            if not _INTEGER.fullmatch(value)
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


def _compares(value: str | None, operator: str, bound: str) -> bool:
    if value is None or not _INTEGER.fullmatch(value):
        return False
    return int(value) > int(bound) if operator == "gt" else int(value) < int(bound)


class _LabelParser:
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
            return _requirement(key, "!", ())
        if self._peek()[0] in ("end", ","):
            return _requirement(key, "exists", ())
        _, literal = self._next()
        operator = _BINARY.get(literal)
        if operator is None:
            raise bad_request(f"found '{literal}', expected: {_BINARY_LISTED}")
        values = self._set() if operator in ("in", "notin") else self._value()
        return _requirement(key, operator, tuple(sorted(values)))

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


def _split_terms(text: str) -> list[str]:
    terms, start, escaped = [], 0, False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            terms.append(text[start:at])
            start = at + 1
    terms.append(text[start:])
    return terms


def _unescape(value: str) -> str:
    if not _ESCAPED.search(value):
        return value
    result, escaped = [], False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{char}")
            result.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            result.append(char)
    if escaped:
        raise bad_request("invalid field selector: invalid escape sequence: \\")
    return "".join(result)


_TOKEN = re.compile(r"==|!=|[=!(),><]|[^=!(),><\s]+")
_FIELD_OPERATOR = re.compile(r"!=|==|=")
_ESCAPED = re.compile(r"[\\,=]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
