"""Which kinds are served, and how each one's objects become bytes and back.

Stored bytes are handed out as they are when they were written under the schema that is served now; else they are decoded,
defaulted and encoded again. `Registry.changed` counts up whenever a kind comes or goes: caches of discovery hang on it.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import orjson

from trimtab.model.errors import bad_request, not_found
from trimtab.model.schema import Schema
from trimtab.server.backend import Backend, TurnTaking
from trimtab.server.strategy import Document, Strategy
from trimtab.store.contract import Entry, Key, Op, Revision, Write

if TYPE_CHECKING:
    from trimtab.server.conversion.versions import Versions

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

_MARK = f'"resourceVersion":"{secrets.token_hex(16)}"'.encode()
_MARK_VALUE = _MARK.split(b'"')[3].decode()


class Served:
    """One kind as it is served now."""

    def __init__(
        self,
        strategy: Strategy,
        backend: Backend,
        *,
        stored: Served | None = None,
        source: Backend | None = None,
        versions: Versions | None = None,
    ) -> None:
        """`versions` convert: then `backend` has objects in this kind's form, and `source` is what is behind it."""
        self.strategy = strategy
        self.kind = strategy.kind
        self.backend = backend
        self.turns = backend if isinstance(backend, TurnTaking) else None
        self.stored = stored or self  # the kind in whose form the backend has objects
        self.source = source or backend  # for those who look at names and metadata alone, which no version changes
        self.versions = versions
        self.schemas: Mapping[str, Schema] = {}  # of all versions of a custom resource, by apiVersion
        self.primary = self.stored  # of all versions the one that is stored
        self.with_lineage: Served | None = None  # the same, for those who may see where objects were synced from
        self.prefix = f'{{"kind":"{self.kind.kind}","apiVersion":"{self.kind.api_version}",'.encode()
        self._tag = ""

    @property
    def tag(self) -> str:
        """Names the schema that bytes were written under."""
        if not self._tag:
            if self.strategy.native:
                self._tag = self.kind.api_version
            else:
                raw = orjson.dumps(self.kind.schema.document, option=orjson.OPT_SORT_KEYS)
                self._tag = f"{self.kind.api_version}#{hashlib.blake2b(raw, digest_size=6).hexdigest()}"
        return self._tag

    def key(self, namespace: str, name: str) -> Key:
        return Key(self.strategy.storage, namespace, name)

    def decode(self, entry: Entry) -> Document:
        """The object, as this kind's version shows it today."""
        document: Document = orjson.loads(entry.value)
        if entry.schema == self.tag:
            return document
        origin = self.schemas.get(document["apiVersion"]) if self.schemas else None
        if origin is not None and origin is not self.kind.schema:
            origin.prune(document)
            origin.default(document)  # by the version in which it was stored: versions do not default each other
            document["apiVersion"] = self.kind.api_version
            self.kind.schema.prune(document)
            return document
        if self.stored is not self:
            document = self.strategy.from_storage(document)
        document["apiVersion"] = self.kind.api_version
        document["kind"] = self.kind.kind
        if not self.strategy.native:
            self.kind.schema.prune(document)
        self.kind.schema.default(document)
        return document

    def is_settled(self, entry: Entry, document: Document) -> bool:
        """Whether a write of what an entry shows would leave the stored bytes as they are. Those of an older version or
        schema are brought up to date by any write."""
        if self.versions is not None:
            return False  # its backend finds out
        if entry.schema == self.stored.tag or self.strategy.native:
            return True
        write = self.write(document, entry.revision)
        stored: bool = orjson.loads(write.head + str(entry.revision).encode() + write.tail) == orjson.loads(entry.value)
        return stored

    def rendered(self, entry: Entry) -> bytes:
        if entry.schema == self.tag:
            return entry.value
        return self.encode(self.decode(entry))

    def item(self, entry: Entry) -> bytes:
        """An entry as an item of a list. Lists of built-in kinds leave kind and apiVersion out."""
        value = self.rendered(entry)
        if self.strategy.native and value.startswith(self.prefix):
            return b"{" + value[len(self.prefix) :]
        return value

    def encode(self, document: Document) -> bytes:
        ordered = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": None, **document}
        return orjson.dumps(ordered)

    def encode_within(self, document: Document) -> bytes:
        """The same, of what is to be kept: refused unless lists, reviews and events can carry it, too. JSON is written to a
        certain depth only (254 levels), and an object at that limit would break every list that it is in."""
        ordered = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": None, **document}
        try:
            return orjson.dumps([[[[[[[[ordered]]]]]]]])[8:-8]
        except TypeError as error:
            if "ecursion" not in str(error):
                raise
            raise bad_request("the object is nested too deeply to be kept") from None

    def write(
        self, document: Document, expect: Revision | None, op: Op = Op.PUT, expires: float | None = None
    ) -> Write:
        """A write of this object. The revision goes where the mark is, once it is known."""
        metadata = document["metadata"]
        key = self.key(metadata.get("namespace", ""), metadata["name"])
        stored = document
        if self.stored is not self:
            stored = self._as_stored(document)
        marked = {**stored, "metadata": {**stored["metadata"], "resourceVersion": _MARK_VALUE}}
        head, _, tail = self.stored.encode_within(marked).partition(_MARK)
        fields = self.stored.strategy.fields(stored)
        fields["metadata.name"] = key.name
        fields["metadata.namespace"] = key.namespace
        return Write(
            key=key,
            head=head + b'"resourceVersion":"',
            tail=b'"' + tail,
            op=op,
            labels=metadata.get("labels") or {},
            fields=fields,
            schema=self.stored.tag,
            expect=expect,
            expires=expires,
        )

    def _as_stored(self, document: Document) -> Document:
        """The object in the form that the backend has. Bytes are handed out as they are where the schema is the one that
        they were written under, so they must have what that schema has: on the real server each read would do it."""
        head = {"kind": self.stored.kind.kind, "apiVersion": self.stored.kind.api_version}
        if not self.schemas:
            return self.strategy.to_storage(document) | head
        stored: Document = orjson.loads(orjson.dumps(document)) | head
        self.stored.kind.schema.prune(stored)
        self.stored.kind.schema.default(stored)
        return stored

    async def load(self, namespace: str, name: str) -> tuple[Entry, Document]:
        """The object at a name, or 404."""
        entry = await self.backend.get(self.key(namespace, name))
        if entry is None:
            raise not_found(self.kind.plural, self.kind.group, name)
        return entry, self.decode(entry)


