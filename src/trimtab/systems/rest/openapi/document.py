"""One OpenAPI document with all files that it refers to. Everything below it is looked up when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from trimtab.systems.rest.openapi.errors import DocumentError
from trimtab.systems.rest.openapi.operations import METHODS, Operation
from trimtab.systems.rest.openapi.references import Files, Place, escaped
from trimtab.systems.rest.openapi.schema import Schema

DEFINITIONS = ("/definitions/", "/components/schemas/", "/$defs/")
_ARM_HOST = "management.azure.com"


class Document:
    """Made by `loading`. `root` is the tree of the file that it begins with."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.root: Mapping[str, Any] = files.trees[files.entry]
        self.spec = _version(files.entry, self.root)
        self.digest = files.digest
        info = self.root.get("info")
        self.title = str(info.get("title", "")) if isinstance(info, dict) else ""
        self.version = str(info.get("version", "")) if isinstance(info, dict) else ""
        self._host, self.base_path = self._served()
        """What goes before each path is without a slash at the end."""
        self._schemas: dict[Place, Schema] = {}
        paths = self.root.get("paths")
        if not isinstance(paths, dict) and not isinstance(self.root.get("x-ms-paths"), dict):
            raise DocumentError(files.entry, "", "has no paths; an OpenAPI document lists its operations under `paths`")

    def __repr__(self) -> str:
        return f"<Document {self.title} {self.version}>"

    @cached_property
    def operations(self) -> Mapping[tuple[str, str], Operation]:
        """By method and path. The paths of `x-ms-paths` are here without their query, unless one is there already."""
        found: dict[tuple[str, str], Operation] = {}
        for section in ("paths", "x-ms-paths"):
            paths = self.root.get(section)
            for path in paths if isinstance(paths, dict) else ():
                if not path.startswith("/"):
                    continue
                above = self.followed((self.files.entry, f"/{section}/{escaped(path)}"))
                for method in METHODS:
                    if isinstance(self.at(above).get(method), dict):
                        place = (above[0], f"{above[1]}/{method}")
                        operation = Operation(self, method.upper(), (section, path), place, above)
                        key = (operation.method, operation.path)
                        found[key if key not in found else (operation.method, path)] = operation
        return found

    @cached_property
    def is_arm(self) -> bool:
        """Whether it describes resources of Azure's Resource Manager."""
        if self._host.lower() == _ARM_HOST:
            return True
        paths = {path.lower() for _, path in self.operations}
        return any("/providers/microsoft." in path or path.startswith("/subscriptions/{") for path in paths)

    def definitions(self) -> tuple[Schema, ...]:
        """All named schemas of all files."""
        return tuple(self.schema(place) for place in self._definition_places())

    def schema(self, place: Place) -> Schema:
        """The same handle each time."""
        found = self._schemas.get(place)
        if found is None:
            found = self._schemas[place] = Schema(self, place)
        return found

    def derived(self, key: Place) -> tuple[Schema, ...]:
        """The definitions that have this one in their `allOf`, at any depth."""
        found: dict[Place, Schema] = {}
        pending = [key]
        while pending:
            for schema in self._children.get(pending.pop(), ()):
                if schema.key not in found and schema.key != key:
                    found[schema.key] = schema
                    pending.append(schema.key)
        return tuple(found.values())

    def at(self, place: Place) -> Mapping[str, Any]:
        """The object at a place; an empty one for what is no object."""
        node = self.files.at(place)
        return node if isinstance(node, dict) else {}

    def has(self, place: Place) -> bool:
        try:
            self.files.at(place)
        except LookupError:
            return False
        return True

    def followed(self, place: Place) -> Place:
        """Where the references that begin at a place end."""
        return self.files.followed(place)[1]

    def is_definition(self, place: Place) -> bool:
        """Whether a place is that of a named schema."""
        pointer = place[1]
        return not pointer or any(
            pointer.startswith(section) and "/" not in pointer[len(section) :] for section in DEFINITIONS
        )

    @cached_property
    def _children(self) -> Mapping[Place, list[Schema]]:
        found: dict[Place, list[Schema]] = {}
        for schema in self.definitions():
            for part in schema.all_of:
                found.setdefault(part.key, []).append(schema)
        return found

    def _definition_places(self) -> Iterator[Place]:
        for file, tree in self.files.trees.items():
            components = tree.get("components")
            for section, named in (
                ("/definitions/", tree.get("definitions")),
                ("/components/schemas/", components.get("schemas") if isinstance(components, dict) else None),
                ("/$defs/", tree.get("$defs")),
            ):
                for name in named if isinstance(named, dict) else ():
                    yield file, section + escaped(name)

    def _served(self) -> tuple[str, str]:
        """The host, and the path below which all others are."""
        if self.spec == "2.0":
            return str(self.root.get("host", "")), str(self.root.get("basePath", "")).rstrip("/")
        servers = self.root.get("servers")
        first = servers[0] if isinstance(servers, list) and servers and isinstance(servers[0], dict) else {}
        url = str(first.get("url", ""))
        variables = first.get("variables")
        for name, variable in variables.items() if isinstance(variables, dict) else ():
            default = variable.get("default", "") if isinstance(variable, dict) else ""
            url = url.replace(f"{{{name}}}", str(default))
        try:
            parts = urlsplit(url)
        except ValueError:
            raise DocumentError(
                self.files.entry, "/servers/0/url", f"{url!r} is no URL; write https://host/path"
            ) from None
        return parts.netloc, parts.path.rstrip("/")


def _version(file: str, root: Mapping[str, Any]) -> str:
    declared = str(root.get("swagger") or root.get("openapi") or root.get("swaggerVersion") or "")
    if "swagger" in root and declared.startswith("2."):
        return "2.0"
    if "openapi" in root and declared.startswith(("3.0", "3.1", "3.2")):
        return "3.0" if declared.startswith("3.0") else "3.1"
    if not declared:
        raise DocumentError(file, "", 'is no OpenAPI document: it has neither `swagger: "2.0"` nor `openapi: 3.x`')
    raise DocumentError(file, "", f"is of OpenAPI {declared}; convert it to 2.0, 3.0 or 3.1")
