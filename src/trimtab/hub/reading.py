"""Bytes of a stranger to documents: bounded in size, depth and in what aliases unfold to, and nothing but JSON's values.

A stream is JSON texts one after the other, YAML documents, or one msgpack array.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from trimtab.hub.contract import HubError
from trimtab.model.yaml import YamlError, load_each

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 128
MAX_NODES = 1_000_000


class Media(enum.Enum):
    JSON = "application/json"
    YAML = "application/yaml"
    MSGPACK = "application/msgpack"


class Unreadable(HubError):  # noqa: N818
    """The bytes are no document."""

    code = 400
    reason = "BadRequest"


def read(data: bytes, media: Media, *, unique: bool = False) -> Iterator[Any]:
    """The documents in `data`. `unique`: a key that occurs twice in one JSON object is refused (in YAML it always is)."""
    if len(data) > MAX_BYTES:
        raise Unreadable(f"{len(data)} bytes are too many: {MAX_BYTES} are read at most")
    for document in _READERS[media](data, unique):
        check_plain(document)
        yield document


def check_plain(document: Any) -> None:
    """Unreadable for what JSON cannot say, and for what is nested too deeply. Goes down without recursion."""
    count = 0
    level: Sequence[Any] = (document,)
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                if not all(isinstance(key, str) for key in value):
                    odd = next(key for key in value if not isinstance(key, str))
                    raise Unreadable(f"{odd!r} is no key: a key is a text, so quote it")
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, float):
                if not math.isfinite(value):
                    raise Unreadable(f"{value} is no number that can be kept")
            elif not isinstance(value, str | int | None):
                raise Unreadable(f"a {type(value).__name__} is no value of a document")
        count += len(level)
        if count > MAX_NODES:
            raise Unreadable(f"a document has {MAX_NODES} values at most")
        if not below:
            return
        level = below
    raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")


def _json(data: bytes, unique: bool) -> Iterator[Any]:
    if not unique:
        try:
            yield msgspec.json.decode(data)
            return
        except RecursionError:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels") from None
        except msgspec.DecodeError:
            pass  # several texts, perhaps: the slower reader tells
    text = _text(data)
    decoder = json.JSONDecoder(object_pairs_hook=_unique if unique else None, parse_constant=_no_constant)
    place = _skip(text, 0)
    while place < len(text):
        try:
            document, place = decoder.raw_decode(text, place)
        except RecursionError:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels") from None
        except json.JSONDecodeError as error:
            raise Unreadable(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
        except ValueError as error:  # a number with too many digits
            raise Unreadable(str(error)) from None
        yield document
        place = _skip(text, place)


def _yaml(data: bytes, unique: bool) -> Iterator[Any]:
    try:
        for _, document in load_each(_text(data), nodes=MAX_NODES):
            if document is not None:
                yield document
    except YamlError as error:
        raise Unreadable(str(error)) from None


def _msgpack(data: bytes, unique: bool) -> Iterator[Any]:
    try:
        found = msgspec.msgpack.decode(data)
    except RecursionError:
        raise Unreadable(f"nested deeper than {MAX_DEPTH} levels") from None
    except (msgspec.DecodeError, ValueError, TypeError) as error:  # a key may be what no key can be
        raise Unreadable(f"no msgpack: {error}") from None
    yield from found if isinstance(found, list) else (found,)


_READERS = {Media.JSON: _json, Media.YAML: _yaml, Media.MSGPACK: _msgpack}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"byte {error.start} is no UTF-8") from None


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n\x1e":
        place += 1
    return place


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unreadable(f'the key "{twice}" occurs twice in one object')
    return found


def _no_constant(name: str) -> Any:
    raise Unreadable(f"{name} is no number that can be kept")
