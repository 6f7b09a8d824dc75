"""The JSON patch (RFC 6902) from one document to another, for the answer of a mutating webhook.

Members are added, replaced and removed one by one; a list that differs is replaced whole: an index would be wrong as soon
as another webhook came in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.model.document import equal

Document = Mapping[str, Any]


def json_patch(old: Document, new: Document) -> list[dict[str, Any]]:
    """The operations that turn `old` into `new`; none when they are the same."""
    return list(_operations("", old, new))


def _operations(path: str, old: Document, new: Document) -> Iterator[dict[str, Any]]:
    for name in old:
        if name not in new:
            yield {"op": "remove", "path": f"{path}/{_escaped(name)}"}
    for name, value in new.items():
        at = f"{path}/{_escaped(name)}"
        if name not in old:
            yield {"op": "add", "path": at, "value": value}
        elif isinstance(value, dict) and isinstance(old[name], dict):
            yield from _operations(at, old[name], value)
        elif not equal(old[name], value):
            yield {"op": "replace", "path": at, "value": value}


def _escaped(name: str) -> str:
    """As JSON Pointer wants it (RFC 6901 §3)."""
    return name.replace("~", "~0").replace("/", "~1")
