"""The JSON patch of a webhook, applied, or what is wrong with it in the words that webhook authors know.

Unlike a client's patch, which is refused without a word, this one's failure names its cause. Patches are applied by
`trimtab.server.patch.json_patch`; only for one that failed do we look again for the operation and the reason.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.model.errors import StatusError, internal
from trimtab.server import body, gojson
from trimtab.server.auth.wording import quoted
from trimtab.server.patch import json_patch

OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


def decoded(raw: bytes) -> list[Any]:
    """The operations of a patch. Raises StatusError 500, as `applied` does."""
    try:
        patch = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise internal(gojson.complaint(raw)) from None
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise internal(f"json: cannot unmarshal {body.go_type(patch)} into Go value of type jsonpatch.Patch")
    for operation in patch:
        if not isinstance(operation, dict | None):
            why = f"json: cannot unmarshal {body.go_type(operation)} into Go value of type jsonpatch.Operation"
            raise internal(why)
    return patch


def applied(document: dict[str, Any], patch: list[Any]) -> dict[str, Any]:
    try:
        patched = json_patch.apply(document, patch)
    except StatusError as error:
        raise internal(_reason(document, patch) or error.message) from None
    if not isinstance(patched, dict):
        raise internal("the patch does not leave an object")
    return patched


class _Problem(Exception):  # noqa: N818 - never leaves this module
    pass


def _reason(document: Any, patch: list[Any]) -> str:
    """Why the first operation that cannot be applied cannot; empty when they can one by one."""
    low, high = 0, len(patch)  # patch[:low] can be applied, patch[:high] cannot
    while high - low > 1:
        middle = (low + high) // 2
        if _applicable(document, patch[:middle]):
            low = middle
        else:
            high = middle
    try:
        _explain(json_patch.apply(document, patch[:low]), patch[low] or {})
    except _Problem as problem:
        return str(problem)
    except StatusError:
        return ""
    return ""


def _applicable(document: Any, patch: list[Any]) -> bool:
    try:
        json_patch.apply(document, patch)
    except StatusError:
        return False
    return True


def _explain(document: Any, operation: dict[str, Any]) -> None:
    """Raises _Problem with the words of the library that kube-apiserver uses."""
    op = operation.get("op")
    if op not in OPERATIONS:
        raise _Problem(f"Unexpected kind: {op if isinstance(op, str) else 'unknown'}")
    if op in ("move", "copy"):
        _explain_source(document, op, operation)
    path = _path(op, operation)
    if op == "test" and path == "":
        raise _Problem("testing value  failed: test failed")
    at, key = _found(document, path)
    if at is None:
        where = {"add": f'doc is missing path: "{path}"', "remove": f'doc is missing path: "{path}"'}
        where |= {"replace": f"doc is missing path: {path}", "test": f"is missing path: {path}"}
        where |= dict.fromkeys(("move", "copy"), f"doc is missing destination path: {path}")
        raise _Problem(f"{op} operation does not apply: {where[op]}: missing value")
    if op == "test":
        why = _absent(at, key)
        raise _Problem(
            f"error in test for path: '{path}': {why}" if why else f"testing value {path} failed: test failed"
        )
    if op == "replace":
        raise _Problem(f"replace operation does not apply: doc is missing key: {path}: missing value")
    if op == "remove":
        raise _Problem(f"error in remove for path: '{path}': {_absent(at, key, removing=True)}")
    lead = "error while adding value during copy" if op == "copy" else f"error in {op} for path: '{path}'"
    raise _Problem(f"{lead}: {_no_place(at, key)}")


def _explain_source(document: Any, op: str, operation: dict[str, Any]) -> None:
    """What is wrong with where `move` and `copy` take their value from."""
    source = operation.get("from")
    if not isinstance(source, str):
        raise _Problem(f"{op} operation failed to decode from: operation, missing from field: missing value")
    at, key = _found(document, source)
    if at is None:
        raise _Problem(f"{op} operation does not apply: doc is missing from path: {source}: missing value")
    if why := _absent(at, key, removing=op == "move"):
        where = f"error in move for path: '{key}'" if op == "move" else f"error in copy for from: '{source}'"
        raise _Problem(f"{where}: {why}")


def _path(op: str, operation: dict[str, Any]) -> str:
    path = operation.get("path")
    if isinstance(path, str):
        return path
    field = "operation missing path field: " if op in ("replace", "test", "move") else ""
    raise _Problem(f"{op} operation failed to decode path: {field}missing value")


def _found(document: Any, path: str) -> tuple[Any, str]:
    """The container that a path leads to and the key in it; None when the way there ends."""
    _, *keys = (key.replace("~1", "/").replace("~0", "~") for key in path.split("/"))
    if not keys:
        return None, ""
    *way, last = keys
    at = document
    for key in way:
        if _absent(at, key):
            return None, ""
        at = at.get(key) if isinstance(at, dict) else at[int(key)]
        if not isinstance(at, dict | list):
            return None, ""
    return at, last


def _absent(at: Any, key: str, *, removing: bool = False) -> str:
    """Why there is nothing at a key; empty when there is. Members of objects may be absent, unless they are removed."""
    if isinstance(at, dict):
        return f"Unable to remove nonexistent key: {key}: missing value" if removing and key not in at else ""
    return _bad_index(key) or _out_of_range(key, len(at))


def _no_place(at: Any, key: str) -> str:
    """Why nothing can be added to a list at a key."""
    bad = _bad_index(key)
    return f"value was not a proper array index: '{key}': {bad}" if bad else _out_of_range(key, len(at) + 1)


def _bad_index(key: str) -> str:
    digits = key[1:] if key[:1] in ("+", "-") else key
    if digits.isascii() and digits.isdigit() and len(digits) < 19:
        return ""
    return f"strconv.Atoi: parsing {quoted(key)}: invalid syntax"


def _out_of_range(key: str, length: int) -> str:
    index = int(key)
    return "" if -length <= index < length else f"Unable to access invalid index: {index}: invalid index referenced"
