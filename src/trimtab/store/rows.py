"""The shape of the database, and how its rows become entries.

`log` holds every value once, under its revision. `latest` points into it for the keys that exist. A deletion takes the
key out of `latest` and leaves its row in the log. `log.previous` is the revision that a row superseded (0: none), which
is what snapshots, `Change.before` and compaction go by; it never names a deletion.

To change the shape, add a step to LADDER; never edit one that was released.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from types import MappingProxyType
from typing import Any, cast

import msgspec
import orjson

from trimtab.store.contract import Entry, Key

APPLICATION_ID = 0x54726D54  # "TrmT"

LADDER: tuple[str, ...] = (
    # `value` comes last: reading the other columns of a long row does not touch its overflow pages.
    """
    CREATE TABLE log(
        revision  INTEGER PRIMARY KEY,
        resource  TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name      TEXT NOT NULL,
        deleted   INTEGER NOT NULL,
        previous  INTEGER NOT NULL,
        schema    TEXT NOT NULL,
        labels    BLOB,
        fields    BLOB,
        value     BLOB NOT NULL
    ) STRICT;
    CREATE TABLE latest(
        resource  TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name      TEXT NOT NULL,
        revision  INTEGER NOT NULL,
        expires   REAL,
        PRIMARY KEY (resource, namespace, name)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX latest_by_expiry ON latest(expires) WHERE expires IS NOT NULL;
    CREATE TABLE horizon(compacted INTEGER NOT NULL) STRICT;
    INSERT INTO horizon VALUES (0);
    """,
)
"""Step n takes a database of version n to n + 1; version 0 is an empty file."""

ENTRY = "log.resource, log.namespace, log.name, log.revision, log.schema, log.labels, log.fields, log.value"
"""The columns that `entry` takes."""


def entry(row: tuple[Any, ...]) -> Entry:
    _, _, _, revision, schema, labels, fields, value = row
    return Entry(
        key=tuple.__new__(Key, row[:3]),
        revision=revision,
        value=value,
        labels=EMPTY if labels is None else _lazy(labels),
        fields=EMPTY if fields is None else _lazy(fields),
        schema=schema,
    )


def packed(values: Mapping[str, str]) -> bytes | None:
    """Labels or fields as they are stored."""
    return orjson.dumps(dict(values)) if values else None


class JsonMapping(msgspec.Struct, gc=False, eq=False):
    """A mapping that is decoded when it is first looked at: most entries of a list never are.

    A struct that is registered as a Mapping, and not a subclass: lists make two of these for each entry, and this way
    they cost half as much and nothing to the garbage collector.
    """

    raw: bytes
    decoded: dict[str, str] | None = None

    def _values(self) -> dict[str, str]:
        if self.decoded is None:
            self.decoded = orjson.loads(self.raw)
        return self.decoded

    def __getitem__(self, name: str) -> str:
        return self._values()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())

    def __contains__(self, name: object) -> bool:
        return name in self._values()

    def __eq__(self, other: object) -> bool:
        return self._values() == (other._values() if isinstance(other, JsonMapping) else other)

    def __repr__(self) -> str:
        return repr(self._values())

    __hash__ = None  # type: ignore[assignment]

    def get(self, name: str, default: Any = None) -> Any:
        return self._values().get(name, default)

    def keys(self) -> KeysView[str]:
        return self._values().keys()

    def items(self) -> ItemsView[str, str]:
        return self._values().items()

    def values(self) -> ValuesView[str]:
        return self._values().values()


Mapping.register(JsonMapping)
_lazy: Callable[[bytes], Mapping[str, str]] = cast(Any, JsonMapping)
EMPTY: Mapping[str, str] = MappingProxyType({})
