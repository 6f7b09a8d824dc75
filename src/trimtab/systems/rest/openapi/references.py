"""References between and within files: what they name, and the set of files that a document needs. Pure.

`Gathering` is told the files one after the other, and says which are still missing: so that a folder, a ConfigMap and a
web server can each fetch them in their own way. When none is missing, `finished` checks that every reference leads
somewhere, and gives the trees.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from trimtab.systems.rest.openapi.errors import DocumentError
from trimtab.systems.rest.openapi.reading import MOST_DEPTH, MOST_NODES, parsed, unpacked

MOST_FILES = 256
MOST_REFERENCES = 200_000
LONGEST_CHAIN = 32

NAMING = frozenset(
    ("properties", "patternProperties", "definitions", "$defs", "schemas", "parameters", "responses", "headers")
)
"""Keywords below which keys are names: a property that is called `example` is no example."""
EXAMPLES = frozenset(("example", "examples", "x-ms-examples", "x-example", "x-examples"))
VALUES = EXAMPLES | {"default", "enum", "const"}
"""Keywords that hold values, in which `$ref` is no reference."""

Place = tuple[str, str]
"""A file and a JSON pointer."""


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """All files of a document. `entry` is the one that it begins with."""

    entry: str
    trees: Mapping[str, Any]
    digest: str

    def at(self, place: Place) -> Any:
        """What is at a place. Raises LookupError."""
        return _at(self.trees[place[0]], place[1])

    def followed(self, place: Place) -> tuple[list[Mapping[str, Any]], Place]:
        """What is at the place, through all references: first the objects that hold the references, for the keywords that
        they have next to `$ref`, at last the object that is meant, with its place."""
        layers: list[Mapping[str, Any]] = []
        while True:
            found = self.at(place)
            node = found if isinstance(found, dict) else {}
            layers.append(node)
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return layers, place
            place = target(place, reference, "")


def target(place: Place, reference: str, folder: str) -> Place:
    """The place that a reference at `place` names. Raises DocumentError when it is outside of the folder."""
    file = place[0]
    if reference.startswith("#"):
        return file, _fragment(place, reference[1:])
    try:
        parts = urlsplit(reference)
    except ValueError:
        raise DocumentError(*place, f"$ref {reference!r} is no reference; write file.json#/path/to/it") from None
    path = unquote(parts.path)
    if parts.scheme or parts.netloc or path.startswith("/") or "\0" in path:
        raise _leaves(place, reference, folder)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
    if path.startswith("../") or path == "..":
        raise _leaves(place, reference, folder)
    return path, _fragment(place, parts.fragment)


def escaped(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key


def last_name(place: Place) -> str:
    """The name of what is at the place: the last part of the pointer, or the file's name."""
    file, pointer = place
    if not pointer:
        return posixpath.basename(file).split(".")[0]
    return _unescaped(pointer.rpartition("/")[2])


class Gathering:
    """The files of a document while they are brought together. `folder` is what messages call the root."""

    def __init__(self, entry: str, folder: str = "") -> None:
        self._entry = posixpath.normpath(entry)
        self._folder = folder
        self._trees: dict[str, Any] = {}
        self._texts: dict[str, bytes] = {}
        self._wanted: dict[str, Place] = {self._entry: (self._entry, "")}
        self._references: list[tuple[Place, str, Place]] = []

    def missing(self) -> str | None:
        """A file that is needed and was not added yet."""
        return next(iter(self._wanted), None)

    def asked_at(self, file: str) -> Place:
        """Where the reference is that first led to a missing file."""
        return self._wanted[file]

    def add(self, file: str, content: bytes) -> None:
        """Raises DocumentError when it does not parse, or leads outside."""
        self._wanted.pop(file, None)
        text = unpacked(file, content)
        tree = parsed(file, text)
        self._trees[file], self._texts[file] = tree, text
        for pointer, reference in references(file, tree):
            place = (file, pointer)
            to = target(place, reference, self._folder)
            self._references.append((place, reference, to))
            if to[0] not in self._trees:
                self._wanted.setdefault(to[0], place)
        if len(self._references) > MOST_REFERENCES:
            raise DocumentError(file, "", f"has more than {MOST_REFERENCES} references; leave out what is not needed")
        if len(self._trees) + len(self._wanted) > MOST_FILES:
            raise DocumentError(file, "", f"refers to more than {MOST_FILES} files; bundle what is needed into one")

    def finished(self) -> Files:
        """Raises DocumentError for a reference that leads nowhere."""
        digest = hashlib.sha256()
        for file in sorted(self._texts):
            digest.update(f"{len(file.encode())} {file} {len(self._texts[file])}\n".encode() + self._texts[file])
        files = Files(entry=self._entry, trees=self._trees, digest=f"sha256:{digest.hexdigest()}")
        sound: set[Place] = set()
        for place, reference, to in self._references:
            if to not in sound:
                _check(files, place, reference, to, self._folder)
                sound.add(to)
        return files


