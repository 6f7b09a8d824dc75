"""JSON Patch (RFC 6902) as kube-apiserver applies it, quirks of its library included.

The library differs from the RFC where it is lenient: `replace` of an absent member adds it, negative indices count from
the end, what precedes the first slash of a path is ignored. Every container on the way to a change is copied before it
is changed, so that the given document, and values that `copy` shares, stay as they are. The result shares nothing with
what was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from trimtab.model.document import equal
from trimtab.model.errors import bad_request, too_large
from trimtab.server.patch.detached import detached
from trimtab.server.patch.failures import bounded, rejected

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024  # what all `copy` operations of one patch may add

_FIELDS = {"op", "path", "from", "value"}
_INDEX = re.compile(r"[+-]?[0-9]{1,18}")


def apply(document: Any, patch: Any) -> Any:
    """The document after all operations. Raises 400, 413 or 422 as the API does."""
    _check(patch)
    with bounded():
        return detached(_applied(document, patch or []))


def unknown_fields(patch: list[dict[str, Any]]) -> list[str]:
    """What strict field validation says of members that no operation has."""
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(patch)
        if isinstance(operation, dict)
        for name in sorted(operation.keys() - _FIELDS)
    ]


class _InapplicableError(Exception):
    """The document has not what an operation needs."""


def _applied(document: Any, patch: list[Any]) -> Any:
    copied = 0
    for operation in patch:
        try:
            document, size = _OPERATIONS[operation["op"]](document, operation)
        except _InapplicableError:
            raise rejected() from None
        except (KeyError, TypeError):  # no such operation, or one without op, path or from
            raise rejected() from None
        copied += size
        if copied > MAX_COPIED_BYTES:
            raise rejected()
    return document


def _check(patch: Any) -> None:
    if patch is None:
        return
    if not isinstance(patch, list):
        raise _undecodable(patch, "value of type []handlers.jsonPatchOp")
    for operation in patch:
        if not isinstance(operation, dict):
            if operation is None:
                continue
            raise _undecodable(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            if not isinstance(operation.get(name), str | None):
                raise _undecodable(operation[name], f"struct field jsonPatchOp.{name} of type string")
    if len(patch) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        raise too_large(f"Request entity too large: {text}")


def _undecodable(value: Any, target: str) -> Exception:
    names = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    return bad_request(f"error decoding patch: json: cannot unmarshal {names[type(value)]} into Go {target}")


def _add(document: Any, operation: dict[str, Any]) -> tuple[Any, int]:
    return _changed(document, operation["path"], lambda at, key: _insert(at, key, operation.get("value"))), 0


def _remove(document: Any, operation: dict[str, Any]) -> tuple[Any, int]:
    return _changed(document, operation["path"], _delete), 0


def _replace(document: Any, operation: dict[str, Any]) -> tuple[Any, int]:
    value = operation.get("value")
    if operation["path"] == "":
        return (value if isinstance(value, dict | list) else document), 0

    def put(at: Any, key: str) -> None:
        at[key if isinstance(at, dict) else _index(key, len(at))] = value

    return _changed(document, operation["path"], put), 0


def _move(document: Any, operation: dict[str, Any]) -> tuple[Any, int]:
    value = _found(document, operation["from"])
    document = _changed(document, operation["from"], _delete)
    return _changed(document, operation["path"], lambda at, key: _insert(at, key, value)), 0


def _copy(document: Any, operation: dict[str, Any]) -> tuple[Any, int]:
    value = _found(document, operation["from"])
    document = _changed(document, operation["path"], lambda at, key: _insert(at, key, value))
    return document, len(orjson.dumps(value))


def _test(document: Any, operation: dict[str, Any]) -> tuple[Any, int]:
    path = operation["path"]
    found = document if path == "" else _found(document, path)
    if not equal(found, operation.get("value")):
        raise _InapplicableError
    return document, 0


_OPERATIONS: dict[str, Callable[[Any, dict[str, Any]], tuple[Any, int]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _changed(document: Any, path: str, change: Callable[[Any, str], None]) -> Any:
    *way, last = _keys(path)
    root = at = document.copy()
    for key in way:
        place = key if isinstance(at, dict) else _index(key, len(at))
        child = at.get(place) if isinstance(at, dict) else at[place]
        if not isinstance(child, dict | list):
            raise _InapplicableError
        at[place] = child = child.copy()
        at = child
    change(at, last)
    return root


def _found(document: Any, path: str) -> Any:
    """The value at a path; null where the last member is absent."""
    at = document
    for key in _keys(path):
        if isinstance(at, dict):
            at = at.get(key)
        elif isinstance(at, list):
            at = at[_index(key, len(at))]
        else:
            raise _InapplicableError
    return at


def _insert(at: Any, key: str, value: Any) -> None:
    if isinstance(at, dict):
        at[key] = value
    elif key == "-":
        at.append(value)
    else:
        at.insert(_index(key, len(at) + 1), value)


def _delete(at: Any, key: str) -> None:
    if isinstance(at, list):
        del at[_index(key, len(at))]
    elif key in at:
        del at[key]
    else:
        raise _InapplicableError


def _keys(path: str) -> list[str]:
    _, *keys = path.split("/")
    if not keys:
        raise _InapplicableError
    return [key.replace("~1", "/").replace("~0", "~") for key in keys]


def _index(key: str, length: int) -> int:
    if not _INDEX.fullmatch(key):
        raise _InapplicableError
    index = int(key)
    if not -length <= index < length:
        raise _InapplicableError
    return index % length
