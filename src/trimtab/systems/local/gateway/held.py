"""What each VirtualService last said that Envoy took. It stands in for a later one that is no good, also after a restart."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from trimtab.systems.local.gateway.envoy.files import write
from trimtab.systems.local.gateway.names import Key

Document = dict[str, Any]


class Held(Mapping[Key, Document]):
    """Specs, in memory and in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._specs: dict[Key, Document] = {}
        for path in folder.glob("*.json"):
            with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
                kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
                self._specs[Key(kept.namespace, kept.name)] = kept.spec

    def keep(self, key: Key, spec: Document) -> None:
        if self._specs.get(key) != spec:
            self._specs[key] = spec
            write(self._path(key), msgspec.json.encode(_Kept(key.namespace, key.name, spec)))

    def only(self, keys: set[Key]) -> None:
        """Forget the others."""
        for key in [key for key in self._specs if key not in keys]:
            del self._specs[key]
            self._path(key).unlink(missing_ok=True)

    def _path(self, key: Key) -> Path:
        """By a hash: both names together may be longer than a file's can be."""
        return self._folder / f"{hashlib.blake2b(str(key).encode(), digest_size=16).hexdigest()}.json"

    def __getitem__(self, key: Key) -> Document:
        return self._specs[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)


class _Kept(msgspec.Struct):
    namespace: str
    name: str
    spec: Document
