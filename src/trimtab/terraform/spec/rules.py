"""Validators and plan modifiers in documents, where they are calls of Go functions written as text.

The well-known ones are understood in both directions. Of anything else a reader is told that it was left out.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any, Final

from trimtab.terraform.framework.modifiers import KeepState, Modifier, RequiresReplace
from trimtab.terraform.framework.validators import Between, Each, Length, Matches, OneOf, Satisfies, Validator

_MODIFIERS = "github.com/hashicorp/terraform-plugin-framework/resource/schema"
_VALIDATORS = "github.com/hashicorp/terraform-plugin-framework-validators"


def is_whole(value: Any) -> bool:
    return not isinstance(value, bool) and value == int(value)


WHOLE: Final = Satisfies(is_whole, "must be a whole number")
"""What tells an int64 from other numbers: Terraform has one type for all."""


def asks_for_whole(validator: Validator) -> bool:
    return isinstance(validator, Satisfies) and validator.text == WHOLE.text


def asks_for_double(validator: Validator) -> bool:
    """A number is one anyhow, in a document: nothing is lost when it is not said."""
    return isinstance(validator, Satisfies) and validator.text == f"must be at most {sys.float_info.max}"


_CALL = re.compile(r"\s*([a-z0-9]+)\.([A-Za-z0-9]+)\((.*)\)\s*", re.DOTALL)
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|-?\d+(?:\.\d+)?|true|false')


def modifier_code(kind: str, modifier: Modifier) -> dict[str, Any] | None:
    """`kind` is the attribute's type in the document. None: it cannot be said there."""
    package = f"{_go(kind)}planmodifier"
    if isinstance(modifier, RequiresReplace):
        return _code(f"{_MODIFIERS}/{package}", f"{package}.RequiresReplace()")
    if isinstance(modifier, KeepState):
        return _code(f"{_MODIFIERS}/{package}", f"{package}.UseStateForUnknown()")
    return None


def validator_code(kind: str, validator: Validator) -> dict[str, Any] | None:
    package = f"{_go(kind)}validator"
    call = _call(kind, validator)
    return None if call is None else _code(f"{_VALIDATORS}/{package}", f"{package}.{call}")


def _call(kind: str, validator: Validator) -> str | None:
    match validator:
        case OneOf(choices=values) if kind in ("string", "int64", "float64"):
            return f"OneOf({', '.join(map(_literal, values))})"
        case Length(least, most):
            return _range("Length" if kind == "string" else "Size", least or None, most)
        case Between(least, most) if kind in ("int64", "float64"):
            return _range("", least, most)
        case Matches(pattern=pattern) if kind == "string":
            return f"RegexMatches(regexp.MustCompile({_literal(f'^(?:{pattern.pattern})$')}), {_literal(validator.description)})"
    return None


def _range(word: str, least: float | None, most: float | None) -> str | None:
    match least, most:
        case None, None:
            return None
        case _, None:
            return f"{word}AtLeast({least})"
        case None, _:
            return f"{word}AtMost({most})"
        case _:
            return f"{word}Between({least}, {most})"


def modifier_of(rule: dict[str, Any]) -> Modifier | None:
    """None: not known here."""
    call = _CALL.fullmatch(_text(rule))
    if call is None or not call[1].endswith("planmodifier"):
        return None
    return {"RequiresReplace": RequiresReplace(), "UseStateForUnknown": KeepState()}.get(call[2])


def validator_of(rule: dict[str, Any]) -> Validator | None:
    call = _CALL.fullmatch(_text(rule))
    if call is None or not call[1].endswith("validator"):
        return None
    return _validator(call[2], call[3])


def _validator(name: str, inside: str) -> Validator | None:
    if name == "RegexMatches":
        found = re.fullmatch(r"regexp\.MustCompile\((.*?)\)\s*,\s*(\S.*)", inside.strip(), re.DOTALL)
        values = _literals(found[1]) + _literals(found[2]) if found else []
        return _matches(values) if len(values) == 2 else None
    values = _literals(inside)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    word, _, kind = _bounds(name)
    if name == "OneOf" and values:
        return OneOf(*values)
    if kind and len(numbers) == len(values) == (2 if kind == "Between" else 1):
        least = numbers[0] if kind != "AtMost" else None
        most = numbers[-1] if kind != "AtLeast" else None
        return Length(int(least or 0), None if most is None else int(most)) if word else Between(least, most)
    return None


def _matches(values: list[Any]) -> Validator | None:
    pattern, description = values
    try:
        re.compile(pattern)
    except (re.error, TypeError):
        return None
    anchored = re.fullmatch(r"\^\(\?:(.*)\)\$", pattern, re.DOTALL)
    return Matches(anchored[1] if anchored else f"(?s:.*)(?:{pattern})(?s:.*)", str(description))


def _bounds(name: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"(Length|Size|)(AtLeast|AtMost|Between)", name)
    return (found[1], "", found[2]) if found else ("", "", "")


def same_rules(one: Iterable[Validator], other: Iterable[Validator]) -> bool:
    """Whether two lists of validators say the same, as far as that can be seen from outside."""
    return [_seen(each) for each in one] == [_seen(each) for each in other]


def _seen(validator: Validator) -> tuple[Any, ...]:
    match validator:
        case OneOf():
            return (OneOf, validator.choices)
        case Matches():
            return (Matches, validator.pattern.pattern, validator.description)
        case Each():
            return (Each, tuple(map(_seen, validator.validators)))
        case Length() | Between() | Satisfies():
            return (type(validator), validator)
    return (type(validator), id(validator))


def _literals(inside: str) -> list[Any]:
    """The arguments of a call, if all of them are literals."""
    parts = _LITERAL.findall(inside)
    if _LITERAL.sub("", inside).replace(",", "").strip():
        return []
    return [part[1:-1] if part.startswith("`") else json.loads(part) for part in parts]


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(rule: dict[str, Any]) -> str:
    return str(rule["custom"]["schema_definition"])


def _go(kind: str) -> str:
    """The framework's packages know collections by what they are, nested or not."""
    return {"list_nested": "list", "set_nested": "set", "map_nested": "map", "single_nested": "object"}.get(kind, kind)


def _code(path: str, definition: str) -> dict[str, Any]:
    return {"custom": {"imports": [{"path": path}], "schema_definition": definition}}
