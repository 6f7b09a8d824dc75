"""The YAML that programs write kubeconfigs in: block mappings and sequences, plain and quoted scalars, and JSON.

The provider carries no YAML library with it. What is beyond this (anchors, tags, folded text) is refused, never guessed.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

DEEPEST = 32

_KEY = re.compile(
    r"""(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'&*!|>%@`{}\[\],#-][^:#]*?|-[^\s:#][^:#]*?)\s*:(?=\s|$)"""
)
_NUMBER = re.compile(r"[-+]?[0-9]+")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


class PlainYamlError(ValueError):
    """Not YAML of this kind; the message names the line."""


class _Line(NamedTuple):
    number: int
    indent: int
    text: str


def load(text: str) -> Any:
    """The one document."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PlainYamlError(str(error)) from None
    lines = [_Line(at, len(raw) - len(raw.lstrip(" ")), raw.strip()) for at, raw in enumerate(text.splitlines(), 1)]
    lines = [line for line in lines if line.text and not line.text.startswith("#") and line.text not in ("---", "...")]
    if any("\t" in raw[: len(raw) - len(raw.lstrip())] for raw in text.splitlines()):
        raise PlainYamlError("tabs cannot indent")
    if not lines:
        return None
    value, at = _block(lines, 0, lines[0].indent, DEEPEST)
    if at < len(lines):
        raise PlainYamlError(f"line {lines[at].number}: not expected here")
    return value


def _block(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[Any, int]:
    if depth <= 0:
        raise PlainYamlError(f"line {lines[at].number}: nested too deeply")
    if _is_item(lines[at].text):
        return _sequence(lines, at, indent, depth)
    if _KEY.match(lines[at].text):
        return _mapping(lines, at, indent, depth)
    return _scalar(lines[at].text, lines[at].number), at + 1


def _sequence(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while at < len(lines) and lines[at].indent == indent and _is_item(lines[at].text):
        rest = lines[at].text[1:].lstrip()
        if rest and not rest.startswith("#"):
            inner = indent + len(lines[at].text) - len(rest)
            lines[at] = _Line(lines[at].number, inner, rest)
            value, at = _block(lines, at, inner, depth - 1)
        elif at + 1 < len(lines) and lines[at + 1].indent > indent:
            value, at = _block(lines, at + 1, lines[at + 1].indent, depth - 1)
        else:
            value, at = None, at + 1
        items.append(value)
    return items, at


def _mapping(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while at < len(lines) and lines[at].indent == indent and not _is_item(lines[at].text):
        line = lines[at]
        match = _KEY.match(line.text)
        if match is None:
            raise PlainYamlError(f"line {line.number}: expected a key")
        key, rest = str(_scalar(match["key"], line.number, keep=True)), line.text[match.end() :].strip()
        if key in found:
            raise PlainYamlError(f"line {line.number}: {key} is there twice")
        following = lines[at + 1] if at + 1 < len(lines) else None
        if rest and not rest.startswith("#"):
            found[key], at = _scalar(rest, line.number), at + 1
        elif following and (following.indent > indent or (following.indent == indent and _is_item(following.text))):
            found[key], at = _block(lines, at + 1, following.indent, depth - 1)
        else:
            found[key], at = None, at + 1
    return found, at


def _is_item(text: str) -> bool:
    return text == "-" or text.startswith("- ")


def _scalar(text: str, number: int, *, keep: bool = False) -> Any:
    if text[0] == '"':
        return _quoted(text, r'"(?:[^"\\]|\\.)*"', number, lambda found: json.loads(found, strict=False))
    if text[0] == "'":
        return _quoted(text, r"'(?:[^']|'')*'", number, lambda found: found[1:-1].replace("''", "'"))
    plain = re.split(r"\s#", text, maxsplit=1)[0].strip()
    if plain in ("{}", "[]"):
        return {} if plain == "{}" else []
    if plain[:1] in tuple("&*!|>%@`{[") or ": " in plain:
        raise PlainYamlError(f"line {number}: YAML of this kind is not read here; write it plainly, or as JSON")
    if keep:
        return plain
    if plain.lower() in _WORDS and plain in (plain.lower(), plain.title(), plain.upper()):
        return _WORDS[plain.lower()]
    return int(plain) if _NUMBER.fullmatch(plain) and len(plain) < 19 else plain


def _quoted(text: str, pattern: str, number: int, read: Any) -> Any:
    found = re.match(pattern, text)
    if found is None or text[found.end() :].split("#")[0].strip():
        raise PlainYamlError(f"line {number}: the quotes do not end")
    try:
        return read(found.group())
    except ValueError:
        raise PlainYamlError(f"line {number}: not a quoted text that is read here") from None
