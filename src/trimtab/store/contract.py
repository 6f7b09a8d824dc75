"""The store's contract: a revisioned map with a log.

Flow: `commit` gives each write the next revision and returns once it is durable; `watch` hands out the same writes in
the same order, to everyone, exactly once.

Guarantees
  - Revisions are integers that only grow, one sequence for the whole store, also across restarts.
  - A write is atomic: all of it or none of it is there after a crash; an acknowledged one always is.
  - `get` and `list` see every acknowledged write. `list` is of one revision.
  - A watch that starts at `since` yields every change after it, in order, with no gap, or raises `Gone`.
  - No read shows a revision newer than `revision`: a list and a watch from its revision miss nothing, repeat nothing.

Assumptions: one process owns the store. Values are opaque bytes, at most 1.5 MiB.

Caveats: the log is a window. A revision below `compacted` can neither be listed nor be watched from: `Gone`.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

Revision = int
"""A position in the store's one sequence of writes. 0 is before the first."""

MAX_VALUE = 1_572_864
"""The largest value, in bytes (1.5 MiB), as etcd has it."""

ABSENT: Revision = 0
"""As `Write.expect`: the key must not exist."""


class Key(NamedTuple):
    """Names one object. Keys sort as a list of all namespaces is ordered."""

    resource: str  # "configmaps", "deployments.apps"
    namespace: str  # "" for cluster-scoped kinds
    name: str


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One object as it was committed."""

    key: Key
    revision: Revision
    value: bytes  # what a client gets, its resourceVersion included
    labels: Mapping[str, str]
    fields: Mapping[str, str]  # what field selectors may ask for
    schema: str  # the schema that the value was written under; opaque to the store


class Op(enum.Enum):
    """What a change did."""

    PUT = "put"
    DELETE = "delete"


class Change(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One write as the log holds it. The entry of a DELETE is the last state, at the revision of the deletion."""

    op: Op
    entry: Entry
    before: Entry | None  # None: the key did not exist

    @property
    def revision(self) -> Revision:
        return self.entry.revision


class Batch(NamedTuple):
    """What a watch yields: changes in order; with them the watcher is complete up to `revision`. Empty when idle."""

    revision: Revision
    changes: tuple[Change, ...]


class Write(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A change asked for. The committed value is `head + str(revision) + tail`, so that an object has its revision.

    `expect` is the compare-and-swap: ABSENT, the revision that the key must be at, or None for no condition. A DELETE
    of a key that is not there is always a `Conflict`.
    """

    key: Key
    head: bytes
    tail: bytes
    op: Op = Op.PUT
    labels: Mapping[str, str] = {}
    fields: Mapping[str, str] = {}
    schema: str = ""
    expect: Revision | None = None
    expires: float | None = None  # seconds since the epoch; `expired` lists it from then on


class Selector(Protocol):
    """A label or field selector."""

    def matches(self, values: Mapping[str, str]) -> bool: ...


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to list or watch. A watch ignores selectors, limit, after and revision: crossing a selector is an event of
    another type, which only the caller can make."""

    resource: str
    namespace: str | None = None  # None: all
    name: str | None = None
    labels: Selector | None = None
    fields: Selector | None = None
    limit: int | None = None
    after: Key | None = None  # go on after this key
    revision: Revision | None = None  # the state at this revision; None: the newest
    counted: bool = True  # whether the page says how many are left


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A list at one revision, sorted by key. `remaining` is None where it is not known (selectors, no limit)."""

    revision: Revision
    entries: list[Entry]
    after: Key | None = None  # there is more after this key
    remaining: int | None = None


class StoreError(Exception):
    """The store cannot do what was asked."""


class Conflict(StoreError):  # noqa: N818
    """The compare-and-swap failed; `current` is what is there (None: nothing)."""

    def __init__(self, key: Key, current: Entry | None) -> None:
        super().__init__(f"{key} is not at the expected revision")
        self.key = key
        self.current = current


class Gone(StoreError):  # noqa: N818
    """The revision was compacted away, or the watcher fell too far behind. `oldest` is the first that can be had."""

    def __init__(self, revision: Revision, oldest: Revision) -> None:
        super().__init__(f"revision {revision} is gone; the oldest is {oldest}")
        self.revision = revision
        self.oldest = oldest


class TooLarge(StoreError):  # noqa: N818
    """The value is over MAX_VALUE."""


class NotYet(StoreError):  # noqa: N818
    """A list was asked for at a revision that is still to come; `current` is the newest."""

    def __init__(self, revision: Revision, current: Revision) -> None:
        super().__init__(f"revision {revision} is still to come; the newest is {current}")
        self.revision = revision
        self.current = current


class Unavailable(StoreError):  # noqa: N818
    """The disk failed or is full, or the store is closed: nothing of what was asked was done. It may work later."""


class Unwritable(Unavailable):
    """The disk does not take writes: nothing was written, and reads and watches go on. `full`: there is no room on it."""

    def __init__(self, why: str, *, full: bool) -> None:
        super().__init__(why)
        self.full = full


class Unusable(StoreError):  # noqa: N818
    """The file is not a store of ours, is damaged, is of a newer version, or is in use. The message says what to do."""


class Watch(Protocol):
    """A watch under way: an iterator. `aclose` frees what it holds and ends it, as closing the store does."""

    def __aiter__(self) -> AsyncIterator[Batch]: ...

    async def __anext__(self) -> Batch: ...

    async def aclose(self) -> None: ...


class Store(Protocol):
    """All kinds in one place."""

    @property
    def revision(self) -> Revision: ...

    @property
    def compacted(self) -> Revision: ...

    @property
    def trouble(self) -> str:
        """Why the disk does not do what it should; empty while it does. It ends by itself when the disk is well again."""
        ...

    async def get(self, key: Key) -> Entry | None: ...

    async def list(self, query: Query) -> Page: ...

    async def commit(self, write: Write) -> Entry: ...

    def watch(self, query: Query, since: Revision, *, heartbeat: float = 60.0) -> Watch: ...

    async def count(self, resource: str) -> int: ...

    async def expired(self, now: float, limit: int = 100) -> Sequence[Entry]: ...

    async def compact(self, before: Revision) -> None: ...

    async def close(self) -> None: ...