def references(file: str, tree: Any) -> Iterator[tuple[str, str]]:
    """All `$ref` in a tree with the pointers of the objects that hold them. Raises DocumentError when it is too deep."""
    nodes = 0
    stack: list[tuple[Any, str, bool, int]] = [(tree, "", False, 0)]
    while stack:
        node, pointer, named, depth = stack.pop()
        nodes += 1
        if nodes > MOST_NODES:
            raise DocumentError(file, pointer, f"unfolds to more than {MOST_NODES} values; use $ref instead of aliases")
        if depth > MOST_DEPTH:
            raise DocumentError(file, pointer[:200], f"is nested deeper than {MOST_DEPTH} levels")
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str):
                yield pointer, reference
            if "mapping" in node and isinstance(node.get("propertyName"), str):
                yield from _mapped(pointer, node["mapping"])
            for key, value in node.items():
                if isinstance(value, dict | list) and (named or key not in VALUES):
                    below = not named and key in NAMING
                    stack.append((value, f"{pointer}/{escaped(key)}", below, depth + 1))
        elif isinstance(node, list):
            for index, value in enumerate(node):
                if isinstance(value, dict | list):
                    stack.append((value, f"{pointer}/{index}", False, depth + 1))


def is_reference(value: str) -> bool:
    """Whether the value in a discriminator's mapping is a reference and not a schema's name."""
    return "/" in value or "#" in value or value.endswith((".json", ".yaml", ".yml"))


def _mapped(pointer: str, mapping: Any) -> Iterator[tuple[str, str]]:
    if isinstance(mapping, dict):
        for value in mapping.values():
            if isinstance(value, str) and is_reference(value):
                yield f"{pointer}/mapping", value


def _check(files: Files, place: Place, reference: str, to: Place, folder: str) -> None:
    seen = [place]
    while True:
        try:
            node = files.at(to)
        except LookupError:
            there = ", ".join(_near(files, to))
            hint = f"; there are: {there}" if there else ""
            raise DocumentError(*place, f"$ref {reference!r} leads nowhere{hint}") from None
        following = node.get("$ref") if isinstance(node, dict) else None
        if not isinstance(following, str):
            return
        if len(seen) > LONGEST_CHAIN:
            why = f"$ref {reference!r} leads to more than {LONGEST_CHAIN} others in a row; name the last of them"
            raise DocumentError(*place, why)
        if to in seen:
            raise DocumentError(*place, f"$ref {reference!r} leads back to itself; one of the chain must be a schema")
        seen.append(to)
        to = target(to, following, folder)


def _near(files: Files, to: Place) -> list[str]:
    """The names beside the one that is missing."""
    try:
        beside = files.at((to[0], to[1].rpartition("/")[0]))
    except LookupError:
        return []
    return sorted(beside)[:8] if isinstance(beside, dict) else []


def _at(tree: Any, pointer: str) -> Any:
    if not pointer:
        return tree
    node = tree
    for part in pointer[1:].split("/"):
        key = _unescaped(part)
        if isinstance(node, dict):
            node = node[key]
        elif isinstance(node, list) and key.isdecimal():
            node = node[int(key)]
        else:
            raise LookupError(key)
    return node


def _fragment(place: Place, fragment: str) -> str:
    pointer = unquote(fragment).rstrip("/")
    if pointer and not pointer.startswith("/"):
        raise DocumentError(*place, f"$ref to the anchor #{fragment} is not supported; name it by its path: #/…")
    return pointer


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def _leaves(place: Place, reference: str, folder: str) -> DocumentError:
    within = f" {folder}" if folder else ""
    return DocumentError(
        *place, f"$ref {reference!r} leaves the document's folder{within}; name a folder that holds both with --root"
    )
