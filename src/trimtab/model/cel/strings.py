"""Strings: the standard functions, version 2 of the `strings` extension, and Kubernetes' regular expressions.

Regular expressions run on RE2, whose time is linear; compiled ones are kept, and their programs are limited in memory.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from trimtab.model.cel import times
from trimtab.model.cel.errors import EvaluationError, no_such_overload
from trimtab.model.cel.stdlib import bounded, double_shown, to_string
from trimtab.model.cel.types import Type
from trimtab.model.cel.values import EACH, LISTS, MAPS, Duration, Function, Timestamp, Uint, find, spend, type_name

_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code + 32: code for code in range(ord("A"), ord("Z") + 1)}
_QUOTED = str.maketrans({
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"',
})  # fmt: skip


def texts(*values: Any) -> None:
    for value in values:
        if type(value) is not str:
            raise no_such_overload()


def integers(*values: Any) -> None:
    for value in values:
        if type(value) is not int:
            raise no_such_overload()


@functools.lru_cache(maxsize=512)
def pattern(text: str) -> Any:
    """A compiled regular expression. Raises ValueError."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 4 << 20
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        problem, _, part = (reason.decode() if isinstance(reason, bytes) else str(reason)).partition(": ")
        raise ValueError(f"error parsing regexp: {_PROBLEMS.get(problem, problem)}: `{part}`") from None


_PROBLEMS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}  # RE2's words to those of Go's regexp


def _pattern(text: str) -> Any:
    try:
        return pattern(text)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def matches(text: Any, expression: Any) -> bool:
    texts(text, expression)
    return _pattern(expression).search(text) is not None


def find_first(text: Any, expression: Any) -> str:
    texts(text, expression)
    match = _pattern(expression).search(text)
    return "" if match is None else match.group(0)


def find_all(text: Any, expression: Any, limit: Any = -1) -> list[str]:
    texts(text, expression)
    integers(limit)
    found: list[str] = []
    for match in _pattern(expression).finditer(text):
        if len(found) == limit:
            break
        found.append(match.group(0))
    return found


def contains(text: Any, part: Any) -> bool:
    texts(text, part)
    return part in text


def starts_with(text: Any, part: Any) -> bool:
    texts(text, part)
    return bool(text.startswith(part))


def ends_with(text: Any, part: Any) -> bool:
    texts(text, part)
    return bool(text.endswith(part))


def char_at(text: Any, place: Any) -> str:
    texts(text)
    integers(place)
    if not 0 <= place <= len(text):
        raise EvaluationError(f"index out of range: {place}")
    return str(text[place : place + 1])


def index_of(text: str, part: Any, offset: Any = 0) -> int:
    texts(text, part)
    integers(offset)
    if part == "":
        return int(offset)
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.find(part, offset)


def last_index_of(text: str, part: Any, offset: Any = None) -> int:
    texts(text, part)
    if offset is None:
        if part == "":
            return len(text)
        if text == "":  # cel-go looks from the last character on, and there is none
            raise EvaluationError("index out of range: -1")
        return text.rfind(part)
    integers(offset)
    if part == "":
        return int(offset)
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def lower_ascii(text: Any) -> str:
    texts(text)
    return str(text.translate(_LOWER))


def upper_ascii(text: Any) -> str:
    texts(text)
    return str(text.translate(_UPPER))


def replace(text: Any, old: Any, new: Any, limit: Any = -1) -> str:
    texts(text, old, new)
    integers(limit)
    places = text.count(old)
    length = len(text) + len(new) * (places if limit < 0 else min(limit, places))
    bounded(length)
    spend(length >> 10)
    return str(text.replace(old, new, limit))


def split(text: Any, separator: Any, limit: Any = -1) -> list[str]:
    texts(text, separator)
    integers(limit)
    if limit == 0:
        return []
    if separator:
        return list(text.split(separator, limit - 1 if limit > 0 else -1))
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def substring(text: Any, start: Any, end: Any = None) -> str:
    texts(text)
    stop = len(text) if end is None else end
    integers(start, stop)
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, stop):
        if not 0 <= place <= len(text):
            raise EvaluationError(f"index out of range: {place}")
    return str(text[start:stop])


def trim(text: Any) -> str:
    texts(text)
    return str(text.strip(_SPACE))


def join(items: Any, separator: Any = "") -> str:
    texts(separator)
    if not isinstance(items, LISTS):
        raise no_such_overload()
    parts = list(items)
    for part in parts:
        if type(part) is not str:
            raise EvaluationError(f"join: invalid input: {part}")
    bounded(sum(map(len, parts)) + len(separator) * len(parts))
    return str(separator.join(parts))


def quote(text: Any) -> str:
    texts(text)
    return f'"{text.translate(_QUOTED)}"'


def formatted(text: Any, args: Any) -> str:
    """`"%s has %d".format([name, count])`."""
    texts(text)
    if not isinstance(args, LISTS):
        raise no_such_overload()
    parts: list[str] = []
    used = 0
    for literal, precision, clause in clauses(text):
        parts.append(literal)
        if clause:
            if used >= len(args):
                raise EvaluationError(f"index {used} out of range")
            try:
                parts.append(_clause(clause, precision, args[used]))
            except ValueError as error:
                raise EvaluationError(f"error during formatting: {error}") from None
            used += 1
    length = sum(map(len, parts))
    bounded(length)
    spend(length >> 10)
    return "".join(parts)


