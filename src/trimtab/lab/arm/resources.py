"""What exists: resources by ID, whatever its case, with their place in the tree.

A body is the truth, with secrets and as it was written; what a read shows is made from it (views). A resource's bytes are
kept until something changes, so that reads and lists of many thousands cost little.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from trimtab.lab.arm.documents import Route, type_of


class Id(msgspec.Struct, frozen=True, kw_only=True):
    """A path, taken apart. `parent` is the resource or the scope above: "" above a subscription."""

    path: str
    key: str
    parent: str
    collection: str
    subscription: str
    group: str
    name: str
    type: str


def parse(path: str) -> Id:
    segments = tuple(part for part in path.split("/") if part)
    lower = tuple(part.lower() for part in segments)
    above = 2
    if "providers" in lower and lower[::-1].index("providers") == 3:
        above = 4  # from the first type of a provider to its scope: /providers/<namespace>/<type>/<name>
    return Id(
        path="/" + "/".join(segments),
        key="/" + "/".join(lower),
        parent="/" + "/".join(lower[:-above]) if len(lower) > above else "",
        collection="/" + "/".join(lower[:-1]),
        subscription=lower[1] if lower[:1] == ("subscriptions",) and len(lower) > 1 else "",
        group=segments[3] if lower[2:3] == ("resourcegroups",) and len(segments) > 3 else "",
        name=segments[-1] if segments else "",
        type=type_of(segments),
    )


class Resource:
    """One that exists."""

    __slots__ = (
        "body",
        "encoded",
        "hidden_reads",
        "id",
        "keys",
        "operation",
        "reads",
        "renamed",
        "route",
        "serial",
        "stale",
        "unborn",
    )

    def __init__(self, identity: Id, route: Route, body: dict[str, Any]) -> None:
        self.id = identity
        self.route = route
        self.body = body
        self.serial = 1  # of its changes; the ETag
        self.reads = 0  # since the last write
        self.hidden_reads = 0  # that still get 404
        self.stale: tuple[int, bytes] = (0, b"")  # reads that still get what was before
        self.unborn = False  # created with 202, and not done
        self.operation: Any = None  # that is under way
        self.keys: dict[str, int] = {}  # how often each key was made anew
        self.renamed = 0
        self.encoded: tuple[int, bytes] | None = None  # of which state of the switches, and what is shown

    @property
    def etag(self) -> str:
        return f'"{self.serial:08x}-0000-4000-8000-{zlib.crc32(self.id.key.encode()):012x}"'

    def touch(self) -> None:
        self.serial += 1
        self.reads = 0
        self.encoded = None


class Resources(Mapping[str, dict[str, Any]]):
    """Bodies by ID."""

    def __init__(self) -> None:
        self._all: dict[str, Resource] = {}
        self._collections: dict[str, dict[str, Resource]] = {}
        self._types: dict[tuple[str, str], dict[str, Resource]] = {}
        self._below: dict[str, set[str]] = {}

    def __getitem__(self, path: str) -> dict[str, Any]:
        return self._all[_key(path)].body

    def __iter__(self) -> Iterator[str]:
        return (each.id.path for each in self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and _key(path) in self._all

    def find(self, path: str) -> Resource | None:
        return self._all.get(path) or self._all.get(_key(path))

    def all(self) -> list[Resource]:
        return list(self._all.values())

    def add(self, resource: Resource) -> None:
        identity = resource.id
        self._all[identity.key] = resource
        self._collections.setdefault(identity.collection, {})[identity.key] = resource
        self._types.setdefault((identity.subscription, identity.type.lower()), {})[identity.key] = resource
        below, above = identity.key, identity.parent
        while above and below not in self._below.setdefault(above, set()):
            self._below[above].add(below)
            below, above = above, parse(above).parent

    def remove(self, key: str) -> list[Resource]:
        """Take it away with all that is below it."""
        gone: list[Resource] = []
        for each in list(self._below.pop(key, ())):
            gone += self.remove(each)
        resource = self._all.pop(key, None)
        self._below.get(parse(key).parent, set()).discard(key)
        if resource is not None:
            del self._collections[resource.id.collection][key]
            del self._types[resource.id.subscription, resource.id.type.lower()][key]
            gone.append(resource)
        return gone

    def collection(self, path: str) -> list[Resource]:
        return list(self._collections.get(_key(path), {}).values())

    def of_type(self, subscription: str, name: str) -> list[Resource]:
        return list(self._types.get((subscription.lower(), name.lower()), {}).values())


def _key(path: str) -> str:
    return "/" + path.strip("/").lower()
