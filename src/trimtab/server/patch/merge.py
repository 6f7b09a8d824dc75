"""JSON Merge Patch (RFC 7386): null removes, objects merge, everything else replaces.

As in kube-apiserver's library, nulls are also dropped from objects inside of lists, where a list is new or replaces
something that is not an object. The given documents are never changed, and the result shares nothing with them.
"""

from __future__ import annotations

from typing import Any, cast

from trimtab.model.document import equal
from trimtab.model.errors import bad_request
from trimtab.server.patch.detached import detached
from trimtab.server.patch.failures import bounded


def apply(document: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The document with the patch merged into it. Raises 400 when the patch is not an object."""
    if not isinstance(patch, dict):
        names = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
        if patch is None:
            raise bad_request("Invalid JSON Patch")
        text = f"cannot unmarshal {names[type(patch)]} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding patch: json: {text}")
    with bounded():
        return cast(dict[str, Any], detached(_merged(document, patch)))


def diff(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The smallest merge patch that makes `new` of `old`. A null in `new` cannot be said by a merge patch."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if change := diff(before, value):
                patch[key] = change
        elif key not in old or not equal(value, before):
            patch[key] = value
    return patch


def _merged(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(document)
    for key, value in patch.items():
        before = result.get(key)
        if value is None:
            result.pop(key, None)
        elif not isinstance(before, dict):
            result[key] = _without_nulls(value)
        elif isinstance(value, dict):
            result[key] = _merged(before, value)
        else:
            result[key] = value
    return result


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