def clauses(text: str) -> list[tuple[str, int | None, str]]:
    """The literals of a format and the clause after each: text, precision, letter."""
    found: list[tuple[str, int | None, str]] = []
    literal: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "%":
            stop = text.find("%", at)
            stop = len(text) if stop < 0 else stop
            literal.append(text[at:stop])
            at = stop
            continue
        if text[at + 1 : at + 2] == "%":
            literal.append("%")
            at += 2
            continue
        at += 1
        precision = None
        if text[at : at + 1] == ".":
            start = at + 1
            at = start
            while text[at : at + 1].isdigit():
                at += 1
            if at >= len(text):
                raise EvaluationError(
                    "could not parse formatting clause: error while parsing precision: "
                    "could not find end of precision specifier"
                )
            precision = min(int(text[start:at] or 0), 400) if at - start < 10 else 400
        if at >= len(text):
            raise EvaluationError("unexpected end of string")
        if text[at] not in "sdfebxXo":
            raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{text[at]}"')
        found.append(("".join(literal), precision, text[at]))
        literal = []
        at += 1
    found.append(("".join(literal), None, ""))
    return found


_ACCEPTED = {
    "d": ("decimal clause can only be used on integers", ("int", "uint")),
    "f": ("fixed-point clause can only be used on doubles", ("double",)),
    "e": ("scientific clause can only be used on doubles", ("double",)),
    "b": ("only integers and bools can be formatted as binary", ("int", "uint", "bool")),
    "x": ("only integers, byte buffers, and strings can be formatted as hex", ("int", "uint", "string", "bytes")),
    "o": ("octal clause can only be used on integers", ("int", "uint")),
}


def clause_problem(clause: str, name: str) -> str | None:
    """Why a value of this type cannot be formatted so."""
    if clause == "s":
        if name in ("string", "bool", "bytes", "int", "uint", "double", "map", "list", "type", "null_type", "dyn",
                    "google.protobuf.Timestamp", "google.protobuf.Duration"):  # fmt: skip
            return None
        return (
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
            f"and timestamps, was given {name}"
        )
    message, accepted = _ACCEPTED[clause.lower()]
    return None if name in accepted or name == "dyn" else f"{message}, was given {name}"


def _clause(clause: str, precision: int | None, value: Any) -> str:
    name = type_name(value)
    if clause in "fe" and value in ("NaN", "Infinity", "-Infinity"):
        value, name = float(value), "double"
    problem = clause_problem(clause, name)
    if problem:
        raise ValueError(problem)
    if clause == "s":
        return _text(value)
    if clause == "d":
        return str(int(value))
    if clause == "f":
        digits = 6 if precision is None else precision
        value += 0.0  # formats do not know a negative zero
        return f"{value:,.{digits}f}" if math.isfinite(value) else _special(value)
    if clause == "e":
        if not math.isfinite(value):
            return _special(value)
        mantissa, _, exponent = f"{value + 0.0:.{6 if precision is None else precision}e}".partition("e")
        superscript = exponent.lstrip("+0").rjust(2, "0") if exponent[0] == "+" else f"-{exponent[1:].zfill(2)}"
        return f"{mantissa}\u202f\u00d7\u202f10{superscript.translate(_SUPERSCRIPT)}"
    if clause == "b":
        return f"{int(value):b}"
    if clause == "o":
        return f"{int(value):o}"
    if isinstance(value, str | bytes):
        text = (value.encode() if isinstance(value, str) else value).hex()
    else:
        text = f"{int(value):x}"
    return text.upper() if clause == "X" else text


_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _special(value: float) -> str:
    return "NaN" if value != value else ("∞" if value > 0 else "-∞")


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, LISTS):
        spend(len(value) + EACH)
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, MAPS):
        spend(len(value) + EACH)
        entries = sorted((_literal(key), _literal(find(value, key))) for key in value)
        return "{" + ", ".join(f"{key}:{item}" for key, item in entries) + "}"
    if isinstance(value, Type):
        return value.name
    return to_string(value)


def _literal(value: Any) -> str:
    """A value inside a list or a map, as an expression would write it."""
    if type(value) is str:
        spend(len(value) >> 6)
        return quote(value)
    if type(value) is bytes:
        return f'b"{value.decode("utf-8", "replace").translate(_QUOTED)}"'
    if type(value) is float:
        return f"{value:.6f}" if math.isfinite(value) else f'"{double_shown(value)}"'
    if type(value) is Duration:
        return f'duration("{times.shown(value)}")'
    if type(value) is Timestamp:
        return f'timestamp("{times.shown(value)}")'
    if type(value) is int or type(value) is Uint:
        return str(int(value))
    return _text(value)


FUNCTIONS: dict[str, Function] = {
    "matches": matches, ".matches": matches, ".contains": contains, ".startsWith": starts_with, ".endsWith": ends_with,
    ".charAt": char_at, ".lowerAscii": lower_ascii, ".upperAscii": upper_ascii, ".replace": replace, ".split": split,
    ".substring": substring, ".trim": trim, ".join": join, ".format": formatted, "strings.quote": quote,
    ".find": find_first, ".findAll": find_all,
}  # fmt: skip
