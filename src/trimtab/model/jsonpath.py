r"""Kubernetes JSONPath: printer columns, `kubectl -o jsonpath`, sorting, scale and selectable fields.

The dialect is that of `k8s.io/client-go/util/jsonpath`, its habits included: `['a.b']` is two steps (`['a\.b']` is one
key with a dot), and a filter compares one element with one. A path of plain names, which most columns are, compiles to
a chain of look-ups; all else to a chain of functions from a list of values to a list of values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

MAX_PATH = 16_384
"""The longest path or template, in characters."""
MAX_DEPTH = 16
"""How deep filters and ranges may be nested."""
MAX_RESULTS = 100_000
"""How many values one step may yield; only chains of `..` get there."""

Step = Callable[[list[Any]], list[Any]]


class JSONPathError(ValueError):
    """The path cannot be read, or an object is not of the shape that it asks for."""


class Path:
    """A compiled path. `find` never fails: where the object has another shape there is no value."""

    __slots__ = ("_keys", "_steps", "text")

    def __init__(self, text: str, steps: list[Step], keys: tuple[str, ...] | None) -> None:
        self.text = text
        self._steps = steps
        self._keys = keys

    def find(self, obj: Any) -> list[Any]:
        if self._keys is None:
            try:
                return _run(self._steps, [obj])
            except JSONPathError:
                return []
        for key in self._keys:
            if not isinstance(obj, dict) or key not in obj:
                return []
            obj = obj[key]
        return [obj]

    def first(self, obj: Any) -> Any:
        """The first value or None: what a column shows."""
        if self._keys is None:
            found = self.find(obj)
            return found[0] if found else None
        for key in self._keys:
            if not isinstance(obj, dict):
                return None
            obj = obj.get(key)
        return obj

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The names of a plain dotted path; None for any other."""
        return self._keys

    def __repr__(self) -> str:
        return f"Path({self.text!r})"


def compile(path: str) -> Path:  # noqa: A001 - as re.compile
    """Read `.spec.replicas`, `{.spec.replicas}` or `spec.replicas`. JSONPathError when it is none."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    if text and text[0] not in ".[$@":
        text = "." + text
    parser = _Parser(text)
    steps = parser.steps(closed=False)
    if parser.keyword:
        raise JSONPathError(f"unrecognized identifier {parser.keyword}")
    return Path(path, steps, tuple(parser.keys) if parser.plain else None)


class Template:
    """Text with paths in braces, as `kubectl -o jsonpath=` takes it: `{range .items[*]}{.metadata.name} {end}`."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts

    @classmethod
    def parse(cls, text: str) -> Template:
        return cls(_Parser(text).template())

    def render(self, obj: Any) -> str:
        """JSONPathError when the object has not the shape that a path asks for; a missing key prints nothing."""
        written: list[str] = []
        _render(self._parts, obj, written)
        return "".join(written)


class _Action:
    """What stands between one pair of braces; with a body it is a range."""

    __slots__ = ("body", "steps")

    def __init__(self, steps: list[Step], body: list[_Part] | None) -> None:
        self.steps = steps
        self.body = body


_Part = str | _Action


