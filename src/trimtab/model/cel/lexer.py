"""The tokens of CEL, and the values of its literals."""

from __future__ import annotations

import re
from typing import NamedTuple

from trimtab.model.cel.errors import Issue

MAX_SOURCE = 100_000  # code points, as cel-go

_ESCAPED = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
_STRING = (
    r"(?:[rR](?:'''(?s:.*?)'''|\"\"\"(?s:.*?)\"\"\"|'[^'\n\r]*'|\"[^\"\n\r]*\")"
    r"|'''(?:[^\\]|{esc})*?'''|\"\"\"(?:[^\\]|{esc})*?\"\"\""
    r"|'(?:[^\\'\n\r]|{esc})*'|\"(?:[^\\\"\n\r]|{esc})*\")"
).replace("{esc}", _ESCAPED)
_TOKEN = re.compile(
    rf"""
    (?P<space>[\t\ \r\n\f]+|//[^\n]*)
  | (?P<bytes>[bB]{_STRING})
  | (?P<string>{_STRING})
  | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
  | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<ident>[a-zA-Z_][a-zA-Z0-9_]*)
  | (?P<op>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
KEYWORDS = frozenset({"in", "true", "false", "null"})
_ESCAPE = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))")
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    kind: str  # ident, int, uint, float, string, bytes, eof, or the operator or keyword itself
    text: str
    place: int

    @property
    def shown(self) -> str:
        return "<EOF>" if self.kind == "eof" else self.text


class Source:
    """The text of an expression and where its lines begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] | None = None

    def issue(self, place: int, message: str) -> Issue:
        if place < 0:
            return Issue(-1, -1, message)
        if self._starts is None:
            self._starts = [0, *(i + 1 for i, char in enumerate(self.text) if char == "\n")]
        low, high = 0, len(self._starts)
        while high - low > 1:
            middle = (low + high) // 2
            if self._starts[middle] <= place:
                low = middle
            else:
                high = middle
        return Issue(low + 1, place - self._starts[low], message)


def tokens(source: Source) -> tuple[list[Token], list[Issue]]:
    """All tokens with an `eof` at the end, and what could not be read."""
    text = source.text
    found: list[Token] = []
    issues: list[Issue] = []
    place, end = 0, len(text)
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            stop = _unreadable(text, place)
            shown = text[place:stop].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
            issues.append(source.issue(place, f"Syntax error: token recognition error at: '{shown}'"))
            if len(issues) >= 100:
                break
            place = stop
            continue
        kind = str(match.lastgroup)
        if kind == "op" or (kind == "ident" and match.group() in KEYWORDS):
            kind = match.group()
        if kind != "space":
            found.append(Token(kind, match.group(), place))
        place = match.end()
    found.append(Token("eof", "", end))
    return found, issues


def _unreadable(text: str, place: int) -> int:
    """The end of what ANTLR would name: an open string to its line's end, else an operator begun, else a character."""
    quote = text[place]
    if quote in "'\"":
        opened = re.compile(rf"{quote}(?:[^\\{quote}\n\r]|{_ESCAPED})*").match(text, place)
        stop = place if opened is None else opened.end()
        return min(stop + (2 if text[stop : stop + 1] == "\\" else 1), len(text))
    if text[place] in "|&=" and place + 1 < len(text):
        return place + 2
    return place + 1


def string_value(text: str) -> str:
    """The value of a string token. Raises ValueError."""
    body, raw = _unquoted(text)
    if raw or "\\" not in body:
        return body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body

    def char(match: re.Match[str]) -> str:
        hexadecimal = match[1] or match[2] or match[3]
        if hexadecimal or match[4]:
            code = int(hexadecimal, 16) if hexadecimal else int(match[4], 8)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise ValueError("unable to unescape string")
            return chr(code)
        return _SIMPLE.get(match[5], match[5])

    return _ESCAPE.sub(char, body)


def bytes_value(text: str) -> bytes:
    """The value of a bytes token: hexadecimal and octal escapes are bytes, not characters. Raises ValueError."""
    body, raw = _unquoted(text[1:])
    if raw:
        return body.encode()
    parts: list[bytes] = []
    last = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[last : match.start()].encode())
        last = match.end()
        if match[1]:
            parts.append(bytes([int(match[1], 16)]))
        elif match[4]:
            parts.append(bytes([int(match[4], 8)]))
        elif match[2] or match[3]:
            raise ValueError("unable to unescape string")
        else:
            parts.append(_SIMPLE.get(match[5], match[5]).encode())
    parts.append(body[last:].encode())
    return b"".join(parts)


def _unquoted(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    width = 3 if text[:3] in ("'''", '"""') and len(text) >= 6 else 1
    return text[width:-width], raw
