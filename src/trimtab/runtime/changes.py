"""What an informer tells its controllers: one object as it was and as it is. Nothing is read before someone asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from trimtab.client.entries import Entry

if TYPE_CHECKING:
    from trimtab.runtime.cache import Cache
    from trimtab.runtime.echo import Writer
    from trimtab.runtime.informers import Informers


class Request(NamedTuple):
    """Which object to reconcile. An object without a namespace has ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Owner(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Who owns an object, as far as controllers ask."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class Head(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of an object, as far as predicates and owners ask for it."""

    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    finalizers: tuple[str, ...] | None = None
    owner_references: tuple[Owner, ...] | None = None
    deletion_timestamp: str | None = None


class Change:
    """From `old` to `new`: None before the object existed and after it is gone. `initial` tells the first list apart;
    `writer` is the reconcile whose own write this is."""

    __slots__ = ("_cache", "_heads", "_objects", "after", "before", "initial", "writer")

    def __init__(
        self,
        cache: Cache,
        before: Entry | None,
        after: Entry | None,
        initial: bool = False,
        writer: Writer | None = None,
    ) -> None:
        self._cache = cache
        self.before = before
        self.after = after
        self.initial = initial
        self.writer = writer
        self._heads: list[Head | None] | None = None
        self._objects: list[Any] | None = None

    @property
    def request(self) -> Request:
        entry = self.after or self.before
        assert entry is not None  # noqa: S101 - one of them is there
        return Request(entry.namespace, entry.name)

    @property
    def heads(self) -> list[Head | None]:
        """The metadata before and after."""
        if self._heads is None:
            self._heads = [None if e is None else head(e.body) for e in (self.before, self.after)]
        return self._heads

    @property
    def old(self) -> Any:
        """The object before; None when there was none."""
        return self._read()[0]

    @property
    def new(self) -> Any:
        """The object after; None when it is gone."""
        return self._read()[1]

    @property
    def informers(self) -> Informers:
        """What else is cached, to look an owner up by an index."""
        return self._cache.informers

    def _read(self) -> list[Any]:
        if self._objects is None:
            self._objects = [None if e is None else self._cache.decode(e) for e in (self.before, self.after)]
        return self._objects


def head(body: bytes) -> Head:
    """The metadata of an object, read from its JSON."""
    return _HEAD.decode(body).metadata


class _Headed(msgspec.Struct):
    metadata: Head


_HEAD = msgspec.json.Decoder(_Headed)