def _run(steps: list[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
        if len(values) > MAX_RESULTS:
            raise JSONPathError(f"more than {MAX_RESULTS} results")
    return values


def _render(parts: list[_Part], obj: Any, written: list[str]) -> None:
    for part in parts:
        if isinstance(part, str):
            written.append(part)
            continue
        found = _run(part.steps, [obj])
        if part.body is None:
            written.append(" ".join(map(_printed, found)))
        else:
            for value in found:
                _render(part.body, value, written)


def _printed(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")  # as encoding/json does
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Parser:
    """Reads a template, or what is inside one pair of braces. `keys` collects the names while the path is `plain`."""

    def __init__(self, text: str, depth: int = 0) -> None:
        if len(text) > MAX_PATH:
            raise JSONPathError(f"a path may have {MAX_PATH} characters at most")
        if depth > MAX_DEPTH:
            raise JSONPathError(f"a path may be nested {MAX_DEPTH} deep at most")
        self._text = text
        self._at = 0
        self._depth = depth
        self.keyword = ""
        self.keys: list[str] = []
        self.plain = True

    def template(self) -> list[_Part]:
        """All of the text, or up to the `{end}` of the range that is being read."""
        parts: list[_Part] = []
        if self._depth > MAX_DEPTH:
            raise JSONPathError(f"ranges may be nested {MAX_DEPTH} deep at most")
        while self._at < len(self._text):
            opening = self._text.find("{", self._at)
            if opening < 0:
                opening = len(self._text)
            if opening > self._at:
                parts.append(self._text[self._at : opening])
            self._at = opening + 1
            if opening == len(self._text):
                break
            self.keyword = ""
            steps = self.steps(closed=True)
            if self.keyword == "end":
                if not self._depth:
                    raise JSONPathError("not in range, nothing to end")
                return parts
            body = None
            if self.keyword == "range":
                self._depth += 1
                body = self.template()
                self._depth -= 1
            parts.append(_Action(steps, body))
        return parts

    def steps(self, closed: bool) -> list[Step]:
        steps: list[Step] = []
        recursive = False
        text = self._text
        while True:
            if self._at >= len(text):
                if closed:
                    raise JSONPathError("unclosed action")
                return steps
            char = text[self._at]
            was_recursive, recursive = recursive, False
            if char == "}" and closed:
                self._at += 1
                return steps
            if text.startswith("[?(", self._at):
                steps.append(self._filter())
            elif text.startswith("..", self._at):
                if was_recursive:
                    raise JSONPathError("invalid multiple recursive descent")
                self._at += 2
                self.plain = False
                steps.append(_descend)
                recursive = True
                if self._at < len(text) and (text[self._at].isalnum() or text[self._at] == "_"):
                    steps.append(self._field())
                    recursive = False
            elif char in " @$":
                self._at += 1
            elif char == "[":
                steps += self._bracket()
            elif char in "\"'":
                steps.append(self._literal(self._quoted(char)))
            elif char == ".":
                self._at += 1
                steps.append(self._field())
            elif char in "+-" or char.isdecimal():
                steps.append(self._number())
            elif char.isalnum() or char == "_":
                self._identifier(steps)
            else:
                raise JSONPathError(f"unrecognized character in action: {char!r}")

    def _field(self) -> Step:
        match = _FIELD.match(self._text, self._at)
        written = match.group() if match else ""
        self._at += len(written)
        if written == "*":
            self.plain = False
            return _wildcard
        name = written.replace("\\", "")
        self.keys.append(name)
        return _key(name)

    def _identifier(self, steps: list[Step]) -> None:
        match = _FIELD.match(self._text, self._at)
        word = match.group() if match else ""
        self._at += len(word)
        if word in ("true", "false"):
            steps.append(self._literal(word == "true"))
        elif word in ("range", "end") and not steps:
            self.keyword = word
        else:
            raise JSONPathError(f"unrecognized identifier {word}")

    def _number(self) -> Step:
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            raise JSONPathError(f"cannot parse number {self._text[self._at : self._at + 20]}")
        self._at = match.end()
        return self._literal(float(match.group()) if "." in match.group() else int(match.group()))

    def _literal(self, value: Any) -> Step:
        self.plain = False
        return lambda values: [value]

    def _quoted(self, quote: str) -> str:
        match = (_DOUBLE if quote == '"' else _SINGLE).match(self._text, self._at)
        if match is None:
            raise JSONPathError("unterminated quoted string")
        self._at = match.end()
        return _ESCAPE.sub(_unescaped, match.group()[1:-1])

    def _bracket(self) -> list[Step]:
        closing = self._text.find("]", self._at)
        if closing < 0 or "\n" in self._text[self._at : closing]:
            raise JSONPathError("unterminated array")
        inside = self._text[self._at + 1 : closing]
        self._at = closing + 1
        if "," in inside:
            self.plain = False
            branches = [self._inner(f"[{part.strip(' ')}]") for part in inside.split(",")]
            return [lambda values: [value for steps in branches for value in _run(steps, values)]]
        if len(inside) >= 2 and inside[0] == inside[-1] == "'" and "'" not in inside[1:-1]:
            parser = _Parser("." + inside[1:-1], self._depth + 1)
            steps = parser.steps(closed=False)
            self.keys += parser.keys
            self.plain = self.plain and parser.plain
            return steps
        self.plain = False
        match = _SLICE.fullmatch(":" if inside == "*" else inside)
        if match is None:
            raise JSONPathError(f"invalid array index {inside}")
        return [_slice(match)]

    def _filter(self) -> Step:
        self.plain = False
        start = self._at + 3
        match = _FILTER_END.match(self._text, start)
        if match is None:
            raise JSONPathError("unterminated filter")
        inside = match.group("inside")
        self._at = match.end()
        compared = _COMPARISON.fullmatch(inside)
        if compared is None:
            return _exists(self._inner(inside))
        left, operator, right = compared.groups()
        compare = _COMPARE.get(operator)
        if compare is None:
            raise JSONPathError(f"unrecognized filter operator {operator}")
        simple = _KEY_IS.fullmatch(inside)
        if simple is not None:
            return _key_is(simple["key"], simple["single"] or simple["double"] or "")
        return _compared(self._inner(left), compare, self._inner(right))

    def _inner(self, text: str) -> list[Step]:
        parser = _Parser(text, self._depth + 1)
        steps = parser.steps(closed=False)
        if parser.keyword:
            raise JSONPathError(f"unrecognized identifier {parser.keyword}")
        return steps


def _key(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _wildcard(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            found.extend(value.values())
        elif isinstance(value, list):
            found.extend(value)
    return found


def _descend(values: list[Any]) -> list[Any]:
    """Every object and list, outermost first, the value itself included."""
    found: list[Any] = []
    rest = values[::-1]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            found.append(value)
            rest.extend(reversed(value.values()))
        elif isinstance(value, list):
            found.append(value)
            rest.extend(reversed(value))
        if len(found) > MAX_RESULTS:
            raise JSONPathError(f"more than {MAX_RESULTS} results")
    return found


def _slice(match: re.Match[str]) -> Step:
    first, last, step = match.groups()
    single = last is None
    start = int(first) if first else 0
    end = start + 1 if single else (int(last[1:]) if last[1:] else None)
    stride = int(step[1:]) if step and step[1:] else 1
    if stride <= 0:
        raise JSONPathError("step must be > 0")

    def take(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JSONPathError(f"{type(value).__name__} is not array or slice")
            size = len(value)
            low = start + size if start < 0 else start
            high = size if end is None else end
            if high < 0 or (high == 0 and single):
                high += size
            if low == high:
                return found
            for bound in (low, high - 1):
                if not 0 <= bound < size:
                    raise JSONPathError(f"array index out of bounds: index {bound}, length {size}")
            if low > high:
                raise JSONPathError(f"starting index {low} is greater than ending index {high}")
            found.extend(value[low:high:stride])
        return found

    return take


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise JSONPathError(f"{_printed(value)} is not array or slice and cannot be filtered")
    return value


def _exists(steps: list[Step]) -> Step:
    def holds(item: Any) -> bool:
        try:
            return bool(_run(steps, [item]))
        except JSONPathError:
            return False

    return lambda values: [item for value in values for item in _items(value) if holds(item)]


def _key_is(key: str, wanted: str) -> Step:
    """`[?(@.type=="Ready")]`, the filter of almost every column that has one: no lists in between."""

    def take(values: list[Any]) -> list[Any]:
        found = []
        for value in values:
            for item in _items(value):
                if isinstance(item, dict) and key in item:
                    if not isinstance(item[key], str):
                        raise JSONPathError("incompatible types for comparison")
                    if item[key] == wanted:
                        found.append(item)
        return found

    return take


def _compared(left: list[Step], compare: Callable[[Any, Any], bool], right: list[Step]) -> Step:
    def holds(item: Any) -> bool:
        ours, theirs = _run(left, [item]), _run(right, [item])
        if not ours or not theirs:
            return False
        if len(ours) > 1 or len(theirs) > 1:
            raise JSONPathError("can only compare one element at a time")
        if _sort_of(ours[0]) != _sort_of(theirs[0]):
            raise JSONPathError("incompatible types for comparison")
        return compare(ours[0], theirs[0])

    return lambda values: [item for value in values for item in _items(value) if holds(item)]


def _sort_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    raise JSONPathError("invalid type for comparison")


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


def _unescaped(match: re.Match[str]) -> str:
    code, short = match.groups()
    if code:
        return chr(int(code[1:], 16))
    if short in _ESCAPES:
        return _ESCAPES[short]
    raise JSONPathError(f"unquote string error: invalid escape \\{short}")


_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"',
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})|(.))", re.DOTALL)
_FIELD = re.compile(r"(?:\\.|[^\\ \t\r\n.,\[\]$@{}])*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_DOUBLE = re.compile(r'"(?:\\.|[^"\\\n])*"')
_SINGLE = re.compile(r"'(?:\\.|[^'\\\n])*'")
_SLICE = re.compile(r"(-?[0-9]{0,9})(:-?[0-9]{0,9})?(:-?[0-9]{0,9})?")
_FILTER_END = re.compile(r"""(?P<inside>(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[^"')\n])+)\)\]""")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_KEY_IS = re.compile(r"""@\.(?P<key>[A-Za-z0-9_-]+)==(?:'(?P<single>[^'\\\n]*)'|"(?P<double>[^"\\\n]*)")""")
