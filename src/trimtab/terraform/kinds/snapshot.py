"""The kinds of a server in one file, made once and read at every start: Terraform asks for schemas before it says where
the server is, and starts a provider several times for one command.

A first line that says what it is, the length of an index, the index as JSON, then segments: the answer to GetProviderSchema
as it goes over the wire, and one definition a kind. Opening reads the index, using a kind reads its segment. The same
server gives the same bytes, as long as nothing took a name before (see promises).
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trimtab.terraform.kinds.definition import Definition, head, pack_definition, unpack_definition

MAGIC = b"trimtab terraform kinds 1\n"
_LENGTH = 8


class BadSnapshot(ValueError):  # noqa: N818 - it is what the file is
    """The file is no snapshot, or one of another release."""


class Snapshot:
    """Definitions by their names, each read when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._known: dict[str, Definition] = {}
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise BadSnapshot(f"{path} is no snapshot of this release: run `trimtab terraform install` again")
            size = int.from_bytes(file.read(_LENGTH), "big")
            try:
                index = json.loads(file.read(size))
            except ValueError:
                raise BadSnapshot(f"{path} is damaged: run `trimtab terraform install` again") from None
        self._start = len(MAGIC) + _LENGTH + size
        self._schema: list[int] = index["schema"]
        self.heads: dict[str, dict[str, Any]] = {one["name"]: one for one in index["kinds"]}
        """What is known of each kind without reading its fields."""

    def definition(self, name: str) -> Definition:
        with self._lock:
            if name not in self._known:
                self._known[name] = unpack_definition(json.loads(self.packed(name)))
            return self._known[name]

    def packed(self, name: str) -> bytes:
        """A definition as the file has it."""
        return self._segment(self.heads[name]["at"])

    def schema(self) -> bytes:
        """The encoded answer to GetProviderSchema; b"" when the file was made without."""
        return self._segment(self._schema)

    def _segment(self, at: list[int]) -> bytes:
        with self.path.open("rb") as file:
            file.seek(self._start + at[0])
            data = file.read(at[1])
        if len(data) != at[1]:
            raise BadSnapshot(f"{self.path} is damaged: run `trimtab terraform install` again")
        return data


def packed(one: Definition) -> bytes:
    """A definition as files have it."""
    return json.dumps(pack_definition(one), separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode()


def snapshot_bytes(definitions: Iterable[Definition], schema: bytes = b"") -> bytes:
    """The file. `schema` is what `encoded_schema` makes of the same definitions."""
    segments, kinds, at = [schema], [], len(schema)
    for one in sorted(definitions, key=lambda one: one.name):
        segments.append(packed(one))
        kinds.append({**head(one), "at": [at, len(segments[-1])]})
        at += len(segments[-1])
    index = json.dumps({"schema": [0, len(schema)], "kinds": kinds}, separators=(",", ":"), sort_keys=True).encode()
    return b"".join((MAGIC, len(index).to_bytes(_LENGTH, "big"), index, *segments))


def write_snapshot(path: Path, data: bytes) -> None:
    """At once or not at all: a Terraform may be reading the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".kinds-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


class Kinds:
    """Definitions at hand, for those who have no file: the same to a provider as a snapshot."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._known = {one.name: one for one in definitions}
        self.heads: Mapping[str, Mapping[str, Any]] = {name: head(one) for name, one in self._known.items()}

    def definition(self, name: str) -> Definition:
        return self._known[name]

    def schema(self) -> bytes:
        return b""