class Registry:
    """All kinds that are served."""

    def __init__(self) -> None:
        self._by_path: dict[tuple[str, str, str], Served] = {}
        self._news = asyncio.Event()
        self.changed = 0

    def add(self, served: Served) -> None:
        kind = served.kind
        self._by_path[kind.group, kind.version, kind.plural] = served
        self._announce()

    def remove(self, group: str, version: str, plural: str) -> None:
        if self._by_path.pop((group, version, plural), None) is not None:
            self._announce()

    def _announce(self) -> None:
        self.changed += 1
        self._news.set()
        self._news = asyncio.Event()

    async def news(self, seen: int) -> int:
        """Wait until a kind came or went since `seen`; returns the count of changes."""
        if self.changed == seen:
            await self._news.wait()
        return self.changed

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._by_path.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Served | None:
        return next((s for s in self if s.kind.api_version == api_version and s.kind.kind == kind), None)

    def of_group_kind(self, group: str, kind: str) -> Served | None:
        return next((s for s in self if s.kind.group == group and s.kind.kind == kind), None)

    def of_resource(self, group: str, plural: str) -> Served | None:
        return next((s for s in self if s.kind.group == group and s.kind.plural == plural), None)

    def __iter__(self) -> Iterator[Served]:
        return iter(list(self._by_path.values()))

    def storages(self) -> Mapping[str, Served]:
        """One kind for each place where objects are stored."""
        found: dict[str, Served] = {}
        for served in self:
            if "get" in served.strategy.verbs:
                found.setdefault(served.strategy.storage, served.primary)
        return found
