"""YAML as nearly all of it is written, read by itself: block mappings and lists, scalars of one line, literal blocks.

It is one pass of one regular expression, several times as fast as a parser of all of YAML. It reads a file exactly as that
one does, or says that it is not plain; whoever asked then takes the other. So everything that is rare, wrong, or means more
than it looks (quotes in quotes, words such as `yes`, numbers that are not simply digits, anchors, tags, flow style, keys
that occur twice, tabs, what is not ASCII) is not plain. The tests hold the two against each other.
"""

from __future__ import annotations

import re
from typing import Any

_LINE = re.compile(
    r"^( *)(?:(- )?(?:([A-Za-z_][A-Za-z0-9_./-]{0,200}):(?: ([^ \n].*))?|([^ \n].*)))?$",
    re.MULTILINE,
)
"""Indentation, the dash of an item, a key, its value; or else what there is."""
_OTHER = re.compile(r"[^\x20-\x7e\n]")
_NUMBER = re.compile(r"[-+]?([0-9._]+(e[-+]?[0-9]+)?|0x[0-9a-f_]*|0o[0-7_]*|0b[01_]*|\.inf|\.nan)", re.IGNORECASE)
_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/.$(-")
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "y", "n", "null"))
_MEANT = {"true": True, "false": False, "null": None}
_DEEPEST = 40

Line = tuple[str, str, str, str, str]
_BETWEEN: Line = ("", "", "", "", "---")


class NotPlain(Exception):  # noqa: N818 - it reads as what it is
    """It may be YAML all the same."""


def documents(text: str) -> list[tuple[int, Any]]:
    """Each document with the line that it begins at. NotPlain."""
    if _OTHER.search(text):
        raise NotPlain
    lines: list[Line] = _LINE.findall(text)
    found: list[tuple[int, Any]] = []
    reader = _Reader(text, lines)
    at = reader.content(0)
    while at < len(lines):
        if lines[at] == _BETWEEN:
            at = reader.content(at + 1)
            if at == len(lines) or lines[at] == _BETWEEN:
                raise NotPlain  # an empty document counts, too
        elif found:
            raise NotPlain
        value, after = reader.block(at, 0, 0)
        found.append((at + 1, value))
        at = after
    return found


class _Reader:
    """Goes down the lines of one file. Each method says what it read and which line comes then."""

    def __init__(self, text: str, lines: list[Line]) -> None:
        self._text, self._lines = text, lines
        self._whole: list[str] = []  # its lines as they are, once somebody needs them

    def content(self, at: int) -> int:
        """The next line that says something."""
        lines = self._lines
        while (
            at < len(lines) and not lines[at][2] and (not lines[at][4] or lines[at][4][0] == "#") and not lines[at][1]
        ):
            at += 1
        return at

    def block(self, at: int, indent: int, depth: int) -> tuple[Any, int]:
        line = self._lines[at]
        if len(line[0]) != indent or depth > _DEEPEST:
            raise NotPlain
        return self._list(at, indent, depth + 1) if line[1] else self._mapping(at, indent, depth + 1)

    def _mapping(self, at: int, indent: int, depth: int, *, item: bool = False) -> tuple[dict[str, Any], int]:
        """`item`: it begins behind a dash."""
        lines, end = self._lines, len(self._lines)
        found: dict[str, Any] = {}
        while at < end:
            space, dash, key, value, rest = lines[at]
            if item:
                item = False
            elif not key and not dash and (not rest or rest[0] == "#"):
                at += 1
                continue
            elif len(space) != indent or dash:
                if len(space) < indent:
                    break
                raise NotPlain
            if not key:
                if lines[at] == _BETWEEN:
                    break
                raise NotPlain
            if key in found or (len(key) < 6 and key.lower() in _WORDS):
                raise NotPlain
            if value:
                if value[0] == "|":
                    found[key], at = self._literal(at + 1, indent, value)
                    continue
                found[key] = _scalar(value)
                at += 1
                continue
            at = self.content(at + 1)
            inner = len(lines[at][0]) if at < end else -1
            if inner > indent or (inner == indent and lines[at][1]):
                found[key], at = self.block(at, inner, depth)
            else:
                found[key] = None
        return found, at

    def _list(self, at: int, indent: int, depth: int) -> tuple[list[Any], int]:
        lines, end = self._lines, len(self._lines)
        found: list[Any] = []
        while at < end:
            space, dash, key, _, rest = lines[at]
            if not dash or len(space) != indent:
                if not dash and not key and (not rest or rest[0] == "#"):
                    at += 1
                    continue
                if len(space) > indent:
                    raise NotPlain
                break
            if key:
                value, at = self._mapping(at, indent + 2, depth, item=True)
                found.append(value)
            elif rest and rest[0] != "#" and rest[0] != "|":
                found.append(_scalar(rest))
                at += 1
            else:
                raise NotPlain
        return found, at

    def _literal(self, at: int, indent: int, header: str) -> tuple[str, int]:
        """`|` or `|-`: lines as they are, without their indentation."""
        if header not in ("|", "|-") or not self._text.endswith("\n"):
            raise NotPlain
        whole = self._whole = self._whole or self._text.split("\n")
        inner = len(self._lines[at][0]) if at < len(whole) else 0
        if inner <= indent or not whole[at].strip():
            raise NotPlain
        start, prefix = at, " " * inner
        while at < len(whole):
            line = whole[at]
            if line and not line.startswith(prefix):
                if len(self._lines[at][0]) > indent or line.isspace():  # blanks alone do not end it
                    raise NotPlain
                break
            if line and len(line) == len(prefix) + line.count(" ", inner):
                raise NotPlain  # only spaces: whether they count depends on what follows
            at += 1
        body = "\n".join(line[inner:] for line in whole[start:at]).rstrip("\n")
        return (body + "\n" if header == "|" else body), at


def _scalar(text: str) -> Any:
    first = text[0]
    if first == "'" or first == '"':
        inner = text[1:-1]
        if len(text) < 2 or text[-1] != first or first in inner or (first == '"' and "\\" in inner):
            raise NotPlain
        return inner
    if text[-1] in " :" or ": " in text or " #" in text:
        raise NotPlain
    if first not in _FIRST:
        if text == "{}":
            return {}
        if text == "[]":
            return []
        raise NotPlain
    if len(text) < 6 and text.lower() in _WORDS:
        if text in _MEANT:
            return _MEANT[text]
        raise NotPlain
    if first in "0123456789.-":
        return _number_or_text(text)
    return text


def _number_or_text(text: str) -> int | str:
    if text.isdigit():
        if len(text) > 18 or (text[0] == "0" and text != "0"):
            raise NotPlain
        return int(text)
    if text[:2] in ("-", "- ") or _NUMBER.fullmatch(text):
        raise NotPlain
    return text
