"""The words of a proto3 file, each with the comment before it."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_CHARS = 4 * 1024 * 1024


class ProtoError(ValueError):
    """The text is no proto3 file that a kind can be made of; the message names the line."""


class Token(NamedTuple):
    kind: str  # "word", "number", "text", "sign", "end"
    value: str
    line: int
    comment: str = ""


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<line>//[^\n]*)
    |(?P<block>/\*.*?\*/)
    |(?P<word>\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
    |(?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?))
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<sign>[-{}\[\]()<>=;,:/.])""",
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> list[Token]:
    """All of them, with one of kind "end" behind."""
    if len(text) > MAX_CHARS:
        raise ProtoError(f"a file has {MAX_CHARS} characters at most")
    found: list[Token] = []
    comment: list[str] = []
    place, line = 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ProtoError(f"line {line}: {text[place]!r} is nothing that proto3 knows")
        kind, value = str(match.lastgroup), match.group()
        if kind == "space":
            if value.count("\n") > 1:
                comment = []  # a comment that stands alone belongs to nothing
        elif kind == "line":
            if found and found[-1].line == line and not comment:
                _after(found, value[2:].strip())
            else:
                comment.append(value[2:].strip())
        elif kind == "block":
            comment += [part.strip().lstrip("*").strip() for part in value[2:-2].splitlines()]
        else:
            found.append(Token(kind, _unquoted(value) if kind == "text" else value, line, _joined(comment)))
            comment = []
        line += value.count("\n")
        place = match.end()
    found.append(Token("end", "", line))
    return found


def _after(found: list[Token], text: str) -> None:
    """A comment behind a statement in the same line tells of its first word."""
    line = found[-1].line
    index = len(found) - 1
    while index > 0 and found[index - 1].line == line and found[index - 1].value not in (";", "{", "}"):
        index -= 1
    if found[-1].value == ";" and not found[index].comment:
        found[index] = found[index]._replace(comment=text)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines).strip()


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match.group(1), match.group(1)), text[1:-1])
