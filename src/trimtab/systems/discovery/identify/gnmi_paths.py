"""gNMI paths: as a vendor profile writes them, as they are sent, and what was answered to them.

A path is names with slashes between, each with keys in brackets: `platform/control[slot=A]/software-version`. A value of
a key may hold slashes; `\\]` and `\\\\` stand for themselves, in a name `\\/`. A name may begin with its YANG module
(`openconfig-system:system`), a path with its origin and a colon (`openconfig:/system`).

Devices answer in their own way: with or without modules and keys, leaf by leaf, or with a whole container in JSON. So an
answer is found by names alone; keys must agree only where both sides have them. Where several list entries answer one
path, as serial numbers of all components do, an entry that is called chassis goes first, then the order of the keys, so
that the same device gives the same answer each time. An empty value gives way to any other.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from trimtab.systems.discovery.identify import gnmi_messages as messages

DEEPEST = 64
"""Elements of a path, and levels of JSON that are looked into."""

Keys = tuple[tuple[str, str], ...]


class Element(msgspec.Struct, frozen=True):
    """One step of a path. `name` may begin with a module."""

    name: str
    keys: Keys = ()

    @property
    def local(self) -> str:
        return self.name.rpartition(":")[2]


class Path(msgspec.Struct, frozen=True):
    elements: tuple[Element, ...]
    origin: str = ""


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Path:
    """The path in `text`; ValueError says what is wrong with it."""
    origin = _ORIGIN.match(text)
    rest = (text[origin.end() :] if origin else text).removeprefix("/")
    if not rest.endswith("\\/"):
        rest = rest.removesuffix("/")
    elements = []
    position = 0
    while position < len(rest):
        match = _ELEMENT.match(rest, position)
        if match is None or (match.end() < len(rest) and rest[match.end()] != "/"):
            raise ValueError(f"{text!r} is not a gNMI path: an element is a name, then keys as [name=value]")
        keys = tuple((_plain(key), _plain(value)) for key, value in _KEY.findall(match["keys"]))
        elements.append(Element(_plain(match["name"]), keys))
        position = match.end() + 1
    if len(elements) > DEEPEST:
        raise ValueError(f"{text[:64]!r}… is not a gNMI path: it has more than {DEEPEST} elements")
    return Path(tuple(elements), origin[1] if origin else "")


def to_message(path: Path, *, modules: bool) -> Any:
    """As it is sent, with the names of modules or without."""
    return messages.Path(
        origin=path.origin,
        elem=[
            messages.PathElem(name=element.name if modules else element.local, key=dict(element.keys))
            for element in path.elements
        ],
    )


def find(notifications: Iterable[Any], wanted: Sequence[Path]) -> list[str]:
    """What was answered to each path; an empty text where nothing was."""
    found: list[list[tuple[Keys, str]]] = [[] for _ in wanted]
    names = [tuple(element.local for element in path.elements) for path in wanted]
    for notification in notifications:
        prefix = list(notification.prefix.elem)
        for update in notification.update:
            answered = prefix + list(update.path.elem)
            at = len(answered)
            local = tuple([each.name.rpartition(":")[2] for each in answered])
            asked = [place for place, each in enumerate(names) if each[:at] == local]
            if not asked:
                continue
            value = decode(update.val)
            keys = tuple(pair for each in answered for pair in sorted(each.key.items()))
            for place in asked:
                elements = wanted[place].elements
                if all(map(_agree, answered, elements)):
                    found[place] += _leaves(value, elements[:at][-1:], elements[at:], keys, DEEPEST)
    return [_chosen(candidates) for candidates in found]


def decode(value: Any) -> Any:
    """What a TypedValue holds: a text, or for JSON also lists and mappings of texts. None where it cannot be told."""
    kind = value.WhichOneof("value")
    held: Any = getattr(value, kind) if kind else None
    match kind:
        case "string_val" | "ascii_val":
            return held
        case "int_val" | "uint_val":
            return str(held)
        case "bool_val":
            return "true" if held else "false"
        case "float_val":
            return f"{held:.7g}"  # as many digits as it has
        case "double_val":
            return repr(held)
        case "decimal_val" if held.precision <= 18:  # RFC 7950 §9.3.4
            return f"{Decimal(held.digits).scaleb(-held.precision):f}"
        case "leaflist_val":
            return [decode(each) for each in held.element if each.WhichOneof("value") != "leaflist_val"]
        case "json_val" | "json_ietf_val":
            return _json(held)
        case "bytes_val":
            try:
                return held.decode()
            except UnicodeDecodeError:
                return held.hex()
    return None


def _json(data: bytes) -> Any:
    """Numbers keep their text: the version 25.10 is not 25.1. What is no JSON is a text."""
    try:
        return _texts(_JSON.decode(data.decode()))
    except RecursionError:
        return None
    except ValueError:
        return data.decode(errors="replace")


def _texts(value: Any) -> Any:
    if value is True or value is False:
        return "true" if value else "false"
    return value


def _leaves(
    value: Any, above: Sequence[Element], below: Sequence[Element], keys: Keys, depth: int
) -> Iterator[tuple[Keys, str]]:
    """Each leaf of `value` that `below` leads to, with the keys on the way."""
    if depth == 0 or value is None:
        return
    if isinstance(value, list):
        if any(isinstance(each, dict | list) for each in value):
            for entry in value:
                more = _entry_keys(entry, above)
                if more is not None:
                    yield from _leaves(entry, above, below, keys + more, depth - 1)
        elif not below:
            yield keys, ",".join(_text(each) for each in value)
    elif isinstance(value, dict):
        inside = _member(value, below[0]) if below else None
        if inside is not None:
            yield from _leaves(inside, below[:1], below[1:], keys, depth - 1)
        elif above and len(value) == 1 and (wrapped := _member(value, above[-1])) is not None:
            yield from _leaves(wrapped, (), below, keys, depth - 1)  # {"system": {…}} as the value of system
    elif not below:
        yield keys, _text(value)


def _entry_keys(entry: Any, above: Sequence[Element]) -> Keys | None:
    """What tells a list entry apart: its own leaves of the wanted keys, or its name. None when it is another entry."""
    if not isinstance(entry, dict):
        return ()
    wanted = above[-1].keys if above else ()
    for key, value in wanted:
        held = _member(entry, Element(key))
        if value != "*" and held is not None and _text(held) != value:
            return None
    names = [key for key, _ in wanted] or ["name", "id", "slot"]
    return tuple((name, _text(held)) for name in names if (held := _member(entry, Element(name))) is not None)


def _member(value: dict[str, Any], element: Element) -> Any:
    """By its whole name, else by the name without a module; of several modules always the same one."""
    if element.name in value:
        return value[element.name]
    local = element.local
    same = sorted(name for name in value if name.rpartition(":")[2] == local)
    return value[same[0]] if same else None


def _agree(answered: Any, wanted: Element) -> bool:
    return all(value in ("*", answered.key.get(key, value)) for key, value in wanted.keys)


def _chosen(candidates: Iterable[tuple[Keys, str]]) -> str:
    return min(((_order(keys), text) for keys, text in candidates if text), default=(None, ""))[1]


def _order(keys: Keys) -> tuple[bool, tuple[tuple[str, list[tuple[int, str]]], ...]]:
    """Chassis first; numbers in names by their size."""
    chassis = any("chassis" in value.lower() for _, value in keys)
    return not chassis, tuple((key, [(int(n or 0), t) for n, t in _PARTS.findall(value[:128])]) for key, value in keys)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    return "" if value is None or isinstance(value, dict | list) else str(_texts(value))


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


_JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
_ORIGIN = re.compile(r"([A-Za-z_][\w.-]*):(?=/)", re.ASCII)
_KEYS = r"(?:\[(?:\\.|[^\]\\=\[])+=(?:\\.|[^\]\\])*\])"
_ELEMENT = re.compile(rf"(?P<name>(?:\\.|[^/\[\]\\])+)(?P<keys>{_KEYS}*)", re.DOTALL)
_KEY = re.compile(r"\[((?:\\.|[^\]\\=\[])+)=((?:\\.|[^\]\\])*)\]", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PARTS = re.compile(r"(\d+)|(\D+)")
