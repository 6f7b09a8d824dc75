"""Sets of fields, in the very form that managedFields carry: FieldsV1.

A set is a tree of dictionaries whose keys are path elements: `f:` and a field's name, `k:` and the keys of a list's
element, `v:` and the value of a set's element, `i:` and an index. A node without children is a member of the set; one
with children only if it has the key `.`. So `{"f:spec": {"f:a": {}}}` holds `.spec.a` and not `.spec`. Because
sets are documents, reading and writing them costs nothing. They are never changed in place: an operation that changes
nothing returns the set it was given, and what it returns may share nodes with its operands.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import orjson

from trimtab.server.patch.failures import printed

FieldSet = dict[str, Any]
Path = tuple[str, ...]

MAX_DEPTH = 200
SELF = "."


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    """What is in either set."""
    if not b:
        return a
    if not a:
        return b
    result, grown = a, False
    for element, theirs in b.items():
        ours = a.get(element)
        if ours is None:
            node, grown = theirs, True
        else:
            node = _united(ours, theirs)
            if node is ours:
                continue
        if result is a:
            result = dict(a)
        result[element] = node
    return ordered(result) if grown else result


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """What is in `a` and not in `b`. A child stays when only its parent is in `b`."""
    result = a
    for element in b if len(b) < len(a) else a:
        ours, theirs = a.get(element), b.get(element)
        if ours is None or theirs is None:
            continue
        node = _without(ours, theirs)
        if node is not ours:
            if result is a:
                result = dict(a)
            _put(result, element, node)
    return result


def recursive_difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """What is in `a` and neither in `b` nor below what is in `b`."""
    result = a
    for element in b if len(b) < len(a) else a:
        ours, theirs = a.get(element), b.get(element)
        if ours is None or theirs is None or element == SELF:
            continue
        node: FieldSet | None
        if not theirs or SELF in theirs:
            node = None
        else:
            node = _normal(recursive_difference(ours, theirs)) if ours else ours
        if node is not ours:
            if result is a:
                result = dict(a)
            _put(result, element, node)
    return result


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    """What is in both sets."""
    result = {}
    for element, ours in a.items():
        theirs = b.get(element)
        if theirs is None:
            continue
        if not ours or not theirs:
            both = (not ours or SELF in ours) and (not theirs or SELF in theirs)
            node: FieldSet | None = {} if both else None
        else:
            node = _normal(intersection(ours, theirs))
        if node is not None:
            result[element] = node
    return result


def has(fields: FieldSet, path: Path) -> bool:
    """Whether the path is a member."""
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node else None
    return bool(path) and node is not None and (not node or SELF in node)


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """Every member: those of a level first, then those below. Conflicts are reported in this order."""
    for element, node in fields.items():
        if element != SELF and (not node or SELF in node):
            yield (*prefix, element)
    for element, node in fields.items():
        if node:
            yield from paths(node, (*prefix, element))


def shown(path: Path) -> str:
    """A path as messages print it: `.spec.containers[name="a"].image`."""
    return "".join(map(_shown, path))


def parse(document: Any, depth: int = 0) -> FieldSet:
    """A set from FieldsV1 that a client sent, in canonical form. Raises ValueError when it is not FieldsV1."""
    if not isinstance(document, dict) or depth > MAX_DEPTH:
        raise ValueError("fields are objects in objects")
    node: FieldSet = {}
    for element, below in document.items():
        if element == SELF:
            continue
        if len(element) < 2:
            raise ValueError("key must be 2 characters long:")
        if element[1] != ":":
            raise ValueError(f"missing colon: {element}")
        if element[0] in "fkvi":
            node[_canonical(element)] = parse(below, depth + 1)
    if node and depth and SELF in document:
        node[SELF] = {}
    return ordered(node)


def ordered(fields: FieldSet) -> FieldSet:
    """One level in canonical order: itself, fields by name, then keys, values and indices by value."""
    elements = list(fields)
    if len(elements) < 2:
        return fields
    sorted_elements = sorted(elements)
    if sorted_elements[-1][0] != "f":  # "." < "f" < "i" < "k" < "v": there is more than fields
        sorted_elements.sort(key=_rank)
    if sorted_elements == elements:
        return fields
    return {element: fields[element] for element in sorted_elements}


def key_element(keys: list[tuple[str, Any]]) -> str:
    """The path element of a list's element that has these keys, which are sorted by name."""
    return "k:{" + ",".join([f"{_json_text(name)}:{_json(value)}" for name, value in keys]) + "}"


def value_element(value: Any) -> str:
    """The path element of a set's element."""
    return "v:" + _json(value)


def _united(ours: FieldSet, theirs: FieldSet) -> FieldSet:
    if not theirs:
        return ours if not ours or SELF in ours else {SELF: {}, **ours}
    if not ours:
        return theirs if SELF in theirs else {SELF: {}, **theirs}
    return union(ours, theirs)


def _without(ours: FieldSet, theirs: FieldSet) -> FieldSet | None:
    if not ours:
        return None if not theirs or SELF in theirs else ours
    if not theirs:
        return {e: node for e, node in ours.items() if e != SELF} if SELF in ours else ours
    return None if ours == theirs else _normal(difference(ours, theirs))


def _normal(node: FieldSet) -> FieldSet | None:
    """A node with children as a node: None when nothing is left, and a bare member in its short form."""
    if not node:
        return None
    if len(node) == 1 and SELF in node:
        return {}
    return node


def _put(fields: FieldSet, element: str, node: FieldSet | None) -> None:
    if node is None:
        del fields[element]
    else:
        fields[element] = node


@functools.lru_cache(4096)
def _rank(element: str) -> tuple[Any, ...]:
    kind, content = element[0], element[2:]
    if kind == ".":
        return (0,)
    if kind == "f":
        return (1, content)
    if kind == "k":
        return (2, *((name, _value_rank(value)) for name, value in orjson.loads(content).items()))
    if kind == "v":
        return (3, _value_rank(orjson.loads(content)))
    return (4, int(content))


def _value_rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (3, repr(value))


def _canonical(element: str) -> str:
    kind, content = element[0], element[2:]
    if kind == "f":
        return element
    if kind == "i":
        return f"i:{int(content)}"
    value = orjson.loads(content)
    if kind == "v":
        return value_element(value)
    if not isinstance(value, dict):
        raise ValueError(f"keys are an object: {element}")
    return key_element(sorted(value.items()))


def _json(value: Any) -> str:
    if type(value) is str:
        return _json_text(value)
    return str(value) if type(value) is int else _json_of(value)


@functools.lru_cache(4096)
def _json_text(value: str) -> str:
    return _json_of(value)


def _json_of(value: Any) -> str:
    text = orjson.dumps(value).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text


def _shown(element: str) -> str:
    kind, content = element[0], element[2:]
    if kind == "f":
        return f".{content}"
    if kind == "k":
        keys = orjson.loads(content)
        return f"[{','.join(f'{name}={_scalar(value)}' for name, value in keys.items())}]"
    if kind == "v":
        return f"[={_scalar(orjson.loads(content))}]"
    return f"[{content}]"


def _scalar(value: Any) -> str:
    return printed(value) if type(value) is float else orjson.dumps(value).decode()
