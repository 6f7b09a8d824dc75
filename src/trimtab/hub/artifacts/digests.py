"""Where a kind's spec names files, and what a write does to their digests.

A digest is written by the artifact endpoint alone: it is a claim to bytes. So every other write keeps those that were
there, whatever it says itself: who forgets them loses nothing, and who invents one gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from trimtab.model.hub import File

Document = dict[str, Any]
Place = tuple[str, ...]

EACH = "*"
"""As a step: every element of a list, or every value of a map."""


class FilePaths(msgspec.Struct, frozen=True):
    """The places in a document at which a kind has files: names of fields, and `*`."""

    places: tuple[Place, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.places)


@cache
def file_paths(cls: type[Any]) -> FilePaths:
    """Where a kind's class has fields of type `File`. A kind that nests itself is looked into once."""
    info = inspect.type_info(cls)
    if not isinstance(info, inspect.StructType):
        raise TypeError(f"{cls.__name__} is no kind")
    spec = [field.type for field in info.fields if field.encode_name == "spec"]
    found = dict.fromkeys(place for each in spec for place in _places(each, ("spec",), ()))
    return FilePaths(tuple(found))


def files_in(document: Document, files: FilePaths) -> list[Document]:
    """Every file that a document names, in order: the objects themselves, which may be changed."""
    found: list[Any] = []
    for place in files.places:
        _gather(document, place, found)
    return [value for value in found if isinstance(value, dict) and isinstance(value.get("name"), str)]


def digests(document: Document, files: FilePaths) -> dict[str, str]:
    """Name → digest of those files whose bytes are known."""
    found = files_in(document, files)
    return {file["name"]: file["digest"] for file in found if isinstance(file.get("digest"), str)}


def awaits(document: Document, files: FilePaths) -> bool:
    """Whether bytes of a file that it names were not given yet."""
    return any("digest" not in file for file in files_in(document, files))


def keep_digests(new: Document, old: Document | None, files: FilePaths) -> None:
    """Give every file in `new` the digest that the file of its name has in `old`, and no other. In place; twice is once."""
    known = digests(old, files) if old is not None else {}
    for file in files_in(new, files):
        digest = known.get(file["name"])
        if digest is None:
            file.pop("digest", None)
        else:
            file["digest"] = digest


def set_digest(document: Document, files: FilePaths, name: str, digest: str | None) -> bool:
    """Record what the bytes of a file are; None: there are none. False when the document names no such file."""
    named = [file for file in files_in(document, files) if file["name"] == name]
    for file in named:
        if digest is None:
            file.pop("digest", None)
        else:
            file["digest"] = digest
    return bool(named)


def _places(info: inspect.Type, at: Place, above: tuple[type[Any], ...]) -> Iterator[Place]:
    if isinstance(info, inspect.Metadata):
        yield from _places(info.type, at, above)
    elif isinstance(info, inspect.UnionType):
        for each in info.types:
            yield from _places(each, at, above)
    elif isinstance(info, inspect.ListType | inspect.VarTupleType):
        yield from _places(info.item_type, (*at, EACH), above)
    elif isinstance(info, inspect.DictType):
        yield from _places(info.value_type, (*at, EACH), above)
    elif isinstance(info, inspect.StructType):
        if issubclass(info.cls, File):
            yield at
        elif info.cls not in above:
            for field in info.fields:
                yield from _places(field.type, (*at, field.encode_name), (*above, info.cls))


def _gather(value: Any, place: Place, found: list[Any]) -> None:
    """Add what stands at a place to `found`."""
    for index, step in enumerate(place):
        if step == EACH:
            for element in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
                _gather(element, place[index + 1 :], found)
            return
        if not isinstance(value, dict) or step not in value:
            return
        value = value[step]
    found.append(value)
