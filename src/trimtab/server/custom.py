"""Custom resources: from a CustomResourceDefinition to the kinds that it serves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import orjson

from trimtab.model import jsonpath
from trimtab.model.errors import FieldError, FieldProblem
from trimtab.model.kind import Column, Kind, Scale
from trimtab.model.schema import Schema, gotext
from trimtab.server.discovery import version_order
from trimtab.server.strategy import Document, Strategy

MAX_REPLICAS = 2**31 - 1


class Custom(Strategy):
    """A kind that a definition describes."""

    verbs = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self._selectable = [(path.lstrip("."), jsonpath.compile(path)) for path in kind.selectable]
        self.selectable = {name: name for name, _ in self._selectable}

    def validate(self, new: Document, old: Document | None, subresource: str) -> Sequence[FieldError]:
        """The numbers that the scale subresource reads must be numbers."""
        scale = self.kind.scale
        if scale is None:
            return ()
        return [*_replica_errors(new, scale.spec_replicas), *_replica_errors(new, scale.status_replicas)]

    def warnings(self, new: Document, old: Document | None) -> Sequence[str]:
        return [
            f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid accidental conflicts with '
            "other finalizer writers"
            for name in new["metadata"].get("finalizers") or ()
            if "/" not in name and name not in ("orphan", "foregroundDeletion", "kubernetes")
        ]

    def fields(self, obj: Document) -> dict[str, str]:
        return {name: _text(path.find(obj)) for name, path in self._selectable}


def _replica_errors(document: Document, path: str) -> list[FieldError]:
    value: Any = document
    for part in path.strip(".").split("."):
        if value is None:
            return []
        if not isinstance(value, dict):
            return [
                FieldError(
                    path,
                    FieldProblem.INVALID,
                    0,
                    f"{path} accessor error: {_go_misfit(value, 'map[string]interface{}')}",
                )
            ]
        value = value.get(part)
    if value is None:
        return []
    if isinstance(value, bool) or not isinstance(value, int):
        return [FieldError(path, FieldProblem.INVALID, 0, f"{path} accessor error: {_go_misfit(value, 'int64')}")]
    if value < 0:
        return [FieldError(path, FieldProblem.INVALID, value, "should be a non-negative integer")]
    if value > MAX_REPLICAS:
        return [FieldError(path, FieldProblem.INVALID, value, f"should be less than or equal to {MAX_REPLICAS}")]
    return []


def _go_misfit(value: Any, wanted: str) -> str:
    types = {
        bool: "bool",
        str: "string",
        int: "int64",
        float: "float64",
        list: "[]interface {}",
        dict: "map[string]interface {}",
    }
    text = value if isinstance(value, str) else gotext.literal(value)
    return f"{text} is of the type {types[type(value)]}, expected {wanted}"


def strategies(definition: Document) -> Iterator[tuple[Custom, bool]]:
    """Each version of a definition, served or not, and whether it is the one that is stored."""
    spec = definition["spec"]
    names = (definition.get("status") or {}).get("acceptedNames") or {}
    names = names if names.get("plural") else spec["names"]
    current = max(
        (v["name"] for v in spec["versions"] if v.get("served") and not v.get("deprecated")),
        key=version_order,
        default="",
    )
    for version in spec["versions"]:
        yield Custom(_kind(spec, names, version, current)), bool(version.get("storage"))


def _kind(spec: Document, names: Document, version: Document, current: str) -> Kind:
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    deprecation = ""
    if version.get("deprecated"):
        shown = f"{spec['group']}/{version['name']} {names['kind']} is deprecated"
        if current and version_order(current) > version_order(version["name"]):
            shown += f"; use {spec['group']}/{current} {names['kind']}"
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
        scale=Scale(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or "")
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
