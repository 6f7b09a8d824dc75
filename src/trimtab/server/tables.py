"""Other shapes of the same objects: Tables for `kubectl get`, and metadata alone for caches that need no more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
import orjson

from trimtab.model import jsonpath
from trimtab.model.clock import Clock
from trimtab.model.errors import bad_request
from trimtab.model.kind import Column
from trimtab.server.builtin.native import age
from trimtab.server.registry import Served
from trimtab.server.strategy import Document

NAME = Column("Name", ".metadata.name", "string", "name", "Unique among the objects of its kind in a namespace.")
AGE = Column("Age", ".metadata.creationTimestamp", "date")


class _Envelope(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_envelopes = msgspec.json.Decoder(_Envelope)


def metadata_only(value: bytes, version: str, *, typed: bool = True) -> bytes:
    """An object's bytes with nothing but its metadata."""
    kind = f'"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{version}",'.encode() if typed else b""
    return b"{" + kind + b'"metadata":' + bytes(_envelopes.decode(value).metadata) + b"}"


def columns(served: Served) -> tuple[Column, ...]:
    """The columns of a kind. Custom resources get a name in front, and an age when they define nothing else."""
    if served.strategy.native:
        return served.strategy.columns
    return (NAME, *(served.strategy.columns or (AGE,)))


def definitions(served: Served) -> list[dict[str, Any]]:
    return [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description or ("" if served.strategy.native else _described(column)),
            "priority": column.priority,
        }
        for column in columns(served)
    ]


def _described(column: Column) -> str:
    return "" if column is NAME else f"Custom resource definition column (in JSONPath format): {column.path}"


def row(served: Served, value: bytes, include: str, version: str, clock: Clock) -> dict[str, Any]:
    document: Document = orjson.loads(value)
    cells = served.strategy.cells(document)
    if cells is None:
        cells = [cell(column, document, clock) for column in columns(served)]
    shown: dict[str, Any] = {"cells": cells}
    if include == "Object":
        shown["object"] = orjson.Fragment(value)
    elif include == "Metadata":
        shown["object"] = orjson.Fragment(metadata_only(value, version))
    else:
        shown["object"] = None
    return shown


def table(
    served: Served,
    values: Sequence[bytes],
    list_meta: dict[str, Any],
    include: str,
    version: str,
    clock: Clock,
    *,
    headed: bool = True,
) -> bytes:
    return orjson.dumps(
        {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": list_meta,
            "columnDefinitions": definitions(served) if headed else None,
            "rows": [row(served, value, include, version, clock) for value in values],
        }
    )


def include_object(query: str | None) -> str:
    if query in (None, "", "Metadata"):
        return "Metadata"
    if query in ("None", "Object"):
        return query
    why = f"includeObject: Invalid value: \"{query}\": must be 'Metadata', 'Object', 'None', or empty"
    raise bad_request(f"Unable to convert to Table as requested: {why}")


_compiled = lru_cache(maxsize=4096)(jsonpath.compile)
JSONPathError = jsonpath.JSONPathError


def cell(column: Column, document: Document, clock: Clock) -> Any:
    """One value, as its column's type wants it; None where there is none."""
    try:
        found = _compiled(column.path).find(document)
    except JSONPathError:  # a definition of before such paths were refused
        return None
    if not found or found[0] is None:
        return None
    value = found[0]
    if column.type == "date":
        return age(value, clock.now())
    if column.type == "integer":
        return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if column.type == "number":
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, (dict, list)):
        return orjson.dumps(value).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
