"""Paths of fields: `properties.rules[name=web].port`, `tags["a.b"]`, and the patterns `rules[].port` and `tags.*`.

`parse` and `format_path` are inverse for every path. `get`, `put` and `drop` never change what they are given. An item of a
list is named by its key where it has one, so that a path means the same item however the list is ordered.
"""

from __future__ import annotations

import enum
import json
import re
from typing import Any, Literal

import msgspec


class Missing(enum.Enum):
    """Of a value that is not there, which is not null."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "missing"


MISSING: Literal[Missing.MISSING] = Missing.MISSING


class Item(msgspec.Struct, frozen=True):
    """The item of a list whose fields have these values."""

    keys: tuple[tuple[str, Any], ...]

    def found(self, items: list[Any]) -> int | None:
        for index, item in enumerate(items):
            if isinstance(item, dict) and all(_equal(item.get(name, MISSING), value) for name, value in self.keys):
                return index
        return None


class Wild(enum.Enum):
    """What stands for any step in a pattern."""

    ITEM = "[]"
    FIELD = "*"


Step = str | int | Item | Wild
Path = tuple[Step, ...]


class PathError(ValueError):
    """A text that is no path."""


_PLAIN = re.compile(r"[^.\[\]\"*\s]+")
_BARE = re.compile(r"[^\[\]\"=,\s]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def parse(text: str) -> Path:
    """Raises PathError."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        if text[at] == "[":
            step, at = _bracket(text, at + 1)
            steps.append(step)
            continue
        if steps:
            if text[at] != ".":
                raise PathError(f"{text!r} is no path: a dot is missing at {at}")
            at += 1
        if text[at : at + 1] == "*":
            steps.append(Wild.FIELD)
            at += 1
            continue
        found = _PLAIN.match(text, at)
        if found is None:
            raise PathError(f"{text!r} is no path: there is no name at {at}")
        steps.append(found.group())
        at = found.end()
    return tuple(steps)


def format_path(path: Path) -> str:
    text = ""
    for step in path:
        text = below(text, step)
    return text


def below(text: str, step: Step) -> str:
    """The path that is one step below the one in this text."""
    if isinstance(step, str):
        if not _PLAIN.fullmatch(step):
            return f"{text}[{_quoted(step)}]"
        return f"{text}.{step}" if text else step
    if isinstance(step, Item):
        return f"{text}[{','.join(f'{_name(name)}={_scalar(value)}' for name, value in step.keys)}]"
    if step is Wild.FIELD:
        return f"{text}.*" if text else "*"
    return f"{text}[]" if step is Wild.ITEM else f"{text}[{step}]"


def get(value: Any, path: Path) -> Any:
    """What is there, or MISSING."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step, MISSING)
        elif isinstance(value, list) and isinstance(step, int | Item):
            index = _index(value, step)
            value = value[index] if 0 <= index < len(value) else MISSING
        else:
            return MISSING
        if value is MISSING:
            return MISSING
    return value


def put(value: Any, path: Path, new: Any) -> Any:
    """The value with `new` at the path. What is on the way and of another shape is replaced; an index beyond the end
    appends."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    match step:
        case str():
            fields = value if isinstance(value, dict) else {}
            return {**fields, step: put(fields.get(step), rest, new)}
        case int():
            items = list(value) if isinstance(value, list) else []
            if step >= len(items):
                return [*items, put(None, rest, new)]
            items[step] = put(items[step], rest, new)
            return items
        case Item():
            items = list(value) if isinstance(value, list) else []
            index = step.found(items)
            if index is None:
                return [*items, put(dict(step.keys), rest, new)]
            items[index] = put(items[index], rest, new)
            return items
    raise PathError(f"{format_path(path)!r} is a pattern, no place")


def drop(value: Any, path: Path) -> Any:
    """The value without what is at the path; what holds it stays, even empty."""
    if not path or get(value, path) is MISSING:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if not rest:
            return {name: kept for name, kept in value.items() if name != step}
        return {**value, step: drop(value[step], rest)}
    index = _index(value, step)
    before, item, after = value[:index], value[index], value[index + 1 :]
    return [*before, *after] if not rest else [*before, drop(item, rest), *after]


def covers(pattern: Path, path: Path) -> bool:
    """Whether the pattern names the path or something above it."""
    return len(pattern) <= len(path) and all(
        _step_matches(one, other) for one, other in zip(pattern, path, strict=False)
    )


def matches(pattern: Path, path: Path) -> bool:
    return len(pattern) == len(path) and covers(pattern, path)


def _index(items: list[Any], step: Step) -> int:
    """-1 is nowhere."""
    if isinstance(step, Item):
        found = step.found(items)
        return -1 if found is None else found
    return step if isinstance(step, int) else -1


def _step_matches(pattern: Step, step: Step) -> bool:
    match pattern:
        case Wild.ITEM:
            return isinstance(step, int | Item) or step is Wild.ITEM
        case Wild.FIELD:
            return isinstance(step, str) or step is Wild.FIELD
    return type(pattern) is type(step) and pattern == step


def _bracket(text: str, at: int) -> tuple[Step, int]:
    if text[at : at + 1] == "]":
        return Wild.ITEM, at + 1
    keys: list[tuple[str, Any]] = []
    while True:
        first, quoted, at = _token(text, at)
        if text[at : at + 1] == "]" and not keys:
            if quoted:
                return first, at + 1
            if first.isascii() and first.isdigit():
                return int(first), at + 1
        if text[at : at + 1] != "=":
            raise PathError(f"{text!r} is no path: expected an index, a quoted name or name=value at {at}")
        value, quoted, at = _token(text, at + 1)
        keys.append((first, value if quoted else _unquoted(value)))
        if text[at : at + 1] == "]":
            return Item(tuple(keys)), at + 1
        if text[at : at + 1] != ",":
            raise PathError(f"{text!r} is no path: a bracket is not closed at {at}")
        at += 1


def _token(text: str, at: int) -> tuple[str, bool, int]:
    found = _STRING.match(text, at)
    if found is not None:
        try:
            return json.loads(found.group()), True, found.end()
        except ValueError as error:
            raise PathError(f"{text!r} is no path: {error}") from error
    found = _BARE.match(text, at)
    if found is None:
        raise PathError(f"{text!r} is no path: there is nothing at {at}")
    return found.group(), False, found.end()


def _unquoted(text: str) -> Any:
    """A key's value without quotes is a string, unless it reads as another scalar of JSON."""
    if text[0] not in "-0123456789tfnNI":
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, dict | list) else value


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _name(text: str) -> str:
    return text if _BARE.fullmatch(text) else _quoted(text)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if _BARE.fullmatch(value) and isinstance(_unquoted(value), str) else _quoted(value)
    return json.dumps(value)


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
