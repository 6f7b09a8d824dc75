"""Where a strategic merge patch finds the marks of a field: the OpenAPI document of a built-in kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.server.patch.failures import unclassified


class PatchMeta(msgspec.Struct, frozen=True):
    """What the schema says of one object type. `name` is the Go type's, for messages."""

    schema: Mapping[str, Any]
    definitions: Mapping[str, Any]
    name: str = ""

    @classmethod
    def of(cls, schema: Mapping[str, Any], definitions: Mapping[str, Any], name: str = "") -> PatchMeta:
        for part in schema.get("allOf", ()):
            if "$ref" in part:
                schema = part
                break
        while "$ref" in schema:
            reference = schema["$ref"].rpartition("/")[2]
            name = reference.rpartition(".")[2]
            schema = definitions.get(reference, {})
        return cls(schema, definitions, name)

    @property
    def go_kind(self) -> str:
        return "struct" if "properties" in self.schema else "map"

    def field(self, key: str) -> FieldMeta:
        properties = self.schema.get("properties")
        if properties is None:
            raise unclassified(
                f"merging an object in json but data type is not struct, instead is: {self._plain_kind()}"
            )
        if key not in properties:
            raise unclassified(f'unable to find api field in struct {self.name} for the json field "{key}"')
        return FieldMeta(properties[key], self.definitions)

    def _plain_kind(self) -> str:
        return "interface" if not self.schema.get("type") else "map"


class FieldMeta(msgspec.Struct, frozen=True):
    """What the schema says of one field of an object."""

    schema: Mapping[str, Any]
    definitions: Mapping[str, Any]

    @property
    def merge_key(self) -> str:
        return str(self.schema.get("x-kubernetes-patch-merge-key", ""))

    @property
    def strategy(self) -> str:
        """merge, replace or nothing; retainKeys is obeyed by its directive alone."""
        names = str(self.schema.get("x-kubernetes-patch-strategy", "")).split(",")
        return next((name for name in names if name != "retainKeys"), "")

    @property
    def meta(self) -> PatchMeta:
        return PatchMeta.of(self.schema, self.definitions)

    def items(self) -> PatchMeta:
        """The meta of a list's elements."""
        return PatchMeta.of(self.meta.schema.get("items", {}), self.definitions)
