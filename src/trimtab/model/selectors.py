"""Label and field selectors: which objects a list, a watch or a controller means.

`parse` reads what a query string carries and refuses it with the messages of `k8s.io/apimachinery/pkg/{labels,fields}`.
`matches` runs once for each object of a list, so it does nothing but look up and compare.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from trimtab.model.errors import bad_request
from trimtab.model.label_requirements import INTEGER, Operator, Requirement, requirement, requirements

__all__ = ["FieldRequirement", "FieldSelector", "LabelSelector", "Requirement"]

MAX_SELECTOR = 65_536
"""The longest selector that is read, in characters."""


class LabelSelector(msgspec.Struct, frozen=True):
    """Which labels an object must carry. Without requirements it matches everything; `nothing` matches no object."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read `app=web,tier in (a,b),!legacy`. StatusError 400 when it is not a selector."""
        if len(text) > MAX_SELECTOR:
            raise bad_request(f"the label selector is longer than {MAX_SELECTOR} characters")
        return cls(tuple(sorted(requirements(text), key=lambda r: r.key)))

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None) -> LabelSelector:
        """Read a `LabelSelector` of the API (matchLabels, matchExpressions). None matches nothing, {} everything."""
        if document is None:
            return cls(nothing=True)
        found = [requirement(key, "=", (value,)) for key, value in (document.get("matchLabels") or {}).items()]
        for expression in document.get("matchExpressions") or ():
            said = expression.get("operator", "")
            operator = _DOCUMENT_OPERATORS.get(said)
            if operator is None:
                raise bad_request(f'"{said}" is not a valid label selector operator')
            found.append(requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
        return cls(tuple(sorted(found, key=lambda r: r.key)))

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
        return all(
            (values.get(field, "") == value) is (operator == "=") for field, operator, value in self.requirements
        )

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_DOCUMENT_OPERATORS: dict[str, Operator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def _compares(value: str | None, operator: str, bound: str) -> bool:
    if value is None or not INTEGER.fullmatch(value):
        return False
    return int(value) > int(bound) if operator == "gt" else int(value) < int(bound)


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


_FIELD_OPERATOR = re.compile(r"!=|==|=")
_ESCAPED = re.compile(r"[\\,=]")
