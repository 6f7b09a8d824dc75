"""A part of a document as one file: some operations and all that they reach. It loads to the same operations and schemas.

First everything that is reached is found and named, those of the first file before others, so that they keep their names;
then it is copied with its references turned to the new names. A name may be what a discriminator's value is by default: one
that had to change says its value itself.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import orjson

from trimtab.systems.rest.openapi.document import Document
from trimtab.systems.rest.openapi.errors import DocumentError
from trimtab.systems.rest.openapi.operations import Operation
from trimtab.systems.rest.openapi.references import (
    EXAMPLES,
    NAMING,
    VALUES,
    Place,
    escaped,
    is_reference,
    last_name,
    references,
    target,
)

_KEPT = ("swagger", "openapi", "host", "basePath", "schemes", "consumes", "produces", "servers")
_LEFT_OUT = EXAMPLES | {"callbacks", "links"}
_SCHEMA = "schemas"


def bundle(document: Document, operations: Iterable[tuple[str, str]]) -> bytes:
    """JSON with these operations, by method and path. Raises DocumentError for one that the document does not have."""
    return orjson.dumps(_Bundle(document, _found(document, operations)).made())


def _found(document: Document, operations: Iterable[tuple[str, str]]) -> list[Operation]:
    asked = set(operations)
    missing = sorted(asked - set(document.operations))
    if missing:
        raise DocumentError(document.files.entry, "", f"has no operation {' '.join(missing[0])}; see its paths")
    return [operation for key, operation in document.operations.items() if key in asked]


class _Use(msgspec.Struct, frozen=True):
    """Where something is copied from, and what it is there: an operation, a path, or a section of components."""

    place: Place
    section: str


class _Bundle:
    def __init__(self, document: Document, operations: list[Operation]) -> None:
        self._document = document
        self._operations = operations
        self._reached: dict[Place, str] = {}
        self._names: dict[Place, str] = {}

    def made(self) -> dict[str, Any]:
        self._reach()
        self._name()
        root = self._document.root
        tree: dict[str, Any] = {key: root[key] for key in _KEPT if key in root}
        tree["info"] = {"title": self._document.title, "version": self._document.version}
        tree["paths"] = {}
        for operation in self._operations:
            self._add(tree, operation)
        for place, section in self._reached.items():
            home = tree
            for key in self._home(section)[1:].split("/"):
                home = home.setdefault(key, {})
            home[self._names[place]] = self._definition(place, section)
        return tree

    def _reach(self) -> None:
        pending = [_Use(operation.key, "operation") for operation in self._operations]
        pending += [_Use(operation.above, "path") for operation in self._operations]
        while pending:
            use = pending.pop()
            for pointer, reference in references(use.place[0], self._shallow(use)):
                to = target(use.place, reference, "")
                if to not in self._reached:
                    self._reached[to] = section = _section(use.section, pointer)
                    pending.append(_Use(to, section))
            for variant in self._variants(use):
                if variant not in self._reached:
                    self._reached[variant] = _SCHEMA
                    pending.append(_Use(variant, _SCHEMA))

    def _variants(self, use: _Use) -> list[Place]:
        """What nobody refers to, but a discriminator may name."""
        if use.section != _SCHEMA or "discriminator" not in self._document.at(use.place):
            return []
        found = self._document.schema(use.place).discriminator
        return [variant.key for variant in found.mapping.values()] if found is not None else []

    def _shallow(self, use: _Use) -> Mapping[str, Any]:
        """A path without its operations."""
        node = self._document.at(use.place)
        if use.section == "path":
            return {key: value for key, value in node.items() if key == "parameters"}
        return {key: value for key, value in node.items() if use.section == _SCHEMA or key not in _LEFT_OUT}

    def _name(self) -> None:
        taken: set[tuple[str, str]] = set()
        entry = self._document.files.entry
        for place in sorted(self._reached, key=lambda place: (place[0] != entry, place)):
            section = self._reached[place]
            wanted = name = last_name(place)
            number = 2
            while (section, name) in taken:
                name = f"{wanted}_{number}"
                number += 1
            taken.add((section, name))
            self._names[place] = name

    def _add(self, tree: dict[str, Any], operation: Operation) -> None:
        section, path = operation.written
        paths = tree.setdefault(section, {})
        if path not in paths:
            above = self._shallow(_Use(operation.above, "path"))
            paths[path] = self._copy(above, operation.above, named=False)
        copied = self._copy(self._shallow(_Use(operation.key, "operation")), operation.key, named=False)
        paths[path][operation.method.lower()] = copied

    def _definition(self, place: Place, section: str) -> Any:
        copied = self._copy(self._document.files.at(place), place, named=False)
        renamed = isinstance(copied, dict) and self._names[place] != last_name(place)
        if section == _SCHEMA and renamed and "allOf" in copied and "discriminator" not in copied:
            copied.setdefault("x-ms-discriminator-value", last_name(place))
        return copied

    def _copy(self, node: Any, place: Place, *, named: bool) -> Any:
        """`named`: the keys are names, not keywords."""
        if isinstance(node, list):
            return [self._copy(each, place, named=False) for each in node]
        if not isinstance(node, dict):
            return node
        made: dict[str, Any] = {}
        for key, value in node.items():
            if named:
                made[key] = self._copy(value, place, named=False)
            elif key == "$ref" and isinstance(value, str):
                made[key] = self._reference(target(place, value, ""))
            elif key == "mapping" and isinstance(node.get("propertyName"), str) and isinstance(value, dict):
                made[key] = {name: self._mapped(place, meant) for name, meant in value.items()}
            elif key in VALUES:
                if key not in EXAMPLES:
                    made[key] = value
            else:
                made[key] = self._copy(value, place, named=key in NAMING)
        return made

    def _mapped(self, place: Place, meant: Any) -> Any:
        if not isinstance(meant, str):
            return meant
        reference = meant if is_reference(meant) else f"#/components/schemas/{escaped(meant)}"
        to = target(place, reference, "")
        return self._reference(to) if to in self._names else meant

    def _reference(self, to: Place) -> str:
        return f"#{self._home(self._reached[to])}/{escaped(self._names[to])}"

    def _home(self, section: str) -> str:
        if self._document.spec == "2.0":
            return "/definitions" if section == _SCHEMA else f"/{section}"
        return f"/components/{section}"


def _section(container: str, pointer: str) -> str:
    """What a reference in a container names, by where in it it is."""
    if not pointer:
        return container
    if container == _SCHEMA:
        return _SCHEMA
    above, last = posixpath.split(pointer)
    if container in ("operation", "path") and above in ("/parameters", "/responses"):
        return above[1:]
    if container == "operation" and pointer == "/requestBody":
        return "requestBodies"
    if last and posixpath.basename(above) == "headers":
        return "headers"
    return _SCHEMA
