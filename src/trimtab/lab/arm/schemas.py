"""Schemas of OpenAPI documents, as the emulator needs them: which fields there are, and what is marked on them.

This is a reading of its own, on purpose: the emulator is what the generic reconciler is judged by, and a mistake in the
reconciler's reading of documents must not be made here as well. A `$ref` keeps what is written beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

Raw = Mapping[str, Any]


class Schema(msgspec.Struct):
    """One type. A type that contains itself is one Schema that is met again."""

    type: str = ""
    properties: dict[str, Field] = {}
    required: tuple[str, ...] = ()
    items: Field | None = None
    additional: Field | None = None  # the values of a map
    open: bool = False  # takes any property
    enum: tuple[Any, ...] = ()
    open_enum: bool = False
    discriminator: str = ""
    variants: dict[str, Schema] = {}
    origin: tuple[str, str] = ("", "")  # file and pointer

    def of(self, value: Mapping[str, Any]) -> Schema:
        """The variant that this value says it is."""
        return self.variants.get(str(value.get(self.discriminator, "")).lower(), self) if self.discriminator else self


class Field(msgspec.Struct):
    """A type where it is used, with the marks of that place."""

    schema: Schema
    read_only: bool = False
    create_only: bool = False
    write_only: bool = False  # secrets, too
    secret: bool = False
    nullable: bool = False
    default: Any = None
    format: str = ""


class Files:
    """The documents that were read, and the types in them."""

    def __init__(self) -> None:
        self._files: dict[str, Any] = {}
        self._schemas: dict[tuple[str, str], Schema] = {}

    def add(self, name: str, document: Any) -> None:
        self._files[name] = document

    def load(self, name: str) -> Any:
        if name not in self._files:
            self._files[name] = json.loads(Path(name).read_text("utf-8-sig"))
        return self._files[name]

    def follow(self, node: Raw, file: str) -> tuple[Raw, str, str]:
        """Where a chain of references ends, with what stood beside them; the file, and the pointer in it."""
        beside: dict[str, Any] = {}
        pointer = ""
        for _ in range(50):
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return ({**node, **beside} if beside else node), file, pointer
            beside = {**{key: value for key, value in node.items() if key != "$ref"}, **beside}
            place, _, pointer = reference.partition("#")
            if place:
                file = str((Path(file).parent / place).resolve())
            node = self._at(file, pointer)
        raise ValueError(f"{file}: references go round in a circle at {pointer}")

    def example(self, node: Raw, file: str) -> Any:
        """An example, which is mostly a file of its own. One that is not there is no reason to stop."""
        try:
            return self.follow(node, file)[0]
        except (OSError, ValueError, KeyError):
            return {}

    def field(self, node: Raw, file: str) -> Field:
        whole, place, pointer = self.follow(node, file)
        mutability = whole.get("x-ms-mutability")
        secret = bool(whole.get("x-ms-secret")) or whole.get("format") == "password"
        return Field(
            schema=self._schema(whole, place, pointer),
            read_only=bool(whole.get("readOnly")) or mutability == ["read"],
            create_only=mutability is not None and "create" in mutability and "update" not in mutability,
            write_only=secret or bool(whole.get("writeOnly")) or (mutability is not None and "read" not in mutability),
            secret=secret,
            nullable=bool(whole.get("x-nullable")) or bool(whole.get("nullable")) or "null" in _types(whole),
            default=whole.get("default"),
            format=str(whole.get("format", "")),
        )

    def _schema(self, whole: Raw, file: str, pointer: str) -> Schema:
        known = self._schemas.get((file, pointer)) if pointer else None
        if known is not None:
            return known
        made = Schema(properties={}, variants={}, origin=(file, pointer))
        if pointer:
            self._schemas[file, pointer] = made
        for part, place in self._parts(whole, file):
            for name, raw in part.get("properties", {}).items():
                made.properties[name] = self.field(raw, place)
            made.required += tuple(part.get("required", ()))
            made.discriminator = made.discriminator or _discriminator(part)
        types = [each for each in _types(whole) if each != "null"]
        made.type = types[0] if types else ("object" if made.properties else "")
        made.enum = tuple(whole.get("enum", ()))
        made.open_enum = bool(whole.get("x-ms-enum", {}).get("modelAsString"))
        if isinstance(whole.get("items"), dict):
            made.items = self.field(whole["items"], file)
        additional = whole.get("additionalProperties")
        if isinstance(additional, dict) and additional:
            made.additional = self.field(additional, file)
        made.open = additional is True or additional == {} or not (made.properties or made.additional)
        if made.discriminator and pointer:
            made.variants.update(self._variants(file, pointer))
        return made

    def _parts(self, whole: Raw, file: str, depth: int = 0) -> Iterator[tuple[Raw, str]]:
        for each in whole.get("allOf", ()) if depth < 20 else ():
            part, place, _ = self.follow(each, file)
            yield from self._parts(part, place, depth + 1)
        yield whole, file

    def _variants(self, file: str, pointer: str) -> Iterator[tuple[str, Schema]]:
        base, _, _ = pointer.rpartition("/")
        for name, raw in self._at(file, base).items():
            for each in raw.get("allOf", ()) if isinstance(raw, dict) else ():
                if "$ref" in each and self.follow(each, file)[1:] == (file, pointer):
                    inner = self.field({"$ref": f"#{base}/{name}"}, file).schema
                    yield str(raw.get("x-ms-discriminator-value", name)).lower(), inner
                    yield from inner.variants.items() or self._variants(file, f"{base}/{name}")

    def _at(self, file: str, pointer: str) -> Any:
        node = self.load(file)
        for part in pointer.split("/")[1:]:
            node = node[part.replace("~1", "/").replace("~0", "~")]
        return node


def _types(whole: Raw) -> list[str]:
    given = whole.get("type", [])
    return [given] if isinstance(given, str) else list(given)


def _discriminator(part: Raw) -> str:
    given = part.get("discriminator", "")
    return str(given.get("propertyName", "")) if isinstance(given, dict) else str(given)
