"""A handle on a schema: it looks into the document when asked and never copies, so that types may contain themselves.

What is written next to a `$ref` counts for that use: `layers` has those keywords first, then what is referred to. An
`allOf` of one, and a choice between one and null, are such uses too: OpenAPI 3 writes them where 2 wrote a `$ref`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.systems.rest.openapi.references import Place, escaped, is_reference, last_name, target

if TYPE_CHECKING:
    from trimtab.systems.rest.openapi.document import Document

STRUCTURE = frozenset(
    (
        "additionalProperties", "allOf", "anyOf", "discriminator", "enum", "items", "oneOf", "properties", "required",
        "type",
    )
)  # fmt: skip
"""Keywords that make another type of what they are next to."""


class Discriminator(msgspec.Struct, frozen=True):
    """Which property tells what an object is, and what its values mean."""

    property: str
    mapping: Mapping[str, Schema]


class Schema:
    """`name` is the definition's, "" for one that is written in its place; `key` is the same for the same type."""

    def __init__(self, document: Document, place: Place) -> None:
        self._document = document
        self.place = place
        self._null = False
        found = self._unwrapped(place)
        self._layers = tuple(layer for layer, _ in found)
        self._places = tuple(where for _, where in found)
        own = any(STRUCTURE.intersection(layer) and not _wraps(layer) for layer in self._layers[:-1])
        self.key: Place = place if own else self._places[-1]
        self.name = "" if own or not document.is_definition(self.key) else last_name(self.key)

    def __repr__(self) -> str:
        return f"<Schema {self.name or self.key[1]}>"

    def get(self, keyword: str, default: Any = None) -> Any:
        """The value of a keyword as the document has it; the nearest to the use counts."""
        for layer in self._layers:
            if keyword in layer:
                return layer[keyword]
        return default

    def extension(self, name: str) -> Any:
        return self.get(name)

    @cached_property
    def properties(self) -> dict[str, Schema]:
        """With those of `allOf`; own ones replace theirs."""
        found: dict[str, Schema] = {}
        for part in self._line:
            for layer, place in reversed(list(zip(part._layers, part._places, strict=True))):
                own = layer.get("properties")
                if isinstance(own, dict):
                    found.update({name: self._child(place, "properties", name) for name in own})
        return found

    @cached_property
    def required(self) -> tuple[str, ...]:
        """With those of `allOf`."""
        found: dict[str, None] = {}
        for part in self._line:
            for layer in reversed(part._layers):
                own = layer.get("required")
                if isinstance(own, list):
                    found.update(dict.fromkeys(name for name in own if isinstance(name, str)))
        return tuple(found)

    @cached_property
    def items(self) -> Schema | None:
        return next((found for part in reversed(self._line) if (found := part._below("items"))), None)

    @cached_property
    def additional(self) -> Schema | bool | None:
        """What other properties may be; None when the document does not say."""
        for part in reversed(self._line):
            value = part.get("additionalProperties")
            if isinstance(value, bool):
                return value
            if isinstance(value, dict):
                return part._below("additionalProperties") if value else True
        return None

    @cached_property
    def all_of(self) -> tuple[Schema, ...]:
        return tuple(self._parts("allOf"))

    @cached_property
    def one_of(self) -> tuple[Schema, ...]:
        """Without null."""
        return tuple(part for part in self._parts("oneOf") if part.type != "null")

    @cached_property
    def any_of(self) -> tuple[Schema, ...]:
        """Without null."""
        return tuple(part for part in self._parts("anyOf") if part.type != "null")

    @cached_property
    def type(self) -> str:
        """One word, found from other keywords when `type` is left out; "" when anything may be there."""
        return next((found for part in reversed(self._line) if (found := part._own_type())), "")

    @cached_property
    def nullable(self) -> bool:
        declared = self.get("type")
        if self._null or self.get("x-nullable") is True or self.get("nullable") is True:
            return True
        if isinstance(declared, list) and "null" in declared:
            return True
        return any(part.type == "null" for keyword in ("oneOf", "anyOf") for part in self._parts(keyword))

    @cached_property
    def discriminator(self) -> Discriminator | None:
        """Of the schema itself, or of one of its `allOf` when there are further variants below it."""
        declared = self.get("discriminator")
        if isinstance(declared, str):
            return Discriminator(declared, self._variants())
        if isinstance(declared, dict) and isinstance(declared.get("propertyName"), str):
            return Discriminator(declared["propertyName"], self._variants() | self._mapped(declared.get("mapping")))
        for part in reversed(self._line[:-1]):
            of_part = part.get("discriminator")
            name = of_part.get("propertyName") if isinstance(of_part, dict) else of_part
            if isinstance(name, str):
                variants = self._variants()
                return Discriminator(name, variants) if variants else None
        return None

    @cached_property
    def _line(self) -> tuple[Schema, ...]:
        """All that `allOf` names at any depth, each once and after what it derives from itself; the schema at last. What
        leads back to itself is left out there."""
        found: list[Schema] = []
        seen = {self.key}
        pending = [(self, iter(self.all_of))]
        while pending:
            schema, parts = pending[-1]
            part = next(parts, None)
            if part is None:
                found.append(schema)
                pending.pop()
            elif part.key not in seen:
                seen.add(part.key)
                pending.append((part, iter(part.all_of)))
        return tuple(found)

    def _own_type(self) -> str:
        declared = self.get("type")
        if isinstance(declared, list):
            words = [word for word in declared if word != "null"]
            return str(words[0]) if len(words) == 1 else "null" if not words and declared else ""
        if isinstance(declared, str):
            return declared
        if self.get("properties") is not None or self.get("additionalProperties"):
            return "object"
        if self.get("items") is not None:
            return "array"
        return _type_of_enum(self.get("enum"))

    def _variants(self) -> dict[str, Schema]:
        """By value: the definitions that have this one in their `allOf`, at any depth, and what `oneOf` offers."""
        found = {variant.name: variant for variant in (*self.one_of, *self.any_of) if variant.name}
        for variant in self._document.derived(self.key):
            value = variant.extension("x-ms-discriminator-value")
            found[value if isinstance(value, str) else variant.name] = variant
        return found

    def _mapped(self, mapping: Any) -> dict[str, Schema]:
        found = {}
        for value, named in (mapping or {}).items() if isinstance(mapping, dict) else ():
            if isinstance(named, str):
                reference = named if is_reference(named) else f"#/components/schemas/{escaped(named)}"
                place = target(self.key, reference, "")
                if self._document.has(place):
                    found[value] = self._document.schema(place)
        return found

    def _parts(self, keyword: str) -> Iterator[Schema]:
        for layer, place in zip(self._layers, self._places, strict=True):
            if isinstance(layer.get(keyword), list) and not (
                layer is not self._layers[-1] and _wraps(layer) == keyword
            ):
                for index in range(len(layer[keyword])):
                    yield self._child(place, keyword, str(index))

    def _below(self, keyword: str) -> Schema | None:
        for layer, place in zip(self._layers, self._places, strict=True):
            if isinstance(layer.get(keyword), dict):
                return self._child(place, keyword)
        return None

    def _child(self, place: Place, *keys: str) -> Schema:
        return self._document.schema((place[0], "/".join((place[1], *map(escaped, keys)))))

    def _unwrapped(self, place: Place) -> list[tuple[Mapping[str, Any], Place]]:
        """The layers with their places, from the use to what is meant."""
        found: list[tuple[Mapping[str, Any], Place]] = []
        seen = set()
        while place not in seen:
            seen.add(place)
            node = self._document.at(place)
            found.append((node, place))
            reference = node.get("$ref")
            if isinstance(reference, str):
                place = target(place, reference, "")
                continue
            keyword = _wraps(node)
            if not keyword or self._document.is_definition(place):
                break
            meant = [index for index, part in enumerate(node[keyword]) if not _is_null(part)]
            self._null = self._null or len(node[keyword]) > 1
            place = (place[0], f"{place[1]}/{keyword}/{meant[0]}")
        return found


def _wraps(node: Mapping[str, Any]) -> str:
    """The keyword that makes this another schema with a few words more, or ""."""
    if "properties" in node or "items" in node or "discriminator" in node:
        return ""
    there = [keyword for keyword in ("allOf", "oneOf", "anyOf") if isinstance(node.get(keyword), list)]
    if len(there) != 1:
        return ""
    parts = node[there[0]]
    meant = [part for part in parts if not _is_null(part)]
    if len(meant) != 1 or not isinstance(meant[0], dict) or (there[0] == "allOf" and len(parts) > 1):
        return ""
    return there[0]


def _is_null(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("null", ["null"])


def _type_of_enum(values: Any) -> str:
    if not isinstance(values, list):
        return ""
    kinds = {type(value) for value in values if value is not None}
    return (
        {str: "string", bool: "boolean", int: "integer", float: "number"}.get(kinds.pop(), "")
        if len(kinds) == 1
        else ""
    )
