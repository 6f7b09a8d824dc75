"""The files that Envoy follows. Each has a version made from its content: the same content is never told twice, in this life
of the process or the next, and what Envoy echoes names exactly what it was told.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

Document = dict[str, Any]


class _File(msgspec.Struct):
    version_info: str = ""
    resources: list[Document] = []


class Files:
    """Under one folder, which only we write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._versions: dict[str, str] = {}
        self._told: dict[str, list[Document]] = {}
        for part in ("clusters", "routes", "listeners", "held"):
            (folder / part).mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in folder.glob("*/.*.new"):
            path.unlink(missing_ok=True)

    def put(self, name: str, resources: Iterable[Document], *, again: bool = False) -> tuple[str, bool]:
        """The version of this content, and whether the file had another before. `again` has Envoy try what it failed at."""
        listed = list(resources)
        if self._told.get(name) == listed:
            if again:
                self._write(name, {"version_info": self._versions[name], "resources": listed})
            return self._versions[name], False
        encoded = msgspec.json.encode(listed, order="deterministic")
        version = hashlib.blake2b(encoded, digest_size=12).hexdigest()
        if self.version(name) == version:
            self._told[name] = listed
            return version, False
        self._write(name, {"version_info": version, "resources": msgspec.Raw(encoded)})
        self._versions[name], self._told[name] = version, listed
        return version, True

    def version(self, name: str) -> str:
        """What was told last; "" for nothing."""
        if name not in self._versions:
            self._versions[name] = self._read(name).version_info
        return self._versions[name]

    def resources(self, name: str) -> list[Document]:
        return self._read(name).resources

    def names(self, part: str) -> list[str]:
        return [f"{part}/{path.name}" for path in (self.folder / part).glob("*.json")]

    def remove(self, name: str) -> None:
        self._versions.pop(name, None)
        self._told.pop(name, None)
        (self.folder / name).unlink(missing_ok=True)

    def _read(self, name: str) -> _File:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode((self.folder / name).read_bytes(), type=_File)
        return _File()

    def _write(self, name: str, document: Document) -> None:
        write(self.folder / name, msgspec.json.encode(document))


def write(path: Path, content: bytes) -> None:
    """Whole or not at all. Envoy looks when a file is moved there, not when it is written to."""
    fresh = path.with_name(f".{path.name}.new")
    with open(fresh, "wb", opener=_for_us_alone) as file:
        file.write(content)
    os.replace(fresh, path)


def _for_us_alone(path: str, flags: int) -> int:
    """A route may hold what is nobody else's business, such as a token that a header is set to."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
