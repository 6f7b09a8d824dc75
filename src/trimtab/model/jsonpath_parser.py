"""Reads JSONPaths and templates into steps. What is an error, and how it is said, is client-go's."""

from __future__ import annotations

import re
from typing import Any

from trimtab.model import jsonpath_steps as step
from trimtab.model.jsonpath_steps import JSONPathError, Step, run

MAX_PATH = 16_384
"""The longest path or template, in characters."""
MAX_DEPTH = 16
"""How deep filters and ranges may be nested."""


class Parser:
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

    def template(self) -> list[Part]:
        """All of the text, or up to the `{end}` of the range that is being read."""
        parts: list[Part] = []
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
            parts.append(Action(steps, body))
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
                steps.append(step.descend)
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
            return step.wildcard
        name = written.replace("\\", "")
        self.keys.append(name)
        return step.key(name)

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
            return [lambda values: [value for steps in branches for value in run(steps, values)]]
        if len(inside) >= 2 and inside[0] == inside[-1] == "'" and "'" not in inside[1:-1]:
            parser = Parser("." + inside[1:-1], self._depth + 1)
            steps = parser.steps(closed=False)
            self.keys += parser.keys
            self.plain = self.plain and parser.plain
            return steps
        self.plain = False
        match = _SLICE.fullmatch(":" if inside == "*" else inside)
        if match is None:
            raise JSONPathError(f"invalid array index {inside}")
        return [step.sliced(match)]

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
            return step.exists(self._inner(inside))
        left, operator, right = compared.groups()
        compare = step.COMPARE.get(operator)
        if compare is None:
            raise JSONPathError(f"unrecognized filter operator {operator}")
        simple = _KEY_IS.fullmatch(inside)
        if simple is not None:
            return step.key_is(simple["key"], simple["single"] or simple["double"] or "")
        return step.compared(self._inner(left), compare, self._inner(right))

    def _inner(self, text: str) -> list[Step]:
        parser = Parser(text, self._depth + 1)
        steps = parser.steps(closed=False)
        if parser.keyword:
            raise JSONPathError(f"unrecognized identifier {parser.keyword}")
        return steps


class Action:
    """What stands between one pair of braces; with a body it is a range."""

    __slots__ = ("body", "steps")

    def __init__(self, steps: list[Step], body: list[Part] | None) -> None:
        self.steps = steps
        self.body = body


Part = str | Action


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
