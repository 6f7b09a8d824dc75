"""Custom resources: from a CustomResourceDefinition to the kinds that it serves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson

from trimtab.model import jsonpath
from trimtab.model.kind import Column, Kind, Scale
from trimtab.model.schema import Schema
from trimtab.server.strategy import Document, Strategy


class Custom(Strategy):
    """A kind that a definition describes."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self._selectable = [(path.lstrip("."), jsonpath.compile(path)) for path in kind.selectable]
        self.selectable = {name: name for name, _ in self._selectable}

    def fields(self, obj: Document) -> dict[str, str]:
        return {name: _text(path.find(obj)) for name, path in self._selectable}


def strategies(definition: Document) -> Iterator[tuple[Custom, bool]]:
    """Each version of a definition, and whether it is the one that is stored."""
    spec = definition["spec"]
    names = (definition.get("status") or {}).get("acceptedNames") or {}
    names = names if names.get("plural") else spec["names"]
    for version in spec["versions"]:
        if version.get("served") or version.get("storage"):
            yield Custom(_kind(spec, names, version)), bool(version.get("storage"))


def _kind(spec: Document, names: Document, version: Document) -> Kind:
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    deprecation = ""
    if version.get("deprecated"):
        shown = f"{spec['group']}/{version['name']} {names['kind']} is deprecated"
        deprecation = version.get("deprecationWarning") or shown
    return Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or "",
        list_kind=names.get("listKind") or "",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        namespaced=spec["scope"] == "Namespaced",
        schema=Schema(partial(_schema, orjson.dumps((version.get("schema") or {}).get("openAPIV3Schema") or {}))),
        columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
        status="status" in subresources,
        scale=Scale(
            scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""
        )
        if scale
        else None,
        selectable=tuple(field["jsonPath"] for field in version.get("selectableFields") or ()),
        deprecation=deprecation,
    )


def _schema(raw: bytes) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(raw)
    return document


def _column(column: Document) -> Column:
    return Column(
        column["name"],
        column["jsonPath"],
        column["type"],
        column.get("format") or "",
        column.get("description") or "",
        column.get("priority") or 0,
    )


def _text(found: list[Any]) -> str:
    if not found or found[0] is None:
        return ""
    value = found[0]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
